package wgsl

import "github.com/wavelane/wavelane/internal/op"

// Gradients of activations; a is x, b is dy.
func init() {
	for e, expr := range map[*op.Entry]string{
		op.ReLUBackward:    "select(select(b, 0.0, a <= 0.0), a, is_nan(a))",
		op.GELUBackward:    "b * gelu_slope(a)",
		op.GELUErfBackward: "b * gelu_erf_slope(a)",
		op.SiLUBackward:    "b * silu_slope(a)",
	} {
		expressions[e] = expr
		lowerings[e] = elementwise
	}
}
