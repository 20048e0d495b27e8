package engine

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/pool"
)

// RowOp is an operation on a row: a fold of it, then writing the result with what the fold found.
type RowOp[S any] struct {
	Block func(y, x []float32) S // may write to y, which may be x
	Merge func(a, b S) S
	// write computes a block's result. Own is what block found there, row what the whole row's is. Gamma and beta are nil if
	// the operation does not have them.
	Write func(y, x, gamma, beta []float32, own, row S, eps float64)
	Cost  Cost // of block and of write
	// Rows does rows of n elements, at most those of a block, and reports whether it has; nil if nothing is gained by it.
	Rows  func(y, x []float32, n int) bool
	tasks FreeList[rowTask[S]]
}

// Vectors are the operands of one row beside x.
type Vectors struct {
	Gamma, Beta []float32
	Eps         float64
}

func (o *RowOp[S]) Fold(y, x []float32, states []S, lo, hi int) {
	size := BlockLen()
	for i := lo; i < hi; i++ {
		from, to := i*size, min((i+1)*size, len(y))
		states[i] = o.Block(y[from:to], x[from:to])
	}
}

func (o *RowOp[S]) Merged(states []S) S {
	s := states[0]
	for _, t := range states[1:] {
		s = o.Merge(s, t)
	}
	return s
}

func (o *RowOp[S]) Finish(y, x []float32, v Vectors, states []S, row S, lo, hi int) {
	size := BlockLen()
	for i := lo; i < hi; i++ {
		from, to := i*size, min((i+1)*size, len(y))
		o.Write(y[from:to], x[from:to], cut(v.Gamma, from, to), cut(v.Beta, from, to), states[i], row, v.Eps)
	}
}

// FewBlocks is the most blocks of a row that is not spread over workers.
const FewBlocks = 4

// Short does a row of few blocks.
func (o *RowOp[S]) Short(y, x []float32, v Vectors) {
	if len(y) <= BlockLen() {
		if kernels.HasRows && o.Rows != nil && o.Rows(y, x, len(y)) {
			return
		}
		s := o.Block(y, x)
		o.Write(y, x, v.Gamma, v.Beta, s, s, v.Eps)
		return
	}
	var states [FewBlocks]S
	n := CeilDiv(len(y), BlockLen())
	o.Fold(y, x, states[:n], 0, n)
	o.Finish(y, x, v, states[:n], o.Merged(states[:n]), 0, n)
}

// Apply does a row of any length for a slice function.
func (o *RowOp[S]) Apply(y, x []float32, v Vectors) {
	n := CeilDiv(len(y), BlockLen())
	if n == 0 {
		return
	}
	if n <= FewBlocks {
		o.Short(y, x, v)
		return
	}
	t := o.tasks.Take()
	defer o.tasks.Give(t)
	threads := o.Cost.threads(len(y))
	if shifted(y, x) || shifted(y, v.Gamma) || shifted(y, v.Beta) {
		threads = 1
	}
	t.o, t.y, t.x, t.Vectors, t.run, t.states = o, y, x, v, max(1, o.Cost.part()/BlockLen()), Resized(t.states, n)
	parts := CeilDiv(n, t.run)
	t.write = false
	pool.Shared().EachN(t, parts, threads)
	t.write, t.row = true, o.Merged(t.states)
	pool.Shared().EachN(t, parts, threads)
	t.y, t.x, t.Vectors = nil, nil, Vectors{}
}

// rowTask is a long row in parts, runs of blocks, on several threads.
type rowTask[S any] struct {
	o    *RowOp[S]
	y, x []float32
	Vectors
	run    int // blocks
	states []S
	write  bool // the second time
	row    S
}

func (t *rowTask[S]) Do(part int) {
	lo, hi := part*t.run, min((part+1)*t.run, len(t.states))
	if t.write {
		t.o.Finish(t.y, t.x, t.Vectors, t.states, t.row, lo, hi)
	} else {
		t.o.Fold(t.y, t.x, t.states, lo, hi)
	}
}

// ShiftedSum is the largest element m of a block or row and Σ exp(x − m).
type ShiftedSum struct{ Max, Sum float64 }

// Plus is the shifted sum of two runs: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018. A run of
// nothing but −Inf, whose differences are NaN, has sum 0.
func (a ShiftedSum) Plus(b ShiftedSum) ShiftedSum {
	m := max(a.Max, b.Max)
	return ShiftedSum{m, a.Sum*a.Weight(m) + b.Sum*b.Weight(m)}
}

// Weight is exp(max − m).
func (a ShiftedSum) Weight(m float64) float64 {
	switch {
	case a.Sum == 0:
		return 0
	case a.Max == m:
		return 1
	}
	return math.Exp(a.Max - m)
}

var SoftmaxRow = RowOp[ShiftedSum]{Cost: Cost{5, 0.25}, Merge: ShiftedSum.Plus, Rows: kernels.SoftmaxRows,
	Block: func(y, x []float32) ShiftedSum {
		m := kernels.Max(x)
		if math.IsInf(float64(m), -1) {
			clear(y)
			return ShiftedSum{Max: math.Inf(-1)}
		}
		return ShiftedSum{float64(m), float64(kernels.ExpSub(y, x, m))}
	},
	Write: func(y, _, _, _ []float32, own, row ShiftedSum, _ float64) {
		kernels.Scale(y, y, float32(own.Weight(row.Max)/row.Sum))
	}}

var LogSoftmaxRow = RowOp[ShiftedSum]{Cost: Cost{5, 0.25}, Merge: ShiftedSum.Plus,
	Block: func(_, x []float32) ShiftedSum {
		m := kernels.Max(x)
		if math.IsInf(float64(m), -1) {
			return ShiftedSum{Max: math.Inf(-1)}
		}
		return ShiftedSum{float64(m), float64(kernels.SumExpSub(x, m))}
	},
	// The maximum first: beside it the logarithm would lose digits.
	Write: func(y, x, _, _ []float32, _, row ShiftedSum, _ float64) {
		kernels.AddScalar(y, x, float32(-row.Max))
		kernels.AddScalar(y, y, float32(-math.Log(row.Sum)))
	}}

var LayerNormRow = RowOp[Moments]{Cost: Cost{2, 0.16}, Merge: Moments.Plus,
	Block: func(_, x []float32) Moments { return momentsOf(x) },
	Write: func(y, x, gamma, beta []float32, _, row Moments, eps float64) {
		kernels.NormAffine(y, x, gamma, beta, float32(row.Mean), float32(1/math.Sqrt(row.Variance()+eps)))
	}}

// Squares is the sum of the squares of n elements.
type Squares struct{ n, Sum float64 }

func (a Squares) Plus(b Squares) Squares { return Squares{a.n + b.n, a.Sum + b.Sum} }

func SquaresOf(_, x []float32) Squares {
	return Squares{float64(len(x)), float64(kernels.SumSquares(x))}
}

var RmsNormRow = RowOp[Squares]{Cost: Cost{1.2, 0.09}, Merge: Squares.Plus, Block: SquaresOf,
	Write: func(y, x, gamma, _ []float32, _, row Squares, eps float64) {
		kernels.NormScale(y, x, gamma, float32(1/math.Sqrt(row.Sum/row.n+eps)))
	}}
