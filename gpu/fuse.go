package gpu

import (
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
)

// Fuses reports whether the device runs a step that is an expression, or has a prologue or epilogue, as one step: see [program.Executor].
func (d executor) Fuses(s *program.Step, in, out []program.Type) bool {
	return wgslkernels.Fuses(s, in, out, d.caps())
}
