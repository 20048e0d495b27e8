package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

var hyperbolics = []*ir.Kernel{
	unary("Tanh", "float32(math.Tanh(float64(x[i])))", 2, tanh, "Within 1.7 ULP."),
	unary("Sinh", "float32(math.Sinh(float64(x[i])))", 1, sinh, "Within 1.7 ULP."),
	unary("Cosh", "float32(math.Cosh(float64(x[i])))", 1, func(b *builder, x f) f {
		e := quarterExp(b, b.Abs(x))
		return b.Add(b.Add(e, e), b.Div(b.Const(0.125), e))
	}, "Within 1.6 ULP."),
	unary("Asinh", "float32(math.Asinh(float64(x[i])))", 1, asinh, "Within 1.9 ULP."),
	unary("Acosh", "float32(math.Acosh(float64(x[i])))", 1, acosh, "Within 2 ULP."),
	unary("Atanh", "float32(math.Atanh(float64(x[i])))", 1, atanh, "Within 1.9 ULP."),
}

// sign is the sign bit of x.
func sign(b *builder, x f) ir.I { return b.AndI(b.Bits(x), b.ConstInt(math.MinInt32)) }

// flip changes the sign of x where the sign bit s is set.
func flip(b *builder, x f, s ir.I) f { return b.Float(b.XorI(b.Bits(x), s)) }

// tanh |x| is 1 − 2/(e²ˡˣˡ + 1) above 0.55 and a polynomial below. The exponential may be coarse, as its error hardly counts.
func tanh(b *builder, x f) f {
	a := b.MinNaN(b.Abs(x), b.Const(10))
	z := b.Mul(a, a)
	small := b.MulAdd(b.Mul(a, z), b.Poly(z, tanhPoly...), a)
	t := b.MulAdd(a, b.Const(2*math.Log2E), b.Const(magic+127))
	r := b.NegMulAdd(b.Sub(t, b.Const(magic+127)), b.Const(math.Ln2/2), a)
	e := b.Poly(r, 1, 2, 0x1.fffffcp+0, 0x1.55548ap+0, 0x1.55584ep-1, 0x1.123f30p-2, 0x1.6ad158p-4) // e²ʳ
	one := b.Const(1)
	y := b.Sub(one, b.Div(b.Const(2), b.MulAdd(power(b, t), e, one)))
	return b.CopySign(b.Select(b.LT(b.Const(0.55), a), y, small), x)
}

// tanhPoly is (tanh r − r)/r³ of r² for |r| ≤ 0.55; tanh r is then right within 2⁻²⁹.
var tanhPoly = []float64{-0x1.55554ap-2, 0x1.110ceep-3, -0x1.b91e7ep-5, 0x1.58e518p-6, -0x1.9921a0p-8}

// quarterExp is eˣ/4 for x ≥ 0.
func quarterExp(b *builder, x f) f {
	q, t := expm1Parts(b, b.MinNaN(x, b.Const(89.7)), nil, -2)
	s := power(b, t)
	return b.MulAdd(s, q, s)
}

// sinh |x| is eˡˣˡ/2 − e⁻ˡˣˡ/2 above 1 and a polynomial below.
func sinh(b *builder, x f) f {
	a := b.Abs(x)
	e := quarterExp(b, a)
	large := b.Sub(b.Add(e, e), b.Div(b.Const(0.125), e))
	z := b.Mul(a, a)
	small := b.MulAdd(b.Mul(a, z), b.Poly(z, 0x1.555556p-3, 0x1.1110e0p-7, 0x1.a022bcp-13, 0x1.756c1ep-19), a)
	return flip(b, b.Select(b.LT(a, b.Const(1)), small, large), sign(b, x))
}

// large is where functions whose formulas overflow leave the argument to the portable fallback; so they do with NaN.
const large = 0x1p60

// beyond reports |x| > limit or NaN, for a that is |x|.
func beyond(b *builder, a f, limit float64) ir.M {
	return b.GTI(b.Bits(a), b.ConstInt(int32(math.Float32bits(float32(limit)))))
}

// asinh |x| = log(1 + w) with w = |x| + x²/(1 + √(1+x²)).
func asinh(b *builder, x f) f {
	a := b.Abs(x)
	b.Guard(beyond(b, a, large))
	z := b.Mul(a, a)
	one := b.Const(1)
	w, wl := fastTwoSum(b, a, b.Div(z, b.Add(b.Sqrt(b.Add(z, one)), one)))
	return flip(b, log1p(b, w, wl), sign(b, x))
}

// acosh x = log(1 + w) with w = (x−1) + √((x−1)(x+1)).
func acosh(b *builder, x f) f {
	one := b.Bits(b.Const(1))
	b.Guard(b.Or(b.GTI(one, b.Bits(x)), beyond(b, x, large)))
	t := b.Sub(x, b.Const(1))
	w, wl := fastTwoSum(b, b.Sqrt(b.MulAdd(t, t, b.Add(t, t))), t) // the root is the larger
	return log1p(b, w, wl)
}

// atanh |x| = ½·log(1 + w) with w = 2|x|/(1−|x|) = 2(|x| + x²/(1−|x|)).
func atanh(b *builder, x f) f {
	a := b.Abs(x)
	b.Guard(beyond(b, a, 1-0x1p-24))
	w, wl := fastTwoSum(b, a, b.Div(b.Mul(a, a), b.Sub(b.Const(1), a)))
	return flip(b, b.Mul(log1p(b, b.Add(w, w), b.Add(wl, wl)), b.Const(0.5)), sign(b, x))
}
