package cpu

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// slope makes the slope at each x in s, with u of the same length to work in.
type slope func(s, u, x []float32)

// backwardOp is dy·slope(x), a block at a time. NaN goes through all kernels.
func backwardOp(name string, c engine.Cost, f slope) engine.SpanOp {
	return engine.BinaryOp(name, c, func(y, x, dy []float32) {
		const block = 512
		buffers := engine.Borrow(2 * block)
		defer engine.Scratch.Put(buffers)
		for lo := 0; lo < len(y); lo += block {
			hi := min(lo+block, len(y))
			s, u := (*buffers)[:hi-lo], (*buffers)[block:][:hi-lo]
			f(s, u, x[lo:hi])
			kernels.Mul(y[lo:hi], s, dy[lo:hi])
		}
	})
}

var (
	reluBackwardOp    = engine.BinaryOp("ReLUBackward", engine.Cost{Scalar: 0.8, AVX512: 0.3}, reluBackward)
	geluBackwardOp    = backwardOp("GELUBackward", engine.Cost{Scalar: 30, AVX512: 1.4}, geluSlope)
	geluErfBackwardOp = backwardOp("GELUErfBackward", engine.Cost{Scalar: 20, AVX512: 1.4}, geluErfSlope)
	siluBackwardOp    = backwardOp("SiLUBackward", engine.Cost{Scalar: 25, AVX512: 1.1}, siluSlope)
)

// reluBackward chooses between bit patterns: signs are hard to predict.
func reluBackward(y, x, dy []float32) {
	x, dy = x[:len(y)], dy[:len(y)]
	for i, v := range x {
		bits := math.Float32bits(dy[i])
		if !(v > 0) {
			bits = math.Float32bits(v)
		}
		if v <= 0 {
			bits = 0
		}
		y[i] = math.Float32frombits(bits)
	}
}

// Beyond steep, in either direction, slopes are what they are at infinity, and nothing overflows on the way.
const steep = 30

// siluSlope is σ·(1 + x·σ(−x)).
func siluSlope(s, u, x []float32) {
	kernels.Clip(s, x, -80, 80)
	kernels.Neg(u, s)
	kernels.Sigmoid(u, u)
	kernels.Mul(u, u, s)
	kernels.AddScalar(u, u, 1)
	kernels.Sigmoid(s, s)
	kernels.Mul(s, s, u)
}

// geluSlope is σ(w)·(1 + x·w'·σ(−w)) with w = 2·√(2/π)·(x + 0.044715x³).
func geluSlope(s, u, x []float32) {
	const a, b = 1.5957691216057308, 0.044715
	const block = 512
	w := engine.Borrow(2 * block)
	defer engine.Scratch.Put(w)
	c, q := (*w)[:len(x)], (*w)[block:][:len(x)]
	kernels.Clip(c, x, -steep, steep)
	kernels.Mul(q, c, c)
	kernels.ScaleAdd(s, q, a*b, a)
	kernels.Mul(s, s, c) // w
	kernels.ScaleAdd(q, q, 3*a*b, a)
	kernels.Mul(q, q, c) // x·w'
	kernels.Neg(u, s)
	kernels.Sigmoid(u, u)
	kernels.Mul(u, u, q)
	kernels.AddScalar(u, u, 1)
	kernels.Sigmoid(s, s)
	kernels.Mul(s, s, u)
}

// geluErfSlope is Φ(x) + x·φ(x).
func geluErfSlope(s, u, x []float32) {
	kernels.Clip(s, x, -steep, steep)
	kernels.Mul(u, s, s)
	kernels.Scale(u, u, -0.5)
	kernels.Exp(u, u)
	kernels.Mul(u, u, s)
	kernels.Scale(u, u, float32(1/math.Sqrt(2*math.Pi)))
	kernels.Scale(s, s, 1/math.Sqrt2)
	kernels.Erf(s, s)
	kernels.ScaleAdd(s, s, 0.5, 0.5)
	kernels.Add(s, s, u)
}
