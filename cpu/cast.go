package cpu

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

func cast(c *call) work {
	from, to := c.in[0].DType, c.out.DType
	switch {
	case from == to:
		return copyAll(c)
	case to == compute.Float32:
		return one(c.out.Len(), engine.Widening.Ns(), func(a *args, lo, hi int) { widen(a.out.f32()[lo:hi], a.in[0], from, lo) })
	case from == compute.Float32:
		return one(c.out.Len(), engine.Narrowing.Ns(), func(a *args, lo, hi int) { narrow(a.out, to, lo, a.in[0].f32()[lo:hi]) })
	}
	return one(c.out.Len(), engine.Widening.Ns()+engine.Narrowing.Ns(), func(a *args, lo, hi int) {
		var block [256]float32
		for ; lo < hi; lo += len(block) {
			x := block[:min(len(block), hi-lo)]
			widen(x, a.in[0], from, lo)
			narrow(a.out, to, lo, x)
		}
	})
}

// widen reads elements of a type that is cast from an element on.
func widen(dst []float32, src view, d compute.DType, at int) {
	switch d {
	case compute.Float32:
		copy(dst, src.f32()[at:])
	case compute.Float16:
		kernels.WidenF16(dst, src.u16()[at:])
	case compute.Uint8:
		kernels.WidenU8(dst, src.u8()[at:])
	case compute.BFloat16:
		kernels.WidenBF16(dst, src.u16()[at:])
	}
}

// widenRows loads rows of n elements from an element on, stride apart.
func widenRows(dst []float32, src view, d compute.DType, at, n, stride int) {
	if d == compute.Float16 {
		kernels.WidenF16Rows(dst, src.u16()[at:], n, stride)
		return
	}
	for ; len(dst) > 0; dst, at = dst[n:], at+stride {
		widen(dst[:n], src, d, at)
	}
}

// narrow stores elements as a type that is cast, from an element on.
func narrow(dst view, d compute.DType, at int, src []float32) {
	switch d {
	case compute.Float32:
		copy(dst.f32()[at:], src)
	case compute.Float16:
		kernels.NarrowF16(dst.u16()[at:][:len(src)], src)
	case compute.Uint8:
		kernels.NarrowU8(dst.u8()[at:][:len(src)], src)
	case compute.BFloat16:
		kernels.NarrowBF16(dst.u16()[at:][:len(src)], src)
	}
}
