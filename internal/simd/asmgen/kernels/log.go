package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

var logarithms = []*ir.Kernel{
	unary("Log", "float32(math.Log(float64(x[i])))", 1, func(b *builder, x f) f {
		return log(b, x, naturalLog)
	}, "Within 1 ULP."),
	unary("Log2", "float32(math.Log2(float64(x[i])))", 1, func(b *builder, x f) f {
		return log(b, x, log2)
	}, "Within 1.4 ULP."),
	unary("Log10", "float32(math.Log10(float64(x[i])))", 1, func(b *builder, x f) f {
		return log(b, x, log10)
	}, "Within 1.4 ULP."),
}

// logBase is what logarithms to a base need.
type logBase struct {
	two  float64   // the logarithm of 2
	unit float64   // that of e
	poly []float64 // (that of 1 + r, − unit·r)/r² for √½ ≤ 1 + r ≤ √2; the logarithm is then right within 2⁻²⁶
}

var (
	naturalLog = logBase{math.Ln2, 1, []float64{
		-0x1.fffff8p-2, 0x1.555558p-2, -0x1.00044cp-2, 0x1.999fe8p-3, -0x1.541aeep-3, 0x1.22bd7ep-3, -0x1.0ffc7ep-3,
		0x1.069aaep-3, -0x1.2fe77ap-4,
	}}
	log2 = logBase{1, math.Log2E, []float64{
		-0x1.715470p-1, 0x1.ec70a2p-2, -0x1.715b1ep-2, 0x1.278b8ap-2, -0x1.eaaaeap-3, 0x1.9facf2p-3, -0x1.841dd4p-3,
		0x1.961890p-3, -0x1.0a9128p-3,
	}}
	log10 = logBase{math.Ln2 / math.Ln10, math.Log10E, []float64{
		-0x1.bcb7aap-3, 0x1.287a88p-3, -0x1.bcbfb0p-4, 0x1.63dac6p-4, -0x1.27634ep-4, 0x1.f4e4cep-5, -0x1.d425ecp-5,
		0x1.e7eab8p-5, -0x1.3e11c2p-5,
	}}
)

// log is the logarithm of x = 2ᵏ·m, √½ ≤ m < √2, from k and r = m − 1. Denormal and negative numbers, Inf and NaN are the
// portable fallback's; 0 is too common for that.
func log(b *builder, x f, base logBase) f {
	bits := b.Bits(x)
	zero := b.Const(0)
	b.Guard(b.And(abnormal(b, bits), b.NE(x, zero)))
	k, m := logReduce(b, bits)
	y := base.combine(b, b.FromInt(k), b.Sub(m, b.Const(1)), nil)
	return b.Select(b.EQ(x, zero), b.Const(math.Inf(-1)), y)
}

// combine is k·two + unit·log(1 + r), small terms first; rest, unless nil, is added.
func (base logBase) combine(b *builder, k, r f, rest *f) f {
	y, p := b.Mul(r, r), b.Poly(r, base.poly...)
	if rest != nil {
		y = b.MulAdd(y, p, *rest)
	} else {
		y = b.Mul(y, p)
	}
	high := truncated(base.two, 16) // k times it is exact
	if low := base.two - high; low != 0 {
		y = b.MulAdd(k, b.Const(low), y)
	}
	switch {
	case base.unit == 1:
		y = b.Add(y, r)
	case b.Features.FMA:
		unit := rounded32(base.unit)
		y = b.FMA(r, b.Const(unit), b.FMA(r, b.Const(base.unit-unit), y))
	default:
		unit := truncated(base.unit, 12)
		rh, rl := split(b, r)
		y = b.Add(b.Mul(rh, b.Const(unit)), b.MulAdd(rl, b.Const(unit), b.MulAdd(r, b.Const(base.unit-unit), y)))
	}
	if high == 1 {
		return b.Add(k, y)
	}
	return b.MulAdd(k, b.Const(high), y)
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

// log1p is log(1 + w + wl) for 0 ≤ w < 2¹²⁶ and wl small against it: what u = 1 + w loses is added to the reduced argument,
// wl to the result, where it counts nearly once if w is small, and nothing if not.
func log1p(b *builder, w, wl f) f {
	one := b.Const(1)
	u := b.Add(w, one)
	lost := b.Sub(w, b.Sub(u, one))
	k, m := logReduce(b, b.Bits(u))
	scale := b.Float(b.SubI(b.Bits(one), b.Shl(k, 23))) // 2⁻ᵏ
	r := b.MulAdd(lost, scale, b.Sub(m, one))
	rest := b.Mul(wl, scale)
	return naturalLog.combine(b, b.FromInt(k), r, &rest)
}
