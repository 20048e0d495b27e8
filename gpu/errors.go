package gpu

import (
	"errors"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
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

// Error names the kernel and, if known, the position.
func (e *ShaderError) Error() string { return (*webgpu.ShaderError)(e).Error() }

// explained converts a driver's error about WGSL into a [ShaderError].
func explained(err error) error {
	if e := (*webgpu.ShaderError)(nil); errors.As(err, &e) {
		return (*ShaderError)(e)
	}
	return err
}

// Unwrap returns compute.ErrArgument.
func (e *ShaderError) Unwrap() error { return compute.ErrArgument }
