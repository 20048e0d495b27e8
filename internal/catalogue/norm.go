package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// L2Normalize is over rows, as those of rows.go.
var L2Normalize = rowwise(program.Entry{Name: "l2_normalize", Method: "L2Normalize",
	Doc:     "x/√(Σx² + eps) of each row of the last axis",
	Special: "Delta-rule attention scales queries and keys with it, each head being a row.",
	Inputs:  []program.Input{{Name: "x"}}, Scalars: []program.Scalar{scalar("eps", 1e-6, 1e-3)}, Tol: program.Tolerance{Abs: 1e-7, Rel: 1e-5}})

// Norms of several matrices. Their rows are those of the last axis.
var (
	GatedRMSNorm = &program.Entry{Name: "gated_rms_norm", Method: "GatedRMSNorm", Class: program.Layer,
		Doc: "rms_norm(x)·gamma·silu(gate) of each row of the last axis, as in Mamba 2 and gated delta " +
			"nets",
		Special: "x and gate have one shape; gamma is one row. silu of a gate of −Inf is its limit, 0.",
		Inputs:  []program.Input{{Name: "x"}, {Name: "gate"}, {Name: "gamma"}}, Scalars: []program.Scalar{scalar("eps", 1e-6, 1e-3)},
		Tol: program.Tolerance{Abs: 1e-5, Rel: 3e-5}, Infer: inferNorm(2, 1)}
	AddRMSNorm = &program.Entry{Name: "add_rms_norm", Method: "AddRMSNorm", Class: program.Layer,
		Doc:    "x + residual, and rms_norm of that sum with gamma, in one pass",
		Inputs: []program.Input{{Name: "x"}, {Name: "residual"}, {Name: "gamma"}}, Results: []string{"sum", "normed"},
		Scalars: RMSNorm.Scalars, Tol: RMSNorm.Tol, InferAll: twice(inferNorm(2, 1))}
	AddLayerNorm = &program.Entry{Name: "add_layer_norm", Method: "AddLayerNorm", Class: program.Layer,
		Doc:    "x + residual, and layer_norm of that sum with gamma and beta, in one pass",
		Inputs: []program.Input{{Name: "x"}, {Name: "residual"}, {Name: "gamma"}, {Name: "beta"}}, Results: []string{"sum", "normed"},
		Scalars: LayerNorm.Scalars, Tol: LayerNorm.Tol, InferAll: twice(inferNorm(2, 2))}
)

func twice(infer func(in []program.Type, a program.Attr) (program.Type, error)) func(in []program.Type, a program.Attr) ([]program.Type, error) {
	return func(in []program.Type, a program.Attr) ([]program.Type, error) {
		t, err := infer(in, a)
		return []program.Type{t, t}, err
	}
}

// inferNorm checks matrices of one shape, then vectors as long as their rows, and scalars that are not negative.
func inferNorm(matrices, vectors int) func(in []program.Type, a program.Attr) (program.Type, error) {
	return func(in []program.Type, a program.Attr) (program.Type, error) {
		if len(in[0].Shape) == 0 {
			return program.Type{}, fmt.Errorf("a scalar has no rows: %w", compute.ErrShape)
		}
		_, cols := program.RowsCols(in[0].Shape)
		for i, t := range in[1:] {
			want := in[0].Shape
			if i+1 >= matrices && i+1 < matrices+vectors {
				want = []int{cols}
			}
			if !program.EqualShape(t.Shape, want) {
				return program.Type{}, fmt.Errorf("operand %d must have shape %v: %w", i+1, want, compute.ErrShape)
			}
		}
		for _, v := range a.Scalars {
			if !(v >= 0) {
				return program.Type{}, fmt.Errorf("eps is %v, must not be negative: %w", v, compute.ErrArgument)
			}
		}
		return in[0], nil
	}
}
