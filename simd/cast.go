package simd

import (
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
)

func cast(c *call) work {
	from, to := c.in[0].DType, c.out.DType
	switch {
	case from == to:
		return copyAll(c)
	case to == compute.Float16:
		return one(c.out.Len(), 3, func(a *args, lo, hi int) {
			y := a.out.u16()[lo:hi]
			for i, v := range a.in[0].f32()[lo:hi] {
				y[i] = float16.Fromfloat32(v).Bits()
			}
		})
	}
	return one(c.out.Len(), 2, func(a *args, lo, hi int) {
		y := a.out.f32()[lo:hi]
		for i, v := range a.in[0].u16()[lo:hi] {
			y[i] = float16.Frombits(v).Float32()
		}
	})
}
