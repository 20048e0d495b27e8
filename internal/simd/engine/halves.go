package engine

import (
	"github.com/wavelane/wavelane/internal/simd/gemm"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Widening and Narrowing are what conversions between float32 and 16 bits cost.
var Widening, Narrowing = Cost{Scalar: 1.5, AVX512: 0.15}, Cost{Scalar: 3, AVX512: 0.3}

// Widen sets y to the numbers of h, and Narrow h to the nearest of y, on several threads where they are many.
func Widen(y []float32, h gemm.Half) { Widening.convert(y, h, kernels.WidenF16, kernels.WidenBF16) }

func Narrow(h gemm.Half, y []float32) {
	Narrowing.convert(y, h, func(y []float32, x []uint16) { kernels.NarrowF16(x, y) }, func(y []float32, x []uint16) { kernels.NarrowBF16(x, y) })
}

func (c Cost) convert(y []float32, h gemm.Half, f16, bf16 func(y []float32, x []uint16)) {
	f := f16
	if h.Brain {
		f = bf16
	}
	threads := c.threads(len(y))
	if threads == 1 {
		f(y, h.Bits)
		return
	}
	part := c.part()
	InParts(CeilDiv(len(y), part), threads, func(i int) {
		lo, hi := i*part, min((i+1)*part, len(y))
		f(y[lo:hi], h.Bits[lo:hi])
	})
}
