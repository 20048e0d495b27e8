package cpu

import (
	"unsafe"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// rowsForm describes the data of a row operation.
type rowsForm struct {
	x, y  func(a *args) []float32
	gamma int // number of the operand; beta follows
	// before prepares elements of x, after changes those of the result; nil for nothing. Both take whole rows or a part of one.
	before, after func(a *args, lo, hi int)
	ns            float64 // of both, for an element
}

// rowwise lowers a row operation of x and vectors.
func rowwise[S any](o *engine.RowOp[S]) func(*call) work {
	return rowwiseAs(o, rowsForm{x: func(a *args) []float32 { return a.in[0].f32() },
		y: func(a *args) []float32 { return a.out.f32() }, gamma: 1})
}

// between puts a row operation between the expressions of a step. What the one before it computes lies in the result, whose rows
// are then done in place.
func (f rowsForm) between(c *call) rowsForm {
	prologue, epilogue := c.expressions.Ns()
	f.ns += prologue + epilogue
	if c.prologue != nil {
		f.x = f.y
		f.before = func(a *args, lo, hi int) { c.prepare(a, a.out, 0, lo, hi) }
	}
	if c.epilogue != nil {
		f.after = func(a *args, lo, hi int) { c.Finish(a, a.out, 0, lo, hi) }
	}
	if f.before == nil {
		f.before = func(*args, int, int) {}
	}
	if f.after == nil {
		f.after = func(*args, int, int) {}
	}
	return f
}

func rowwiseAs[S any](o *engine.RowOp[S], form rowsForm) func(*call) work {
	return func(c *call) work {
		form := form.between(c)
		rows, cols := program.RowsCols(c.in[0].Shape)
		var eps float64
		if len(c.attr.Scalars) > 0 {
			eps = float64(c.attr.Scalars[0])
		}
		operands := func(a *args, row int) (y, x []float32, v engine.Vectors) {
			v.Eps = eps
			if len(c.in) > form.gamma {
				v.Gamma = c.operand(a, form.gamma).f32()
			}
			if len(c.in) > form.gamma+1 {
				v.Beta = c.operand(a, form.gamma+1).f32()
			}
			return form.y(a)[row*cols : (row+1)*cols], form.x(a)[row*cols : (row+1)*cols], v
		}
		size, ns := engine.BlockLen(), o.Cost.Ns()+form.ns
		perRow := engine.CeilDiv(cols, size)
		if perRow <= engine.FewBlocks {
			together := max(1, mostBlock/max(1, cols)) // short rows
			return one(rows, 20+2*ns*float64(cols), func(a *args, lo, hi int) {
				for lo < hi {
					end := min(lo+together, hi)
					form.before(a, lo*cols, end*cols)
					if !kernels.HasRows || o.Rows == nil || cols > size || !o.Rows(form.y(a)[lo*cols:end*cols], form.x(a)[lo*cols:end*cols], cols) {
						for row := lo; row < end; row++ {
							y, x, v := operands(a, row)
							o.Short(y, x, v)
						}
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
					o.Fold(y, x, states(a)[u/perRow*perRow:], u%perRow, u%perRow+1)
				}
			}},
			{units: rows, ns: 20 * float64(perRow), do: func(a *args, lo, hi int) {
				s := states(a)
				for row := lo; row < hi; row++ {
					s[units+row] = o.Merged(s[row*perRow:][:perRow])
				}
			}},
			{units: units, ns: ns * float64(size), do: func(a *args, lo, hi int) {
				for u := lo; u < hi; u++ {
					from, to := block(u)
					y, x, v := operands(a, u/perRow)
					s := states(a)
					o.Finish(y, x, v, s[u/perRow*perRow:], s[units+u/perRow], u%perRow, u%perRow+1)
					form.after(a, from, to)
				}
			}},
		}}
	}
}
