package gpu

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
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
