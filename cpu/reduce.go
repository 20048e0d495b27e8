package cpu

import (
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// cells is scratch memory as values of a type.
func cells[P any](v view, n int) []P { return unsafe.Slice((*P)(v.p), n) }

// reduction lowers a reduction. Rows longer than a block are folded block by block first. Finish makes the result of a row from
// its fold.
func reduction[P any, R float32 | int32 | special](f *engine.Fold[P], finish func(p P, r *reducedRow) R) func(*call) work {
	return func(c *call) work {
		rows, cols := program.ReduceRows(c.in[0].Shape, c.attr.Options.(compute.Axis))
		size := engine.BlockLen()
		perRow := max(1, engine.CeilDiv(cols, size))
		prologue, epilogue := c.expressions.Ns()
		ns := f.Cost.Ns() + prologue
		read := func(a *args, r *reducedRow, lo, hi int) P {
			if len(c.in) == 2 {
				return f.Block(r.elements(lo, hi), c.operand(a, 1).f32()[r.row*cols:][lo:hi], lo)
			}
			return f.Block(r.elements(lo, hi), nil, lo)
		}
		write := func(a *args, r *reducedRow, p P) {
			cells[R](a.out, rows)[r.row] = finish(p, r)
			c.Finish(a, a.out, 0, r.row, r.row+1)
		}
		if perRow == 1 {
			return one(rows, 15+ns*float64(cols)+epilogue, func(a *args, lo, hi int) {
				r := newReducedRow(c, a, cols)
				defer r.done()
				for r.row = lo; r.row < hi; r.row++ {
					write(a, r, read(a, r, 0, cols))
				}
			})
		}
		units := rows * perRow
		return work{scratch: units * int(unsafe.Sizeof(*new(P))), phases: []phase{
			{units: units, ns: ns * float64(size), do: func(a *args, lo, hi int) {
				blocks := cells[P](a.scratch, units)
				r := newReducedRow(c, a, cols)
				defer r.done()
				for u := lo; u < hi; u++ {
					from := u % perRow * size
					r.row = u / perRow
					blocks[u] = read(a, r, from, min(from+size, cols))
				}
			}},
			{units: rows, ns: 3*float64(perRow) + f.Cost.Ns()*float64(size), do: func(a *args, lo, hi int) {
				r := newReducedRow(c, a, cols)
				defer r.done()
				for r.row = lo; r.row < hi; r.row++ {
					write(a, r, f.Merged(cells[P](a.scratch, units)[r.row*perRow:][:perRow]))
				}
			}},
		}}
	}
}

// reducedRow is a row of the first operand of a reduction.
type reducedRow struct {
	c         *call
	a         *args
	row, cols int
	computed  *[]float32 // a block of the expression before it; nil for none
}

// reducedRows pools memory for folds whose arguments escape to the heap.
var reducedRows engine.FreeList[reducedRow]

func newReducedRow(c *call, a *args, cols int) *reducedRow {
	r := reducedRows.Take()
	*r = reducedRow{c: c, a: a, cols: cols}
	if c.prologue != nil {
		r.computed = engine.Borrow(min(engine.BlockLen(), cols))
	}
	return r
}

func (r *reducedRow) done() {
	if r.computed != nil {
		engine.Scratch.Put(r.computed)
	}
	*r = reducedRow{}
	reducedRows.Give(r)
}

// elements returns elements lo to hi, no more than a block, until the next call.
func (r *reducedRow) elements(lo, hi int) []float32 {
	from := r.row * r.cols
	if r.computed == nil {
		return r.a.in[0].f32()[from:][lo:hi]
	}
	x := (*r.computed)[:hi-lo]
	if len(x) > 0 {
		r.c.prepare(r.a, view{unsafe.Pointer(&x[0]), len(x)}, from+lo, from+lo, from+hi)
	}
	return x
}

// Folds to one number.

func rootOf(squares float64, _ *reducedRow) float32 { return engine.Norm2(squares) }
func valueOf(p engine.First, _ *reducedRow) float32 { return p.Value }

func rounded(s float64, _ *reducedRow) float32 { return float32(s) }
func meanOf(s float64, r *reducedRow) float32  { return float32(s / float64(r.cols)) }
func indexOf(p engine.First, r *reducedRow) int32 {
	return int32(p.At + p.Find(r.elements(p.At, min(p.At+engine.BlockLen(), r.cols))))
}
func itself(v float32, _ *reducedRow) float32 { return v }
