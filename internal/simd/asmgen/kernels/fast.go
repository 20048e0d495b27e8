package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// The fast functions have relative errors about 10⁻⁴ and no denormal results.
var fasts = []*ir.Kernel{
	unary("FastExp", "float32(math.Exp(float64(x[i])))", 2, fastExp,
		"Within 8.5e-5, relatively, for −87 ≤ x ≤ 88; 0 below −87.7, +Inf above 88.4."),
	unary("FastTanh", "float32(math.Tanh(float64(x[i])))", 2, fastTanh, "Within 5e-5, relatively."),
	unary("FastSigmoid", "float32(1 / (1 + math.Exp(-float64(x[i]))))", 2, func(b *builder, x f) f {
		one := b.Const(1)
		return b.Div(one, b.Add(fastExp(b, b.Neg(x)), one))
	}, "Within 8.5e-5, relatively, for x ≥ −87; 0 below −88.4."),
	unary("FastGELU", "gelu(x[i])", 2, func(b *builder, x f) f {
		const c, d = -2 * math.Sqrt2 / math.SqrtPi, -2 * math.Sqrt2 / math.SqrtPi * 0.044715
		a := b.MaxNaN(x, b.Const(-11))
		u := b.Mul(a, b.MulAdd(b.Mul(a, a), b.Const(d), b.Const(c)))
		return b.Div(a, b.Add(fastExp(b, u), b.Const(1)))
	}, "gelu is ½x·(1 + tanh(√(2/π)·(x + 0.044715x³))).", "Within 1e-4, relatively, for x ≥ −9; 0 below −10.1."),
}

// fastExp is 2ⁿ·2ʳ with a cubic; 2ⁿ is 0 for n = −127 and Inf for n = 128.
func fastExp(b *builder, x f) f {
	x = clamp(b, x, -88, 88.8)
	t := b.MulAdd(x, b.Const(math.Log2E), b.Const(magic+127))
	r := b.MulAdd(x, b.Const(math.Log2E), b.Sub(b.Const(magic+127), t))
	return b.Mul(b.Poly(r, 0x1.fff68ap-1, 0x1.62f32ap-1, 0x1.f0e096p-3, 0x1.c3f5fep-5), power(b, t))
}

// fastTanh is a rational function in which numerator and denominator are minimax together (Lawson's algorithm).
func fastTanh(b *builder, x f) f {
	x = clamp(b, x, -5.5, 5.5)
	z := b.Mul(x, x)
	n := b.Mul(x, b.Poly(z, 0x1.ffff78p-1, 0x1.da1bf6p-4, 0x1.9d22dep-10))
	return b.Div(n, b.Poly(z, 1, 0x1.cbd488p-2, 0x1.265238p-6, 0x1.f9b504p-15))
}
