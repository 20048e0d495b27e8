package cpu

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Movement copies 4-byte words as integers, whose bits no processor changes.

const moveNS = 0.5 // per word

func transpose(c *call) work {
	v, _ := catalogue.TransposeView(c.in[0].Shape, c.attr.Options.(compute.TransposeOptions)) // checked
	return strided(v)
}

func slice(c *call) work {
	v, _ := catalogue.SliceView(c.in[0].Shape, c.attr.Options.(compute.SliceOptions)) // checked
	return strided(v)
}

// strided lowers the copy of a view to contiguous memory.
func strided(v catalogue.View) work {
	shape, strides := program.Collapse(v.Shape, v.Strides)
	if len(shape) == 0 {
		shape, strides = []int{1}, [][]int{{1}}
	}
	st := strides[0]
	last := len(shape) - 1
	if st[last] > 1 {
		for axis := range last {
			if st[axis] == 1 {
				return exchanged(shape, st, axis, v.Offset)
			}
		}
	}
	inner := shape[last]
	return one(program.Len(shape), moveNS+20/float64(inner), func(a *args, lo, hi int) {
		x, y := a.in[0].u32(), a.out.u32()
		for lo < hi {
			j := lo % inner
			from := v.Offset + offset(lo/inner, shape[:last], st) + j*st[last]
			to := y[lo:min(lo+inner-j, hi)]
			if st[last] == 1 {
				copy(to, x[from:])
			} else {
				for i := range to {
					to[i] = x[from]
					from += st[last]
				}
			}
			lo += len(to)
		}
	})
}

// offset is where row-major index i of a shape lies under strides.
func offset(i int, shape, strides []int) int {
	at := 0
	for d := len(shape) - 1; d >= 0; d-- {
		at += i % shape[d] * strides[d]
		i /= shape[d]
	}
	return at
}

// exchanged copies a view whose memory runs along an axis other than the last: transpositions of matrices, one for each index
// of the other axes. Each unit is a band of one of them.
func exchanged(shape, st []int, axis, start int) work {
	const band = 64
	last := len(shape) - 1
	var outer, outerX, outerY []int // the other axes and their strides
	own := program.Strides(shape)
	for d := range last {
		if d != axis {
			outer, outerX, outerY = append(outer, shape[d]), append(outerX, st[d]), append(outerY, own[d])
		}
	}
	bands := engine.CeilDiv(shape[axis], band)
	down, across := own[axis], st[last]
	cost := 0.5 * float64(min(band, shape[axis])*shape[last])
	return one(program.Len(outer)*bands, cost, func(a *args, lo, hi int) {
		x, y := a.in[0].u32(), a.out.u32()
		for u := lo; u < hi; u++ {
			i := u % bands * band
			fromX, fromY := start+offset(u/bands, outer, outerX)+i, offset(u/bands, outer, outerY)+i*down
			kernels.Transpose(y[fromY:], down, x[fromX:], across, shape[last], min(band, shape[axis]-i))
		}
	})
}

// pad lowers a padding; each unit is one row of the result.
func pad(c *call) work {
	o := c.attr.Options.(compute.PadOptions)
	in, out, before := c.in[0].Shape, c.out.Shape, o.Before
	if len(out) == 0 {
		in, out, before = []int{1}, []int{1}, []int{0}
	}
	rows, width := program.RowsCols(out)
	return one(rows, 20+moveNS*float64(width), func(a *args, lo, hi int) {
		engine.PadRows(a.out.u32(), a.in[0].u32(), in, out, before, math.Float32bits(o.Value), lo, hi)
	})
}

// concat has a phase for each operand, which puts its rows (from the axis on) into those of the result.
func concat(c *call) work {
	axis, _ := catalogue.ConcatAxis(len(c.out.Shape), c.attr.Options.(compute.ConcatOptions)) // checked
	width := program.Len(c.out.Shape[axis:])
	var w work
	at := 0
	for k, t := range c.in {
		own, start := program.Len(t.Shape[axis:]), at
		at += own
		if own == 0 {
			continue
		}
		w.phases = append(w.phases, phase{units: t.Len(), ns: moveNS + 10/float64(own), do: func(a *args, lo, hi int) {
			x, y := a.in[k].u32(), a.out.u32()
			for lo < hi {
				j := lo % own
				n := min(own-j, hi-lo)
				copy(y[lo/own*width+start+j:][:n], x[lo:])
				lo += n
			}
		}})
	}
	return w
}

// copyAll lowers copy and reshape, of any element type.
func copyAll(c *call) work {
	return one(c.out.Bytes(), moveNS/4, func(a *args, lo, hi int) {
		copy(a.out.bytes(c.out.DType)[lo:hi], a.in[0].bytes(c.out.DType)[lo:hi])
	})
}

func fill(c *call) work {
	v := c.attr.Scalars[0]
	return one(c.out.Len(), moveNS, func(a *args, lo, hi int) { engine.FillWith(a.out.f32()[lo:hi], v) })
}
