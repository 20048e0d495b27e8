package randomprograms

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// spread bounds by how much results change when operands change within their bounds.
//
//   - Elementwise functions are evaluated all over the box of their operands: see optest.Box.
//   - Sums of products with coefficients of one sign, among them everything that moves data, change by at most
//     f(|x|+b) − f(|x|): the terms of the expansion that hold a b.
//   - The largest of several numbers changes by at most the largest bound. Its index is claimed only if no other number comes
//     near.
//   - Norms: see norm. Softmax changes by a factor of at most exp(±2b).
//
// Of other entries nothing is claimed unless their operands are exact.
func spread(e *program.Entry, in []estimate, a program.Attr, out []program.Type, want []reference.Array) [][]float64 {
	y := make([][]float64, len(out))
	for k := range y {
		y[k] = make([]float64, out[k].Len())
	}
	if areExact(in) {
		return y
	}
	switch {
	case e.Class.Elementwise():
		y[0] = overBox(e, in, a, out[0].Shape)
	case e == catalogue.ArgMax || e == catalogue.ArgMin:
		overIndices(y[0], in[0], a, want[0], e == catalogue.ArgMin)
	case e == catalogue.Max || e == catalogue.Min || e == catalogue.NormLInf:
		y[0] = reference.Of(catalogue.Max, []reference.Array{{Shape: in[0].Shape, Data: in[0].bound}}, a, out)[0].Data
	case e == catalogue.NormL2 || e == catalogue.L2Normalize || e == catalogue.RMSNorm || e == catalogue.LayerNorm:
		norm(e, y[0], in, a, want[0])
	case e == catalogue.Softmax || e == catalogue.LogSoftmax:
		overRows(e, y[0], in[0], want[0])
	case positive(e, a):
		y = expansion(e, in, a, out)
	case e == catalogue.AddRMSNorm || e == catalogue.AddLayerNorm:
		inner := map[*program.Entry]*program.Entry{catalogue.AddRMSNorm: catalogue.RMSNorm, catalogue.AddLayerNorm: catalogue.LayerNorm}[e]
		sum := estimateStep(catalogue.Add, in[:2], program.Attr{}, out[:1])
		y[0] = sum[0].bound
		y[1] = spread(inner, append(sum, in[2:]...), a, out[1:], want[1:])[0]
	case a.Activation() != compute.NoActivation || e == catalogue.BiasActivation:
		y[0] = throughActivation(e, in, a, out)
	default:
		for k := range y {
			fill(y[k], math.Inf(1))
		}
	}
	return y
}

func areExact(in []estimate) bool {
	for _, x := range in {
		for _, b := range x.bound {
			if b != 0 {
				return false
			}
		}
	}
	return true
}

// positive reports whether results are sums of products of operands with coefficients that are not negative.
func positive(e *program.Entry, a program.Attr) bool {
	switch e {
	case catalogue.Sum, catalogue.Mean, catalogue.NormL1, catalogue.SumSquares, catalogue.DotProduct, catalogue.MatMul, catalogue.MatVec, catalogue.VecMat, catalogue.Conv2D, catalogue.Conv1D, catalogue.CumSum:
		return a.Activation() == compute.NoActivation
	case catalogue.Cast, catalogue.Copy, catalogue.Reshape, catalogue.Transpose, catalogue.Slice, catalogue.Concat, catalogue.Pad, catalogue.KVAppend:
		return true
	}
	return false
}

func expansion(e *program.Entry, in []estimate, a program.Attr, out []program.Type) [][]float64 {
	inner, outer := make([]reference.Array, len(in)), make([]reference.Array, len(in))
	for k, x := range in {
		inner[k] = reference.Array{Shape: x.Shape, Data: make([]float64, len(x.Data))}
		outer[k] = reference.Array{Shape: x.Shape, Data: make([]float64, len(x.Data))}
		for i, v := range x.Data {
			inner[k].Data[i], outer[k].Data[i] = math.Abs(v), math.Abs(v)+x.bound[i]
		}
	}
	small, large := reference.Of(e, inner, a, out), reference.Of(e, outer, a, out)
	y := make([][]float64, len(out))
	for k := range y {
		y[k] = make([]float64, out[k].Len())
		for i, v := range large[k].Data {
			// The difference of two float64 sums is off by their rounding. NaN is an infinite bound times 0.
			if y[k][i] = v - small[k].Data[i] + 1e-13*v; y[k][i] != y[k][i] {
				y[k][i] = math.Inf(1)
			}
		}
	}
	return y
}

