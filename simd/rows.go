package simd

import (
	"math"

	"github.com/wavelane/wavelane/internal/op"
)

// rowOp is a row operation as passes that each find one number of the row, followed by writing. A pass may write to y if
// all that reads x comes before.
type rowOp struct {
	passes []rowPass
	write  func(y, x, gamma, beta []float32, r rowState)
	ns     float64 // per element and pass
}

type rowPass struct {
	block func(y, x []float32, r rowState) float64
	merge func(a, b float64) float64
	start float64
	then  func(v float64, r rowState) float64 // of the whole row; nil for itself
}

// rowState is what the passes have found.
type rowState struct {
	found [2]float64
	n     float64 // elements of the row
	eps   float64
}

const (
	rowBlock = 1 << 13
	longRow  = 4 * rowBlock // rows from this length on are spread over the workers
)

// rowwise lowers a row operation.
func rowwise(o rowOp) func(*call) work {
	return func(c *call) work {
		rows, cols := op.RowsCols(c.in[0].Shape)
		var eps float64
		if len(c.attr.Scalars) > 0 {
			eps = float64(c.attr.Scalars[0])
		}
		fresh := rowState{n: float64(cols), eps: eps}
		write := func(a *args, row, lo, hi int, r rowState) {
			var v [2][]float32
			for i, in := range a.in[1:] {
				v[i] = in.f32()[lo:hi]
			}
			o.write(a.out.f32()[row*cols+lo:row*cols+hi], a.in[0].f32()[row*cols+lo:row*cols+hi], v[0], v[1], r)
		}
		block := func(a *args, pass, row, lo, hi int, r rowState) float64 {
			return o.passes[pass].block(a.out.f32()[row*cols+lo:row*cols+hi], a.in[0].f32()[row*cols+lo:row*cols+hi], r)
		}
		perRow := (cols + rowBlock - 1) / rowBlock
		if cols < longRow {
			return one(rows, 20+o.ns*float64(cols*(1+len(o.passes))), func(a *args, lo, hi int) {
				for row := lo; row < hi; row++ {
					r := fresh
					for p := range o.passes {
						v := o.passes[p].start
						for from := 0; from < cols; from += rowBlock {
							v = o.passes[p].merge(v, block(a, p, row, from, min(from+rowBlock, cols), r))
						}
						r.found[p] = o.passes[p].end(v, r)
					}
					write(a, row, 0, cols, r)
				}
			})
		}
		// Every phase puts the parts of the earlier ones together again, which is cheap and needs no phase of its own.
		units := rows * perRow
		state := func(a *args, row, passes int) rowState {
			r := fresh
			for p := range passes {
				v := o.passes[p].start
				for _, part := range a.scratch.f64()[p*units+row*perRow:][:perRow] {
					v = o.passes[p].merge(v, part)
				}
				r.found[p] = o.passes[p].end(v, r)
			}
			return r
		}
		w := work{scratch: len(o.passes) * units * 8}
		for p := range len(o.passes) + 1 {
			w.phases = append(w.phases, phase{units: units, ns: o.ns*rowBlock + float64(p*perRow), do: func(a *args, lo, hi int) {
				var r rowState
				for u := lo; u < hi; u++ {
					row, from := u/perRow, u%perRow*rowBlock
					if u == lo || from == 0 {
						r = state(a, row, p)
					}
					to := min(from+rowBlock, cols)
					if p == len(o.passes) {
						write(a, row, from, to, r)
					} else {
						a.scratch.f64()[p*units+u] = block(a, p, row, from, to, r)
					}
				}
			}})
		}
		return w
	}
}

func (p *rowPass) end(v float64, r rowState) float64 {
	if p.then == nil {
		return v
	}
	return p.then(v, r)
}

func addf(a, b float64) float64 { return a + b }

var maxPass = rowPass{start: math.Inf(-1), merge: func(a, b float64) float64 { return max(a, b) },
	block: func(_, x []float32, _ rowState) float64 { return float64(largest(x)) }}

var softmax = rowOp{ns: 2, passes: []rowPass{maxPass, {merge: addf,
	block: func(y, x []float32, r rowState) float64 {
		m, s := r.found[0], 0.0
		for i, v := range x {
			t, scale := reduceExp(float64(v) - m)
			e := taylorExp(t) * scale
			y[i] = float32(e)
			s += e
		}
		return s
	}}},
	write: func(y, _, _, _ []float32, r rowState) {
		f := 1 / r.found[1]
		for i, v := range y {
			y[i] = float32(float64(v) * f)
		}
	}}

var logSoftmax = rowOp{ns: 2, passes: []rowPass{maxPass, {merge: addf,
	block: func(_, x []float32, r rowState) float64 {
		m, s := r.found[0], 0.0
		for _, v := range x {
			t, scale := reduceExp(float64(v) - m)
			s += taylorExp(t) * scale
		}
		return s
	}}},
	write: func(y, x, _, _ []float32, r rowState) {
		m, l := r.found[0], math.Log(r.found[1])
		for i, v := range x {
			y[i] = float32(float64(v) - m - l)
		}
	}}

var layerNorm = rowOp{ns: 0.8, passes: []rowPass{
	{merge: addf, block: func(_, x []float32, _ rowState) float64 { return sum(x) },
		then: func(s float64, r rowState) float64 { return s / r.n }},
	{merge: addf, block: func(_, x []float32, r rowState) float64 { return squaresAround(x, r.found[0]) },
		then: func(s float64, r rowState) float64 { return 1 / math.Sqrt(s/r.n+r.eps) }}},
	write: func(y, x, gamma, beta []float32, r rowState) {
		mean, rstd := r.found[0], r.found[1]
		x, gamma, beta = x[:len(y)], gamma[:len(y)], beta[:len(y)]
		for i := range y {
			y[i] = float32((float64(x[i])-mean)*rstd*float64(gamma[i]) + float64(beta[i]))
		}
	}}

var rmsNorm = rowOp{ns: 0.8, passes: []rowPass{
	{merge: addf, block: func(_, x []float32, _ rowState) float64 { return dot(x, x) },
		then: func(s float64, r rowState) float64 { return 1 / math.Sqrt(s/r.n+r.eps) }}},
	write: func(y, x, gamma, _ []float32, r rowState) {
		f := r.found[0]
		x, gamma = x[:len(y)], gamma[:len(y)]
		for i := range y {
			y[i] = float32(float64(x[i]) * f * float64(gamma[i]))
		}
	}}

// squaresAround is Σ(x−mean)² in two lanes.
func squaresAround(x []float32, mean float64) float64 {
	var s0, s1 float64
	for len(x) >= 2 {
		d0, d1 := float64(x[0])-mean, float64(x[1])-mean
		s0 += d0 * d0
		s1 += d1 * d1
		x = x[2:]
	}
	for _, v := range x {
		d := float64(v) - mean
		s0 += d * d
	}
	return s0 + s1
}
