package parse

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/wavelane/wavelane/ptx/ir"
)

var (
	fileLine = regexp.MustCompile(`^\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"`)
	locLine  = regexp.MustCompile(`^\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?`)
)

// place is what .loc says of one place: file, line, column.
type place [3]string

// sourceLines makes the module's lines of .loc and .file. What they do not say, or say in a way that is not understood, is not known:
// line information is no reason to refuse a text.
func (p *parser) sourceLines() {
	files := map[string]string{}
	for _, t := range p.located {
		if m := fileLine.FindStringSubmatch(p.text(t)); m != nil {
			name, err := strconv.Unquote(`"` + m[2] + `"`)
			if err != nil {
				name = m[2]
			}
			files[m[1]] = name
		}
	}
	var list []ir.Line
	add := func(at ir.Pos, from []ir.Pos) {
		at.Col = 0
		list = append(list, ir.Line{At: at, From: from})
	}
	for _, f := range p.module.m.Funcs { // what holds at the end of one function says nothing of the next
		add(f.Pos, nil)
	}
	seen := map[place][]ir.Pos{} // what the last .loc of a place says, of which inlined_at tells only the first step
	for _, t := range p.located {
		m := locLine.FindStringSubmatch(p.text(t))
		if m == nil {
			continue
		}
		here := place(m[1:4])
		from := position(files, here)
		if m[4] != "" && from != nil {
			call := place(m[4:7])
			outer := seen[call]
			if outer == nil {
				outer = position(files, call)
			}
			from = append(from, outer...)
		}
		seen[here] = from
		add(p.pos(t.off), from)
	}
	if len(seen) == 0 {
		return
	}
	slices.SortStableFunc(list, func(x, y ir.Line) int { return x.At.Line - y.At.Line })
	p.module.m.Lines = slices.Clip(list)
}

// position is a place, nil where its file has no name or its line is 0, as compilers write for what they made up.
func position(files map[string]string, at place) []ir.Pos {
	line, err := strconv.Atoi(at[1])
	col, _ := strconv.Atoi(at[2])
	if err != nil || line == 0 || files[at[0]] == "" {
		return nil
	}
	return []ir.Pos{{File: files[at[0]], Line: line, Col: col}}
}
