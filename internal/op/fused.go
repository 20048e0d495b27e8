package op

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

func swish(x float64) float64 { return limitAtMinusInf(x, x*sigmoid(x)) }

// Elementwise layers. A matmul with bias and activation in one kernel is matmul itself: see compute.MatMulOptions.
var (
	SwiGLU = binary("swiglu", "SwiGLU", "silu(gate)·up (Shazeer, \"GLU Variants Improve Transformer\", 2020), where a is the gate",
		Tolerance{Abs: 2e-6, Rel: 1e-5, Mag: 1e-6}, func(gate, up float64) float64 { return swish(gate) * up }).
		special("A gate of −Inf counts as its limit, 0. Where silu(gate) is below the least normal number, it may be 0.").domain(-20, 20)

	BiasActivation = register(&Entry{Name: "bias_activation", Method: "BiasActivation", Class: Layer,
		Doc:     "act(x + bias), bias being a vector along the last axis of x",
		Special: "Activations are the operations of the same name; no activation leaves the sum.",
		Inputs:  []Input{{Name: "x"}, {Name: "bias"}}, Options: compute.BiasActivationOptions{}, Tol: Tolerance{Mag: 2e-7},
		Infer: func(in []Type, a Attr) (Type, error) {
			if len(in[0].Shape) == 0 {
				return Type{}, fmt.Errorf("a scalar has no last axis: %w", compute.ErrShape)
			}
			if _, cols := RowsCols(in[0].Shape); !EqualShape(in[1].Shape, []int{cols}) {
				return Type{}, fmt.Errorf("bias must have shape [%d]: %w", cols, compute.ErrShape)
			}
			_, err := ActivationEntry(a.Activation())
			return in[0], err
		},
		Ref: func(in []Array, a Attr, _ Type) []float64 {
			return activate(addArrays(in[0], in[1]).Data, a.Activation())
		},
		Magnitude: func(in []Array, _ Attr, _ Type) []float64 {
			in = absolute(in)
			return addArrays(in[0], in[1]).Data
		}})
)
