package gpu

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// ShaderError reports WGSL that does not compile, or that does not fit the bindings declared for it.
// It wraps compute.ErrArgument.
type ShaderError struct {
	Label   string // of the kernel
	Line    int    // in the WGSL text, from 1; 0 if the compiler did not say
	Column  int    // in bytes, from 1; 0 if the compiler did not say
	Message string // what is wrong, in one line
	Details string // the compiler's whole report
}

func (e *ShaderError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("kernel %s: %s", e.Label, e.Message)
	}
	return fmt.Sprintf("kernel %s: %d:%d: %s", e.Label, e.Line, e.Column, e.Message)
}

func (e *ShaderError) Unwrap() error { return compute.ErrArgument }

// place matches the compiler's mark of a position, after the name of the text: "┌─ wgsl:3:5".
var place = regexp.MustCompile(`┌─ [^\n]*:(\d+):(\d+)\n`)

// newShaderError reads the native compiler's report: a chain of causes, one per line, and if the text itself is wrong an
// excerpt of it drawn in box characters.
func newShaderError(k *wgsl.Kernel, report string) *ShaderError {
	label, _, _ := strings.Cut(k.Key, "#") // what follows tells texts of the same label apart
	e := &ShaderError{Label: label, Details: strings.TrimSpace(report)}
	if m := place.FindStringSubmatch(report); m != nil {
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
