package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

var activations = []*ir.Kernel{
	unary("Sigmoid", "float32(1 / (1 + math.Exp(-float64(x[i]))))", 2, func(b *builder, x f) f {
		n, d := gate(b, b.Neg(clamp(b, x, -110, 30)), nil)
		return b.Div(n, d)
	}, "Within 1.8 ULP."),
	unary("SiLU", "float32(float64(x[i]) / (1 + math.Exp(-float64(x[i]))))", 2, func(b *builder, x f) f {
		c := b.MaxNaN(x, b.Const(-110))
		n, d := gate(b, b.Neg(b.MinNaN(c, b.Const(30))), nil)
		return b.Div(b.Mul(n, c), d)
	}, "Within 1.8 ULP. −Inf gives 0, its limit."),
	unary("GELU", "gelu(x[i])", 1, gelu, "gelu is ½x·(1 + tanh(√(2/π)·(x + 0.044715x³))).",
		"Within 1.8 ULP. −Inf gives 0, its limit."),
	unary("GELUErf", "float32(0.5 * float64(x[i]) * math.Erfc(-float64(x[i])/math.Sqrt2))", 2, geluErf,
		"Within 2 ULP. −Inf gives 0, its limit."),
	unary("Erf", "float32(math.Erf(float64(x[i])))", 1, erf, "Within 1.5 ULP."),
	unary("Mish", "float32(float64(x[i]) * math.Tanh(math.Log1p(math.Exp(float64(x[i])))))", 1, mish,
		"Within 1.6 ULP. −Inf gives 0, its limit."),
	unary("Softplus", "float32(math.Log1p(math.Exp(float64(x[i]))))", 1, softplus, "Within 1.9 ULP."),
	elementwise("ELU", "x; alpha", "elu(x[i])", 2, func(b *builder) f {
		x := b.Input(0)
		return b.Select(b.LT(b.Const(0), x), x, b.Mul(b.Param(0), expm1Negative(b, x)))
	}, "elu(x) is x where x > 0, else alpha·(eˣ − 1). Within 1.7 ULP."),
	unary("SELU", "selu(x[i])", 2, func(b *builder, x f) f {
		y := b.Mul(b.Const(seluScale*seluAlpha), expm1Negative(b, x))
		return b.Select(b.LT(b.Const(0), x), b.Mul(b.Const(seluScale), x), y)
	}, "selu(x) is scale·x where x > 0, else scale·alpha·(eˣ − 1), with the constants of Klambauer et al. (2017).",
		"Within 2 ULP."),
}

// Constants of SELU: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
const (
	seluAlpha = 1.6732632423543772848170429916717
	seluScale = 1.0507009873554804934193349852946
)

// gate returns n and d with n/d = 1/(1 + e^(x+lo)) for −60 ≤ x ≤ 150. Where e^x is large both are multiplied by 2⁻⁶⁴, so that
// nothing overflows and only the division rounds to a denormal result; n·y then is exact for the y that occur.
func gate(b *builder, x f, lo *f) (n, d f) {
	q, t := expm1Parts(b, x, lo, 0)
	high := b.LT(b.Const(64), x)
	s := power(b, b.Sub(t, b.Select(high, b.Const(64), b.Const(0))))
	n = b.Select(high, b.Const(0x1p-64), b.Const(1))
	sum, lost := fastTwoSum(b, s, n)
	return n, b.Add(b.MulAdd(s, q, lost), sum)
}

// gelu is x/(1 + e⁻²ᵘ) with u = √(2/π)·(x + 0.044715x³). An error of 2u is one of the result, relatively, so it is taken in
// double precision: 2u = x·(c + d·x²).
func gelu(b *builder, x f) f {
	const c, d = -2 * math.Sqrt2 / math.SqrtPi, -2 * math.Sqrt2 / math.SqrtPi * 0.044715
	c1, d1 := truncated(c, 16), truncated(d, 12)
	c2, d2 := b.Const(c-c1), b.Const(d-d1)
	a := b.MaxNaN(x, b.Const(-11))
	v := b.MinNaN(a, b.Const(6))
	z, zl := twoProd(b, v, v)
	var w, wl f // c + d·z
	if b.Features.FMA {
		w = b.FMA(b.Const(d1), z, b.Const(c1))
		wl = b.FMA(b.Const(d1), z, b.Sub(b.Const(c1), w)) // the difference is exact, as c1 is short
	} else {
		var h, hl f
		h, hl = twoProd(b, z, b.Const(d1))
		w, wl = twoSum(b, h, b.Const(c1))
		wl = b.Add(wl, hl)
	}
	wl = b.Add(wl, b.MulAdd(b.Const(d1), zl, b.MulAdd(d2, z, c2)))
	u, ul := twoProd(b, v, w)
	ul = b.MulAdd(v, wl, ul)
	n, den := gate(b, u, &ul)
	return b.Div(b.Mul(n, a), den)
}

// softplus is max(x, 0) + log(1 + e) with e = e⁻ˡˣˡ.
func softplus(b *builder, x f) f {
	q, s, c := expNegative(b, b.MaxNaN(minusAbs(b, x), b.Const(-105)), nil)
	e, el := fastTwoSum(b, s, b.Mul(s, q))
	e = b.Mul(e, c)
	m := b.MaxNaN(x, b.Const(0))
	sum, lost := fastTwoSum(b, e, b.Min(m, b.Const(64)))
	// What e lost counts 1/(1 + e) times, nearly 1 − e/2.
	lost = b.MulAdd(b.Mul(el, c), b.MulAdd(e, b.Const(-0.5), b.Const(1)), lost)
	y := b.Add(b.MulAdd(b.Mul(e, e), b.Poly(e, log1pPoly...), lost), sum)
	return b.Max(y, m) // m where it is beyond 64
}

// minusAbs is −|x|.
func minusAbs(b *builder, x f) f { return b.Float(b.OrI(b.Bits(x), b.ConstInt(math.MinInt32))) }

// log1pPoly is (log(1 + e) − e)/e² for 0 ≤ e ≤ 1; the logarithm is then right within 2⁻²⁷.
var log1pPoly = []float64{
	-0x1.ffffd2p-2, 0x1.554dd0p-2, -0x1.ff23e6p-3, 0x1.934b54p-3, -0x1.3a435ep-3, 0x1.b4ae08p-4, -0x1.d6b08cp-5,
	0x1.4917cep-6, -0x1.af49cep-9,
}

// mish is x·h/(h + 1) with h = e + e²/2, e = eˣ. Seven roundings would be too many: e, h and h + 1 carry what they lose, and
// the quotient is corrected by its remainder. The e and h here are scaled as expNegative has it.
func mish(b *builder, x f) f {
	v := clamp(b, x, -110, 20)
	q, s, c := expNegative(b, v, nil)
	one := b.Const(1)
	e, el := fastTwoSum(b, s, b.Mul(s, q))
	u := b.Mul(e, c)
	p, pl := twoProd(b, e, b.Mul(u, b.Const(0.5)))
	h, hl := twoSum(b, e, p)
	hl = b.Add(b.Add(hl, pl), b.MulAdd(el, u, el))
	d, dl := twoSum(b, b.Mul(h, c), one)
	dl = b.MulAdd(hl, c, dl)
	inverse := b.Div(one, d)
	r := b.Mul(h, inverse)
	rest := b.Add(remainder(b, h, r, d), b.NegMulAdd(r, dl, hl))
	y := b.Mul(b.MulAdd(v, r, b.Mul(v, b.Mul(rest, inverse))), c)
	return b.Select(b.LT(b.Const(20), x), x, y)
}
