package simd

import (
	"math"
	"unsafe"

	"github.com/wavelane/wavelane/internal/program"
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

// rowsForm says what a row operation finds where.
type rowsForm struct {
	x, y  func(a *args) []float32
	gamma int // number of the operand; beta follows
	// before prepares elements of x, after changes those of the result; nil for nothing. Both take whole rows or a part of one.
	before, after func(a *args, lo, hi int)
	ns            float64 // of both, for an element
}

// rowwise lowers a row operation of x and vectors.
func rowwise[S any](o *rowOp[S]) func(*call) work {
	return rowwiseAs(o, rowsForm{x: func(a *args) []float32 { return a.in[0].f32() },
		y: func(a *args) []float32 { return a.out.f32() }, gamma: 1})
}

// between puts a row operation between the expressions of a step. What the one before it computes lies in the result, whose rows
// are then done in place.
func (f rowsForm) between(c *call) rowsForm {
	before, behind := c.expressions.ns()
	f.ns += before + behind
	if c.before != nil {
		f.x = f.y
		f.before = func(a *args, lo, hi int) { c.prepare(a, a.out, 0, lo, hi) }
	}
	if c.behind != nil {
		f.after = func(a *args, lo, hi int) { c.finish(a, a.out, 0, lo, hi) }
	}
	if f.before == nil {
		f.before = func(*args, int, int) {}
	}
	if f.after == nil {
		f.after = func(*args, int, int) {}
	}
	return f
}

func rowwiseAs[S any](o *rowOp[S], form rowsForm) func(*call) work {
	return func(c *call) work {
		form := form.between(c)
		rows, cols := program.RowsCols(c.in[0].Shape)
		var eps float64
		if len(c.attr.Scalars) > 0 {
			eps = float64(c.attr.Scalars[0])
		}
		operands := func(a *args, row int) (y, x []float32, v vectors) {
			v.eps = eps
			if len(c.in) > form.gamma {
				v.gamma = c.operand(a, form.gamma).f32()
			}
			if len(c.in) > form.gamma+1 {
				v.beta = c.operand(a, form.gamma+1).f32()
			}
			return form.y(a)[row*cols : (row+1)*cols], form.x(a)[row*cols : (row+1)*cols], v
		}
		size, ns := blockLen(), o.cost.ns()+form.ns
		perRow := ceilDiv(cols, size)
		if perRow <= fewBlocks {
			together := max(1, mostBlock/max(1, cols)) // short rows
			return one(rows, 20+2*ns*float64(cols), func(a *args, lo, hi int) {
				for lo < hi {
					end := min(lo+together, hi)
					form.before(a, lo*cols, end*cols)
					for row := lo; row < end; row++ {
						y, x, v := operands(a, row)
						o.short(y, x, v)
					}
					form.after(a, lo*cols, end*cols)
					lo = end
				}
			})
		}
		// Scratch memory holds the states of all blocks, then those of the rows.
		units := rows * perRow
		block := func(u int) (lo, hi int) {
			row, from := u/perRow*cols, u%perRow*size
			return row + from, row + min(from+size, cols)
		}
		states := func(a *args) []S { return cells[S](a.scratch, units+rows) }
		return work{scratch: (units + rows) * int(unsafe.Sizeof(*new(S))), phases: []phase{
			{units: units, ns: ns * float64(size), do: func(a *args, lo, hi int) {
				for u := lo; u < hi; u++ {
					from, to := block(u)
					form.before(a, from, to)
					y, x, _ := operands(a, u/perRow)
					o.fold(y, x, states(a)[u/perRow*perRow:], u%perRow, u%perRow+1)
				}
			}},
			{units: rows, ns: 20 * float64(perRow), do: func(a *args, lo, hi int) {
				s := states(a)
				for row := lo; row < hi; row++ {
					s[units+row] = o.merged(s[row*perRow:][:perRow])
				}
			}},
			{units: units, ns: ns * float64(size), do: func(a *args, lo, hi int) {
				for u := lo; u < hi; u++ {
					from, to := block(u)
					y, x, v := operands(a, u/perRow)
					s := states(a)
					o.finish(y, x, v, s[u/perRow*perRow:], s[units+u/perRow], u%perRow, u%perRow+1)
					form.after(a, from, to)
				}
			}},
		}}
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
