// Package source reads the lines of source files that reports quote.
package source

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Files reads files once. Its zero value looks for them where their names say. It is not safe for concurrent use.
type Files struct {
	Dirs  []string // where files are looked for too, by their last element
	lines map[string][]string
}

// Lines are those of a file, nil if it cannot be read.
func (f *Files) Lines(name string) []string {
	if lines, ok := f.lines[name]; ok {
		return lines
	}
	var lines []string
	for _, at := range f.places(name) {
		if text, err := os.ReadFile(at); err == nil {
			lines = strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
			break
		}
	}
	if f.lines == nil {
		f.lines = map[string][]string{}
	}
	f.lines[name] = lines
	return lines
}

func (f *Files) places(name string) []string {
	list := []string{name}
	for _, dir := range f.Dirs {
		if !filepath.IsAbs(name) {
			list = append(list, filepath.Join(dir, name))
		}
		base := name[strings.LastIndexAny(name, `/\`)+1:]
		list = append(list, filepath.Join(dir, base))
	}
	return list
}

// Line is the text of a line, "" if there is none.
func (f *Files) Line(p ir.Pos) string {
	if lines := f.Lines(p.File); p.Line > 0 && p.Line <= len(lines) {
		return lines[p.Line-1]
	}
	return ""
}

// Of is the place to show for an instruction: of what a compiler says it comes from the innermost whose file can be read, else the
// outermost, else its own.
func (f *Files) Of(p ir.Pos, from []ir.Pos) ir.Pos {
	for _, s := range from {
		if f.Line(s) != "" {
			return s
		}
	}
	if len(from) > 0 {
		return from[len(from)-1]
	}
	return p
}

// Short is the name of a file relative to the current folder if it lies there.
func Short(name string) string {
	wd, err := os.Getwd()
	if err != nil {
		return name
	}
	if rel, err := filepath.Rel(wd, name); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return name
}
