package wgslkernels

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Gradients of activations; a is x, b is dy.
func init() {
	for e, expr := range map[*program.Entry]string{
		catalogue.ReLUBackward:    "select(select(b, 0.0, a <= 0.0), a, is_nan(a))",
		catalogue.GELUBackward:    "b * gelu_slope(a)",
		catalogue.GELUErfBackward: "b * gelu_erf_slope(a)",
		catalogue.SiLUBackward:    "b * silu_slope(a)",
	} {
		expressions[e] = expr
		lowerings[e] = elementwise
	}
}
