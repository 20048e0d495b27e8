package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// Arithmetic that keeps what rounding loses: the result is a sum hi + lo. Knuth's and Dekker's algorithms, see Muller et al.,
// "Handbook of Floating-Point Arithmetic", 2018, ch. 4.

// twoSum is x + y exactly.
func twoSum(b *builder, x, y f) (hi, lo f) {
	hi = b.Add(x, y)
	d := b.Sub(hi, x)
	return hi, b.Add(b.Sub(x, b.Sub(hi, d)), b.Sub(y, d))
}

// fastTwoSum is x + y exactly where |x| ≥ |y| or x is 0.
func fastTwoSum(b *builder, x, y f) (hi, lo f) {
	hi = b.Add(x, y)
	return hi, b.Sub(y, b.Sub(hi, x))
}

// twoProd is x·y exactly unless lo underflows.
func twoProd(b *builder, x, y f) (hi, lo f) {
	hi = b.Mul(x, y)
	if b.Features.FMA {
		return hi, b.FMA(x, y, b.Neg(hi))
	}
	xh, xl := split(b, x)
	yh, yl := split(b, y)
	lo = b.Sub(b.Mul(xh, yh), hi)
	return hi, b.Add(b.Add(lo, b.Add(b.Mul(xh, yl), b.Mul(xl, yh))), b.Mul(xl, yl))
}

// remainder is x − q·d exactly for q the quotient x/d, or a neighbour of it.
func remainder(b *builder, x, q, d f) f {
	if b.Features.FMA {
		return b.FNMA(q, d, x)
	}
	p, pl := twoProd(b, q, d)
	return b.Sub(b.Sub(x, p), pl)
}

// split is x as a sum of halves with 12 bits each.
func split(b *builder, x f) (hi, lo f) {
	const mask = -1 << 12
	if x.Op == ir.OpConst {
		v := math.Float32frombits(x.Imm)
		h := math.Float32frombits(x.Imm & (1<<32 + mask))
		return b.Const(float64(h)), b.Const(float64(v - h))
	}
	hi = b.Float(b.AndI(b.Bits(x), b.ConstInt(mask)))
	return hi, b.Sub(x, hi)
}

// rounded32 is v rounded to float32, so that v − rounded32(v) is a second part of it.
func rounded32(v float64) float64 { return float64(float32(v)) }

// truncated is v cut to a number of significant bits, so that small integers times it are exact.
func truncated(v float64, bits int) float64 {
	m, e := math.Frexp(v)
	return math.Ldexp(math.Trunc(math.Ldexp(m, bits)), e-bits)
}
