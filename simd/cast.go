package simd

import "github.com/wavelane/wavelane/compute"

func cast(c *call) work {
	from, to := c.in[0].DType, c.out.DType
	switch {
	case from == to:
		return copyAll(c)
	case to == compute.Float32:
		return one(c.out.Len(), 1, func(a *args, lo, hi int) { widen(a.out.f32()[lo:hi], a.in[0], from, lo) })
	case from == compute.Float32:
		return one(c.out.Len(), 3, func(a *args, lo, hi int) { narrow(a.out, to, lo, a.in[0].f32()[lo:hi]) })
	}
	return one(c.out.Len(), 4, func(a *args, lo, hi int) {
		var block [256]float32
		for ; lo < hi; lo += len(block) {
			x := block[:min(len(block), hi-lo)]
			widen(x, a.in[0], from, lo)
			narrow(a.out, to, lo, x)
		}
	})
}
