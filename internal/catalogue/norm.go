package catalogue

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// L2Normalize is over rows, as those of rows.go.
var L2Normalize = rowwise(&program.Entry{Name: "l2_normalize", Method: "L2Normalize",
	Doc:    "x/√(Σx² + eps) of each row of the last axis: with heads as rows, what queries and keys are scaled by in delta-rule attention",
	Inputs: []program.Input{{Name: "x"}}, Scalars: []program.Scalar{scalar("eps", 1e-6, 1e-3)}, Tol: program.Tolerance{Abs: 1e-7, Rel: 1e-5}},
	func(y, x []float64, _ [][]float64, p []float32) {
		r := 1 / math.Sqrt(dot(x, x)+float64(p[0]))
		for i := range y {
			y[i] = x[i] * r
		}
	})

// Norms of several matrices. Their rows are those of the last axis.
var (
	GatedRMSNorm = register(&program.Entry{Name: "gated_rms_norm", Method: "GatedRMSNorm", Class: program.Layer,
		Doc:     "rms_norm(x)·gamma·silu(gate) of each row of the last axis (Mamba 2, gated delta nets); x and gate have one shape, gamma is a row",
		Special: "A gate of −Inf counts as its limit, 0.",
		Inputs:  []program.Input{{Name: "x"}, {Name: "gate"}, {Name: "gamma"}}, Scalars: []program.Scalar{scalar("eps", 1e-6, 1e-3)},
		Tol: program.Tolerance{Abs: 1e-5, Rel: 3e-5}, Infer: inferNorm(2, 1),
		Ref: func(in []program.Array, a program.Attr, _ program.Type) []float64 {
			y := RMSNorm.Ref([]program.Array{in[0], in[2]}, a, program.Type{})
			for i, g := range in[1].Data {
				y[i] *= silu(g)
			}
			return y
		}})
	AddRMSNorm = register(&program.Entry{Name: "add_rms_norm", Method: "AddRMSNorm", Class: program.Layer,
		Doc:    "x + residual and rms_norm of that with gamma, in one pass: what stands between the layers of a transformer",
		Inputs: []program.Input{{Name: "x"}, {Name: "residual"}, {Name: "gamma"}}, Results: []string{"sum", "normed"},
		Scalars: RMSNorm.Scalars, Tol: RMSNorm.Tol, InferAll: twice(inferNorm(2, 1)),
		RefAll: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
			sum := addArrays(in[0], in[1])
			return [][]float64{sum.Data, RMSNorm.Ref([]program.Array{sum, in[2]}, a, program.Type{})}
		}})
	AddLayerNorm = register(&program.Entry{Name: "add_layer_norm", Method: "AddLayerNorm", Class: program.Layer,
		Doc:    "x + residual and layer_norm of that with gamma and beta, in one pass",
		Inputs: []program.Input{{Name: "x"}, {Name: "residual"}, {Name: "gamma"}, {Name: "beta"}}, Results: []string{"sum", "normed"},
		Scalars: LayerNorm.Scalars, Tol: LayerNorm.Tol, InferAll: twice(inferNorm(2, 2)),
		RefAll: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
			sum := addArrays(in[0], in[1])
			return [][]float64{sum.Data, LayerNorm.Ref([]program.Array{sum, in[2], in[3]}, a, program.Type{})}
		},
		MagnitudeAll: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
			sum := addArrays(in[0], in[1])
			return [][]float64{program.MapArray(sum, math.Abs).Data, LayerNorm.Magnitude([]program.Array{sum, in[2], in[3]}, a, program.Type{})}
		}})
)

func twice(infer func(in []program.Type, a program.Attr) (program.Type, error)) func(in []program.Type, a program.Attr) ([]program.Type, error) {
	return func(in []program.Type, a program.Attr) ([]program.Type, error) {
		t, err := infer(in, a)
		return []program.Type{t, t}, err
	}
}

// inferNorm checks so many matrices of one shape, then vectors as long as their rows, and scalars that are not negative.
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

// addArrays adds with broadcasting; the shapes are known to fit.
func addArrays(a, b program.Array) program.Array {
	s, _ := program.Broadcast(a.Shape, b.Shape)
	return Add.Reference([]program.Array{a, b}, program.Attr{}, []program.Type{{Shape: s}})[0]
}
