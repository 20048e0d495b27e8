package kernels

import (
	"math"

	"github.com/wavelane/wavelane/simd/internal/asmgen/ir"
)

var logarithms = []*ir.Kernel{
	unary("Log", "float32(math.Log(float64(x[i])))", 1, func(b *builder, x f) f {
		return log(b, x, math.Ln2, logPoly)
	}, "Within 1.8 ULP."),
	unary("Log2", "float32(math.Log2(float64(x[i])))", 1, func(b *builder, x f) f {
		return log(b, x, 1, log2Poly)
	}, "Within 1.8 ULP."),
	unary("Log10", "float32(math.Log10(float64(x[i])))", 1, func(b *builder, x f) f {
		return log(b, x, math.Ln2/math.Ln10, log10Poly)
	}, "Within 1.8 ULP."),
}

// The logarithms of 1 + r divided by r, for √½ ≤ 1 + r ≤ √2, within 2⁻²⁷, 2⁻²⁶ and 2⁻²⁵.
var (
	logPoly = []float64{
		1, -0x1.fffff8p-2, 0x1.555550p-2, -0x1.000430p-2, 0x1.99a3a6p-3, -0x1.54255cp-3, 0x1.227b08p-3, -0x1.0f5b80p-3,
		0x1.080bc6p-3, -0x1.36a3b6p-4,
	}
	log2Poly = []float64{
		0x1.715476p+0, -0x1.71546ep-1, 0x1.ec7244p-2, -0x1.715d3ep-2, 0x1.27274ep-2, -0x1.e9b23cp-3, 0x1.ae6352p-3,
		-0x1.9ab778p-3, 0x1.40fa5ep-3, -0x1.af8a7cp-5,
	}
	log10Poly = []float64{
		0x1.bcb7b2p-2, -0x1.bcb7a0p-3, 0x1.28789ep-3, -0x1.bcc434p-4, 0x1.6495f2p-4, -0x1.2797d8p-4, 0x1.dd1562p-5,
		-0x1.b9e348p-5, 0x1.329b56p-4, -0x1.063e02p-4,
	}
)

// log is the logarithm of x that log2 of 2 is in: with x = 2ᵏ·m, √½ ≤ m < √2, it is k·unit + r·p(r) with r = m − 1. Denormal and
// negative numbers, Inf and NaN are the twin's; 0 is too common for that.
func log(b *builder, x f, unit float64, p []float64) f {
	bits := b.Bits(x)
	zero := b.Const(0)
	b.Guard(b.And(abnormal(b, bits), b.NE(x, zero)))
	k, m := logReduce(b, bits)
	r := b.Sub(m, b.Const(1))
	y := b.MulAdd(b.FromInt(k), b.Const(unit), b.Mul(r, b.Poly(r, p...)))
	return b.Select(b.EQ(x, zero), b.Const(math.Inf(-1)), y)
}

// abnormal reports what is not a positive normal number, by one unsigned comparison.
func abnormal(b *builder, bits ir.I) ir.M {
	const least, most = 0x00800000, 0x7f7fffff
	return b.GTI(b.AddI(bits, b.ConstInt(math.MaxInt32-least+1)), b.ConstInt(math.MinInt32+(most-least)))
}

// logReduce returns k and m with 2ᵏ·m the number of the bits and √½ ≤ m < √2.
func logReduce(b *builder, bits ir.I) (k ir.I, m f) {
	const sqrtHalf = 0x3f3504f3
	k = b.ShrA(b.SubI(bits, b.ConstInt(sqrtHalf)), 23)
	return k, b.Float(b.SubI(bits, b.Shl(k, 23)))
}

// log1p is log(1 + w) for 0 ≤ w < 2¹²⁶: what u = 1 + w loses is added to the reduced argument.
func log1p(b *builder, w f) f {
	one := b.Const(1)
	u := b.Add(w, one)
	lost := b.Sub(w, b.Sub(u, one))
	k, m := logReduce(b, b.Bits(u))
	scale := b.Float(b.SubI(b.Bits(one), b.Shl(k, 23))) // 2⁻ᵏ
	r := b.MulAdd(lost, scale, b.Sub(m, one))
	return b.MulAdd(b.FromInt(k), b.Const(math.Ln2), b.Mul(r, b.Poly(r, logPoly...)))
}
