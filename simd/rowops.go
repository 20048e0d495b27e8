package simd

import (
	"math"

	"github.com/wavelane/wavelane/simd/internal/kernels"
	"github.com/wavelane/wavelane/simd/internal/pool"
)

// rowOp is an operation on a row: a fold of it, then writing the result with what the fold found.
type rowOp[S any] struct {
	block func(y, x []float32) S // may write to y, which may be x
	merge func(a, b S) S
	// write computes a block's result. Own is what block found there, row what the whole row's is. Gamma and beta are nil if
	// the operation does not have them.
	write func(y, x, gamma, beta []float32, own, row S, eps float64)
	cost  cost // of block and of write
	tasks freeList[rowTask[S]]
}

// vectors are the operands of one row beside x.
type vectors struct {
	gamma, beta []float32
	eps         float64
}

func (o *rowOp[S]) fold(y, x []float32, states []S, lo, hi int) {
	size := blockLen()
	for i := lo; i < hi; i++ {
		from, to := i*size, min((i+1)*size, len(y))
		states[i] = o.block(y[from:to], x[from:to])
	}
}

func (o *rowOp[S]) merged(states []S) S {
	s := states[0]
	for _, t := range states[1:] {
		s = o.merge(s, t)
	}
	return s
}

func (o *rowOp[S]) finish(y, x []float32, v vectors, states []S, row S, lo, hi int) {
	size := blockLen()
	for i := lo; i < hi; i++ {
		from, to := i*size, min((i+1)*size, len(y))
		o.write(y[from:to], x[from:to], cut(v.gamma, from, to), cut(v.beta, from, to), states[i], row, v.eps)
	}
}

// fewBlocks is the most blocks of a row that is not spread over workers.
const fewBlocks = 4

// short does a row of few blocks.
func (o *rowOp[S]) short(y, x []float32, v vectors) {
	if len(y) <= blockLen() {
		s := o.block(y, x)
		o.write(y, x, v.gamma, v.beta, s, s, v.eps)
		return
	}
	var states [fewBlocks]S
	n := ceilDiv(len(y), blockLen())
	o.fold(y, x, states[:n], 0, n)
	o.finish(y, x, v, states[:n], o.merged(states[:n]), 0, n)
}

// apply does a row of any length for a slice function.
func (o *rowOp[S]) apply(y, x []float32, v vectors) {
	n := ceilDiv(len(y), blockLen())
	if n == 0 {
		return
	}
	if n <= fewBlocks {
		o.short(y, x, v)
		return
	}
	t := o.tasks.take()
	defer o.tasks.give(t)
	threads := o.cost.threads(len(y))
	if shifted(y, x) || shifted(y, v.gamma) || shifted(y, v.beta) {
		threads = 1
	}
	t.o, t.y, t.x, t.vectors, t.run, t.states = o, y, x, v, max(1, o.cost.part()/blockLen()), resized(t.states, n)
	parts := ceilDiv(n, t.run)
	t.write = false
	pool.Shared().EachN(t, parts, threads)
	t.write, t.row = true, o.merged(t.states)
	pool.Shared().EachN(t, parts, threads)
	t.y, t.x, t.vectors = nil, nil, vectors{}
}

// rowTask is a long row in parts, runs of blocks, on several threads.
type rowTask[S any] struct {
	o    *rowOp[S]
	y, x []float32
	vectors
	run    int // blocks
	states []S
	write  bool // the second time
	row    S
}

func (t *rowTask[S]) Do(part int) {
	lo, hi := part*t.run, min((part+1)*t.run, len(t.states))
	if t.write {
		t.o.finish(t.y, t.x, t.vectors, t.states, t.row, lo, hi)
	} else {
		t.o.fold(t.y, t.x, t.states, lo, hi)
	}
}

// shiftedSum is the largest element m of a block or row and Σ exp(x − m).
type shiftedSum struct{ max, sum float64 }

// plus is the shifted sum of two runs: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018. A run of
// nothing but −Inf, whose differences are NaN, has sum 0.
func (a shiftedSum) plus(b shiftedSum) shiftedSum {
	m := max(a.max, b.max)
	return shiftedSum{m, a.sum*a.weight(m) + b.sum*b.weight(m)}
}

// weight is exp(max − m).
func (a shiftedSum) weight(m float64) float64 {
	switch {
	case a.sum == 0:
		return 0
	case a.max == m:
		return 1
	}
	return math.Exp(a.max - m)
}

var softmaxRow = rowOp[shiftedSum]{cost: cost{5, 0.25}, merge: shiftedSum.plus,
	block: func(y, x []float32) shiftedSum {
		m := kernels.Max(x)
		if math.IsInf(float64(m), -1) {
			clear(y)
			return shiftedSum{max: math.Inf(-1)}
		}
		return shiftedSum{float64(m), float64(kernels.ExpSub(y, x, m))}
	},
	write: func(y, _, _, _ []float32, own, row shiftedSum, _ float64) {
		kernels.Scale(y, y, float32(own.weight(row.max)/row.sum))
	}}

var logSoftmaxRow = rowOp[shiftedSum]{cost: cost{5, 0.25}, merge: shiftedSum.plus,
	block: func(_, x []float32) shiftedSum {
		m := kernels.Max(x)
		if math.IsInf(float64(m), -1) {
			return shiftedSum{max: math.Inf(-1)}
		}
		return shiftedSum{float64(m), float64(kernels.SumExpSub(x, m))}
	},
	// The maximum first: beside it the logarithm would lose digits.
	write: func(y, x, _, _ []float32, _, row shiftedSum, _ float64) {
		kernels.AddScalar(y, x, float32(-row.max))
		kernels.AddScalar(y, y, float32(-math.Log(row.sum)))
	}}

var layerNormRow = rowOp[moments]{cost: cost{2, 0.16}, merge: moments.plus,
	block: func(_, x []float32) moments { return momentsOf(x) },
	write: func(y, x, gamma, beta []float32, _, row moments, eps float64) {
		kernels.NormAffine(y, x, gamma, beta, float32(row.mean), float32(1/math.Sqrt(row.variance()+eps)))
	}}

// squares is the sum of squares of so many elements.
type squares struct{ n, sum float64 }

func (a squares) plus(b squares) squares { return squares{a.n + b.n, a.sum + b.sum} }

func squaresOf(_, x []float32) squares {
	return squares{float64(len(x)), float64(kernels.SumSquares(x))}
}

var rmsNormRow = rowOp[squares]{cost: cost{1.2, 0.09}, merge: squares.plus, block: squaresOf,
	write: func(y, x, gamma, _ []float32, _, row squares, eps float64) {
		kernels.NormScale(y, x, gamma, float32(1/math.Sqrt(row.sum/row.n+eps)))
	}}
