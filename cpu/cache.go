package cpu

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
)

func kvAppend(c *call) work {
	r, _ := catalogue.KVAppendShape(c.in[0].Shape, c.in[1].Shape, c.in[2].Shape) // checked
	return appendRows(c, r, max(0, r.N-r.Capacity), func(_ *args, sequence, position int) (int, bool) {
		return sequence*r.Capacity + position%r.Capacity, true
	})
}

func kvAppendPaged(c *call) work {
	r, p, _ := catalogue.KVAppendPagedShape(c.in[0].Shape, c.in[1].Shape, c.in[2].Shape, c.in[3].Shape) // checked
	return appendRows(c, r, 0, func(a *args, sequence, position int) (int, bool) {
		return p.Slot(a.in[3].i32(), sequence, position)
	})
}

// appendRows writes rows from number first on to their slots in the result, which holds the cache already.
func appendRows(c *call, r catalogue.CacheRows, first int, place func(a *args, sequence, position int) (slot int, ok bool)) work {
	n := r.N - first
	from, to := c.in[1].DType, c.out.DType
	return one(r.Batch*n, 10+float64(r.Width), func(a *args, lo, hi int) {
		for u := lo; u < hi; u++ {
			sequence, i := u/n, first+u%n
			position := int(a.in[2].i32()[sequence]) + i
			if position < 0 || position > math.MaxInt32 {
				continue
			}
			slot, ok := place(a, sequence, position)
			if !ok {
				continue
			}
			at, row := slot*r.Width, (sequence*r.N+i)*r.Width
			if from == to {
				size := to.Size()
				copy(a.out.bytes(to)[at*size:], a.in[1].bytes(from)[row*size:][:r.Width*size])
			} else {
				narrow(a.out, to, at, a.in[1].f32()[row:][:r.Width])
			}
		}
	})
}
