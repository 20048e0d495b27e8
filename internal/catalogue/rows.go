package catalogue

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// rowwise registers an entry over each row of x's last axis; the other inputs are vectors of a row's length.
func rowwise(e *program.Entry, f func(y, x []float64, vectors [][]float64, p []float32)) *program.Entry {
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
	e.Ref = func(in []program.Array, a program.Attr, _ program.Type) []float64 {
		rows, cols := program.RowsCols(in[0].Shape)
		y := make([]float64, rows*cols)
		var vectors [][]float64
		for _, v := range in[1:] {
			vectors = append(vectors, v.Data)
		}
		if cols == 0 {
			return y
		}
		for r := range rows {
			f(y[r*cols:(r+1)*cols], in[0].Data[r*cols:(r+1)*cols], vectors, a.Scalars)
		}
		return y
	}
	return register(e)
}

const softmaxSpecial = "A row that holds NaN or +Inf, or nothing but −Inf, becomes NaN wherever IEEE arithmetic makes it so."

// Row entries.
var (
	Softmax = rowwise(&program.Entry{Name: "softmax", Method: "Softmax", Doc: "exp(x − max)/Σexp(x − max) of each row of the last axis",
		Special: softmaxSpecial, Inputs: []program.Input{{Name: "x"}}, Tol: program.Tolerance{Abs: 1e-30, Rel: 2e-5}, Domain: [2]float64{-10, 10}},
		func(y, x []float64, _ [][]float64, _ []float32) {
			total := shiftedExp(y, x)
			for i := range y {
				y[i] /= total
			}
		})
	LogSoftmax = rowwise(&program.Entry{Name: "log_softmax", Method: "LogSoftmax", Doc: "x − max − log Σexp(x − max) of each row of the last axis",
		Special: softmaxSpecial, Inputs: []program.Input{{Name: "x"}}, Tol: program.Tolerance{Abs: 1e-5, Rel: 2e-6}, Domain: [2]float64{-10, 10}},
		func(y, x []float64, _ [][]float64, _ []float32) {
			l := math.Log(shiftedExp(y, x))
			m := rowMax(x)
			for i := range y {
				y[i] = x[i] - m - l
			}
		})
	LayerNorm = rowwise(&program.Entry{Name: "layer_norm", Method: "LayerNorm",
		Doc:     "(x − mean)/√(variance + eps)·gamma + beta of each row of the last axis, with the biased variance",
		Special: "The variance is computed from deviations (two passes or Welford's merge), never as E[x²] − E[x]².",
		Inputs:  []program.Input{{Name: "x"}, {Name: "gamma"}, {Name: "beta"}}, Scalars: []program.Scalar{scalar("eps", 1e-5, 1e-3)},
		Tol: program.Tolerance{Abs: 1e-5, Rel: 1e-5, Mag: 1e-6},
		Magnitude: func(in []program.Array, a program.Attr, _ program.Type) []float64 {
			rows, cols := program.RowsCols(in[0].Shape)
			m := make([]float64, rows*cols)
			for r := range rows {
				x := in[0].Data[r*cols : (r+1)*cols]
				_, rstd := moments(x, a.Scalars[0])
				largest := slices.Max(append(program.MapArray(program.Array{Data: x}, math.Abs).Data, 0))
				for i := range x {
					m[r*cols+i] = math.Abs(in[1].Data[i])*largest*rstd + math.Abs(in[2].Data[i])
				}
			}
			return m
		}},
		func(y, x []float64, v [][]float64, p []float32) {
			mean, rstd := moments(x, p[0])
			for i := range y {
				y[i] = (x[i]-mean)*rstd*v[0][i] + v[1][i]
			}
		})
	RMSNorm = rowwise(&program.Entry{Name: "rms_norm", Method: "RMSNorm", Doc: "x/√(mean(x²) + eps)·gamma of each row of the last axis",
		Inputs: []program.Input{{Name: "x"}, {Name: "gamma"}}, Scalars: []program.Scalar{scalar("eps", 1e-6, 1e-3)},
		Tol: program.Tolerance{Abs: 1e-7, Rel: 1e-5}},
		func(y, x []float64, v [][]float64, p []float32) {
			r := 1 / math.Sqrt(dot(x, x)/float64(len(x))+float64(p[0]))
			for i := range y {
				y[i] = x[i] * r * v[0][i]
			}
		})
)

// rowMax propagates NaN.
func rowMax(x []float64) float64 { return x[best(x, func(v, b float64) bool { return v > b })] }

func shiftedExp(y, x []float64) (total float64) {
	m := rowMax(x)
	for i, v := range x {
		y[i] = math.Exp(v - m)
	}
	return sum(y)
}

func moments(x []float64, eps float32) (mean, rstd float64) {
	n := float64(len(x))
	mean = sum(x) / n
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, 1 / math.Sqrt(variance/n+float64(eps))
}
