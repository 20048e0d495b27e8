package simd

import (
	"math"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
)

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

// widen reads elements of any type of floats from an element on.
func widen(dst []float32, src view, d compute.DType, at int) {
	switch d {
	case compute.Float32:
		copy(dst, src.f32()[at:])
	case compute.Float16:
		for i, h := range src.u16()[at:][:len(dst)] {
			dst[i] = halfToFloat(h)
		}
	case compute.BFloat16:
		for i, h := range src.bf16()[at:][:len(dst)] {
			dst[i] = h.Float32()
		}
	}
}

// narrow stores elements as any type of floats from an element on.
func narrow(dst view, d compute.DType, at int, src []float32) {
	switch d {
	case compute.Float32:
		copy(dst.f32()[at:], src)
	case compute.Float16:
		y := dst.u16()[at:][:len(src)]
		for i, v := range src {
			y[i] = float16.Fromfloat32(v).Bits()
		}
	case compute.BFloat16:
		y := dst.bf16()[at:][:len(src)]
		for i, v := range src {
			y[i] = compute.BF16Of(v)
		}
	}
}

// halfToFloat is a half's value. Its exponent counts from 112 less, which one multiplication makes up for, of subnormal numbers
// too.
func halfToFloat(h uint16) float32 {
	bits := uint32(h&0x7fff) << 13
	f := math.Float32bits(math.Float32frombits(bits) * 0x1p112)
	if bits >= 0x7c00<<13 { // Inf, or NaN made quiet
		f = bits | 0x7f800000
		if bits > 0x7c00<<13 {
			f |= 0x400000
		}
	}
	return math.Float32frombits(f | uint32(h&0x8000)<<16)
}
