//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package webgpu

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/wgsl"
)

// position matches the compiler's mark of a position, after the name of the text: "┌─ wgsl:3:5".
var position = regexp.MustCompile(`┌─ [^\n]*:(\d+):(\d+)\n`)

// newShaderError reads the native compiler's report: a chain of causes, one per line, and if the text itself is wrong an
// excerpt of it drawn in box characters.
func newShaderError(k *wgsl.Kernel, report string) *ShaderError {
	label, _, _ := strings.Cut(k.Key, "#") // what follows tells texts of the same label apart
	e := &ShaderError{Label: label, Details: strings.TrimSpace(report)}
	if m := position.FindStringSubmatch(report); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Column, _ = strconv.Atoi(m[2])
	}
	var causes []string
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		_, parsing, found := strings.Cut(line, "parsing error: ")
		switch {
		case found: // says everything
			e.Message = parsing
			return e
		case line == "" || strings.ContainsAny(line, "┌│═") || strings.HasPrefix(line, "note:"):
		case line == "Validation Error" || line == "Caused by:" || strings.HasPrefix(line, "In wgpu"):
		case strings.HasPrefix(line, "Shader validation error"):
		default:
			causes = append(causes, line)
		}
	}
	e.Message = strings.Join(causes, ": ")
	return e
}
