package gpu

import (
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/wgsl"
)

var _ op.Fuser = (*Device)(nil)

// Fuses reports whether the device runs a step that computes an expression, or has one before or behind it, as one step: see
// [op.Fuser].
func (d *device) Fuses(s *op.Step, in, out []op.Type) bool { return wgsl.Fuses(s, in, out, d.caps()) }
