package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func silu(x float64) float64 { return limitAtMinusInf(x, x*sigmoid(x)) }

// Elementwise layers. A matmul with bias and activation in one kernel is matmul itself: see compute.MatMulOptions.
var (
	SwiGLU = binary(program.Entry{Name: "swiglu", Method: "SwiGLU",
		Doc: "silu(a)·b, where a is the gate (Shazeer, \"GLU Variants Improve Transformer\", 2020)",
		Special: "silu of −Inf is its limit, 0. Where silu(a) is below the least normal number, it may be " +
			"0.",
		Tol: program.Tolerance{Abs: 2e-6, Rel: 1e-5, Mag: 1e-6}, Domain: [2]float64{-20, 20}},
		func(gate, up float64) float64 { return silu(gate) * up })

	BiasActivation = &program.Entry{Name: "bias_activation", Method: "BiasActivation", Class: program.Layer,
		Doc:     "act(x + bias), where bias is a vector along the last axis of x",
		Special: "Activations are the operations of the same name. Without one the result is the sum.",
		Inputs:  []program.Input{{Name: "x"}, {Name: "bias"}}, Options: compute.BiasActivationOptions{}, Tol: program.Tolerance{Mag: 2e-7},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if len(in[0].Shape) == 0 {
				return program.Type{}, fmt.Errorf("a scalar has no last axis: %w", compute.ErrShape)
			}
			if _, cols := program.RowsCols(in[0].Shape); !program.EqualShape(in[1].Shape, []int{cols}) {
				return program.Type{}, fmt.Errorf("bias must have shape [%d]: %w", cols, compute.ErrShape)
			}
			_, err := ActivationEntry(a.Activation())
			return in[0], err
		}}
)
