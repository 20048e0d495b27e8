package cpu

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// trainingBlock is the number of elements that kernels are applied to one after the other: their operands stay in L1.
const trainingBlock = 512

// blockwise is work on blocks of n elements, with memory for further operands.
func blockwise(n int, ns float64, operands int, do func(a *args, lo, hi int, memory [][]float32)) work {
	return one(n, ns, func(a *args, lo, hi int) {
		buffers := engine.Borrow(operands * trainingBlock)
		defer engine.Scratch.Put(buffers)
		memory := make([][]float32, operands)
		for ; lo < hi; lo += trainingBlock {
			end := min(lo+trainingBlock, hi)
			for i := range memory {
				memory[i] = (*buffers)[i*trainingBlock:][:end-lo]
			}
			do(a, lo, end, memory)
		}
	})
}

func swigluBackward(c *call) work {
	return blockwise(c.out.Len(), 2*siluBackwardOp.Cost.Ns(), 2, func(a *args, lo, hi int, memory [][]float32) {
		s, u := memory[0], memory[1]
		gate, up, dy := a.in[0].f32()[lo:hi], a.in[1].f32()[lo:hi], a.in[2].f32()[lo:hi]
		dgate, dup := a.outs[0].f32()[lo:hi], a.outs[1].f32()[lo:hi]
		siluSlope(s, u, gate)
		kernels.Mul(u, dy, up)
		kernels.Mul(dgate, s, u)
		kernels.SiLU(s, gate)
		kernels.Mul(dup, s, dy)
	})
}

func adam(c *call) work {
	o := c.attr.Options.(compute.AdamOptions)
	return blockwise(c.out.Len(), 1, 2, func(a *args, lo, hi int, memory [][]float32) {
		step := 0.0
		if len(a.in) == 5 {
			step = float64(max(a.in[4].i32()[0], 1))
		}
		k := catalogue.AdamOf(o, step)
		t, u := memory[0], memory[1]
		p, m, v := a.outs[0].f32()[lo:hi], a.outs[1].f32()[lo:hi], a.outs[2].f32()[lo:hi]
		g := a.in[3].f32()[lo:hi]
		kernels.Scale(m, m, float32(k.Beta1))
		kernels.Axpy(m, m, g, float32(1-k.Beta1))
		kernels.Mul(t, g, g)
		kernels.Scale(v, v, float32(k.Beta2))
		kernels.Axpy(v, v, t, float32(1-k.Beta2))
		kernels.Sqrt(t, v)
		kernels.ScaleAdd(t, t, float32(k.Root), float32(k.Eps))
		kernels.Scale(u, m, float32(k.Rate))
		kernels.Div(t, u, t)
		kernels.Scale(p, p, float32(k.Decay))
		kernels.Sub(p, p, t)
	})
}

var clipByNormOp = engine.SpanOp{Name: "ClipByNorm", Cost: engine.Cost{Scalar: 1, AVX512: 0.5}, F: func(y, x, sumsq, _ []float32, p engine.Numbers) {
	last, f := float32(0), float32(1) // the norm is mostly the same
	for i, s := range sumsq {
		if s != last {
			last, f = s, 1
			if s != 0 {
				f = min(1, p[0]/float32(math.Sqrt(float64(s))))
			}
		}
		y[i] = x[i] * f
	}
}}
