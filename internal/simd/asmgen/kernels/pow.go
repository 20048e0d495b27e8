package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

var powers = []*ir.Kernel{
	elementwise("Pow", "a b", "float32(math.Pow(float64(a[i]), float64(b[i])))", 1, func(b *builder) f {
		return pow(b, b.Input(0), b.Input(1))
	}, powNote),
	elementwise("PowScalar", "a; e", "float32(math.Pow(float64(a[i]), float64(e)))", 1, func(b *builder) f {
		return pow(b, b.Input(0), b.Param(0))
	}, powNote),
}

const powNote = "Within 1.3 ULP."

// powLimit is the largest exponent that the kernel takes.
const powLimit = 4096

// pow is 2^(y·log₂ x) for positive normal x, and 0 for +0 and y > 0; the rest is the portable fallback's. An error of the exponent is one of
// the result, relatively, and it goes up to 150: so it is taken in double precision.
//
// With x = 2ᵏ·m and s = (m−1)/(m+1), log m = 2·(s + s³/3 + s⁵/5 + …), where s and s³/3 are doubled.
func pow(b *builder, x, y f) f {
	bits := b.Bits(x)
	zero := b.And(b.EQI(bits, b.ConstInt(0)), b.LT(b.Const(0), y))
	b.Guard(b.Or(b.And(abnormal(b, bits), b.Not(zero)), beyond(b, b.Abs(y), powLimit)))
	k, m := logReduce(b, bits)
	one := b.Const(1)

	// s = r/d, and what of it the rounding of d and of the quotient lost.
	r, d := b.Sub(m, one), b.Add(m, one)
	dl := b.Sub(m, b.Sub(d, one))
	inverse := b.Div(one, d)
	s := b.Mul(r, inverse)
	sl := b.Mul(b.NegMulAdd(s, dl, remainder(b, r, s, d)), inverse)

	// w = s³/3 + s⁵/5 + …, the first term doubled.
	const third = 1. / 3
	z, zl := twoProd(b, s, s)
	zl = b.MulAdd(b.Add(s, s), sl, zl)
	t, tl := twoProd(b, z, b.Const(third))
	rest := b.Mul(b.Mul(z, z), b.Poly(z, atanhPoly...))
	tl = b.Add(b.MulAdd(z, b.Const(third-rounded32(third)), b.MulAdd(zl, b.Const(third), tl)), rest)
	w, wl := twoProd(b, s, t)
	wl = b.MulAdd(s, tl, b.MulAdd(sl, t, wl))

	// log₂ x = k + (s + w)·2/ln 2, times y.
	const scale = 2 / math.Ln2
	h, hl := fastTwoSum(b, s, w)
	hl = b.Add(hl, b.Add(sl, wl))
	g, gl := twoProd(b, h, b.Const(scale))
	gl = b.MulAdd(hl, b.Const(scale), b.MulAdd(h, b.Const(scale-rounded32(scale)), gl))
	l, ll := fastTwoSum(b, b.FromInt(k), g)
	ll = b.Add(ll, gl)
	e, el := twoProd(b, y, l)
	el = b.MulAdd(y, ll, el)

	return b.Select(zero, b.Const(0), exp2(b, e, el))
}

// atanhPoly is (atanh s/s − 1 − s²/3)/s⁴ of s² for |s| ≤ √2−1 over √2+1; times s⁴ it is right within 2⁻³⁶.
var atanhPoly = []float64{0x1.999a00p-3, 0x1.24527cp-3, 0x1.dfa264p-4}

// exp2 is 2^(x+lo) for small lo.
func exp2(b *builder, x, lo f) f {
	x = clamp(b, x, -160, 160)
	t := b.Add(x, b.Const(magic+254))
	r := b.Add(b.Sub(x, b.Sub(t, b.Const(magic+254))), lo)
	const ln2 = 0x1.62e430p-1
	p := b.MulAdd(b.Mul(r, r), b.Poly(r, exp2Poly...), b.Mul(r, b.Const(ln2)))
	// The power in two factors, as it may be beyond the range of either sign.
	n := b.Bits(t)
	n1 := b.ShrL(n, 1)
	s1, s2 := b.Float(b.Shl(n1, 23)), b.Float(b.Shl(b.SubI(n, n1), 23))
	return b.Mul(b.MulAdd(s1, p, s1), s2)
}

// exp2Poly is (2ʳ − 1 − r·ln 2)/r² for |r| ≤ 0.5; 2ʳ is then right within 2⁻²⁸.
var exp2Poly = []float64{0x1.ebfbdcp-3, 0x1.c6af76p-5, 0x1.3b2daep-7, 0x1.5f0c56p-10, 0x1.41adeap-13}