// throughActivation bounds a sum and what an activation makes of it.
func throughActivation(e *program.Entry, in []estimate, a program.Attr, out []program.Type) []float64 {
	act, _ := catalogue.ActivationEntry(a.Activation())
	var sum []estimate
	switch o := a.Options.(type) {
	case compute.MatMulOptions:
		o.Act = compute.NoActivation
		sum = estimateStep(e, in, program.Attr{Options: o}, out)
	case compute.Conv2DOptions:
		o.Act = compute.NoActivation
		sum = estimateStep(e, in, program.Attr{Options: o}, out)
	default:
		sum = estimateStep(catalogue.Add, in, program.Attr{}, out)
	}
	if act != nil {
		sum = estimateStep(act, sum, program.Attr{}, out)
	}
	return sum[0].bound
}

// overRows is for softmax and its logarithm.
func overRows(e *program.Entry, y []float64, x estimate, want reference.Array) {
	rows, cols := program.RowsCols(x.Shape)
	for r := range rows {
		b := largest(x.bound[r*cols : (r+1)*cols])
		for i := r * cols; i < (r+1)*cols; i++ {
			if y[i] = 2 * b; e == catalogue.Softmax {
				y[i] = want.Data[i] * math.Expm1(2*b)
			}
			if b > 1 {
				y[i] = math.Inf(1)
			}
		}
	}
}

// norm is for quotients by a root of squares, s = √(Σx²·w + eps), of x or of what x differs from its mean. The root is a norm, so
// that it changes by at most the norm of the bounds.
func norm(e *program.Entry, y []float64, in []estimate, a program.Attr, want reference.Array) {
	x := in[0]
	rows, cols := program.RowsCols(x.Shape)
	if axis, ok := a.Options.(compute.Axis); ok {
		rows, cols = program.ReduceRows(x.Shape, axis)
	}
	for r := range rows {
		v, b := append([]float64{}, x.Data[r*cols:(r+1)*cols]...), append([]float64{}, x.bound[r*cols:(r+1)*cols]...)
		if e == catalogue.LayerNorm {
			m, bm := mean(v), mean(b)
			for i := range v {
				v[i] -= m
				b[i] += bm
			}
		}
		d := math.Sqrt(squares(b))
		if e == catalogue.NormL2 {
			y[r] = d
			continue
		}
		n := 1.0
		if e != catalogue.L2Normalize {
			n = float64(cols)
		}
		s := math.Sqrt(squares(v)/n + float64(a.Scalars[0]))
		d /= math.Sqrt(n)
		for i := range v {
			at := r*cols + i
			if !(2*d < s) {
				y[at] = math.Inf(1)
				continue
			}
			quotient := math.Abs(v[i])/s + b[i]
			change := (b[i] + math.Abs(v[i])*d/s) / (s - d)
			if e == catalogue.L2Normalize {
				y[at] = change
				continue
			}
			y[at] = change*(math.Abs(in[1].Data[i])+in[1].bound[i]) + quotient*in[1].bound[i]
			if e == catalogue.LayerNorm {
				y[at] += in[2].bound[i]
			}
		}
	}
	for i := range y {
		if y[i] != y[i] {
			y[i] = math.Inf(1)
		}
	}
	_ = want
}

// overIndices claims an index where no other number can be the best.
func overIndices(y []float64, x estimate, a program.Attr, want reference.Array, least bool) {
	rows, cols := program.ReduceRows(x.Shape, a.Options.(compute.Axis))
	for r := range rows {
		best := r*cols + int(want.Data[r])
		for i := r * cols; i < (r+1)*cols; i++ {
			gap := x.Data[best] - x.Data[i]
			if least {
				gap = -gap
			}
			if i != best && x.bound[i]+x.bound[best] > 0 && !(gap > x.bound[i]+x.bound[best]) {
				y[r] = math.Inf(1)
			}
		}
	}
}

func largest(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func mean(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}

func squares(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	return s
}
