package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// rowwise completes an entry over each row of x's last axis; the other inputs are vectors of a row's length.
func rowwise(e program.Entry) *program.Entry {
	e.Class = program.Rows
	e.Infer = func(in []program.Type, a program.Attr) (program.Type, error) {
		if len(in[0].Shape) == 0 {
			return program.Type{}, fmt.Errorf("a scalar has no rows: %w", compute.ErrShape)
		}
		_, cols := program.RowsCols(in[0].Shape)
		for i, t := range in[1:] {
			if !program.EqualShape(t.Shape, []int{cols}) {
				return program.Type{}, fmt.Errorf("%s must have shape [%d]: %w", e.Inputs[i+1].Name, cols, compute.ErrShape)
			}
		}
		for i, s := range e.Scalars {
			if v := a.Scalars[i]; !(v >= 0) {
				return program.Type{}, fmt.Errorf("%s is %v, must not be negative: %w", s.Name, v, compute.ErrArgument)
			}
		}
		return in[0], nil
	}
	return &e
}

const softmaxSpecial = "A row that holds NaN or +Inf, or only −Inf, gives NaN wherever IEEE arithmetic " +
	"does."

// Row entries.
var (
	Softmax = rowwise(program.Entry{Name: "softmax", Method: "Softmax", Doc: "exp(x − max)/Σexp(x − max) of each row of the last axis",
		Special: softmaxSpecial, Inputs: []program.Input{{Name: "x"}}, Tol: program.Tolerance{Abs: 1e-30, Rel: 2e-5}, Domain: [2]float64{-10, 10}})
	LogSoftmax = rowwise(program.Entry{Name: "log_softmax", Method: "LogSoftmax", Doc: "x − max − log Σexp(x − max) of each row of the last axis",
		Special: softmaxSpecial, Inputs: []program.Input{{Name: "x"}}, Tol: program.Tolerance{Abs: 1e-5, Rel: 2e-6}, Domain: [2]float64{-10, 10}})
	LayerNorm = rowwise(program.Entry{Name: "layer_norm", Method: "LayerNorm",
		Doc: "(x − mean)/√(variance + eps)·gamma + beta of each row of the last axis",
		Special: "The variance is the biased one. It is computed from deviations (two passes or Welford's " +
			"method), never as E[x²] − E[x]².",
		Inputs: []program.Input{{Name: "x"}, {Name: "gamma"}, {Name: "beta"}}, Scalars: []program.Scalar{scalar("eps", 1e-5, 1e-3)},
		Tol: program.Tolerance{Abs: 1e-5, Rel: 1e-5, Mag: 1e-6}})
	RMSNorm = rowwise(program.Entry{Name: "rms_norm", Method: "RMSNorm", Doc: "x/√(mean(x²) + eps)·gamma of each row of the last axis",
		Inputs: []program.Input{{Name: "x"}, {Name: "gamma"}}, Scalars: []program.Scalar{scalar("eps", 1e-6, 1e-3)},
		Tol: program.Tolerance{Abs: 1e-7, Rel: 1e-5}})
)
