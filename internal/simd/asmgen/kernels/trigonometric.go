package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

var trigonometrics = []*ir.Kernel{
	unary("Sin", "float32(math.Sin(float64(x[i])))", 1, sin, "Within 1.8 ULP."),
	unary("Cos", "float32(math.Cos(float64(x[i])))", 1, cos, "Within 2 ULP."),
	unary("Tan", "float32(math.Tan(float64(x[i])))", 1, tan, "Within 1.7 ULP."),
	unary("Asin", "float32(math.Asin(float64(x[i])))", 1, asin, "Within 1.5 ULP."),
	unary("Acos", "float32(math.Acos(float64(x[i])))", 1, acos, "Within 1.3 ULP."),
	unary("Atan", "float32(math.Atan(float64(x[i])))", 1, atan, "Within 1.6 ULP."),
}

// trigLimit is the largest argument of the trigonometric kernels. The reduction is right in all bits of float32 up to there;
// larger ones are the portable fallback's.
const trigLimit = 0x1p14

// piParts are π in parts; n times a part is exact for the n that occur up to trigLimit, but for the last.
func piParts(b *builder) []float64 {
	if b.Features.FMA { // which is exact by itself
		return []float64{0x1.921fb6p+1, -0x1.777a5cp-24, -0x1.ee59dap-49}
	}
	const bits = 10
	rest := math.Pi
	var p []float64
	for range 4 {
		p = append(p, truncated(rest, bits))
		rest -= p[len(p)-1]
	}
	return append(p, rest+1.2246467991473532e-16) // π − float64(π)
}

// piReduce is x − n·unit·π as a sum r + lo.
func piReduce(b *builder, x, n f, unit float64) (r, lo f) {
	parts := piParts(b)
	part := func(k int) f { return b.Const(unit * parts[k]) }
	r = b.NegMulAdd(n, part(0), x) // exactly
	if b.Features.FMA {
		p := b.Mul(n, part(1))
		pl := b.FNMA(n, part(1), p) // p − n·part
		r, lo = fastTwoSum(b, r, b.Neg(p))
		return r, b.FNMA(n, part(2), b.Add(lo, pl))
	}
	r = b.NegMulAdd(n, part(1), r) // still exactly
	lo = b.Const(0)
	for k := 2; k < 4; k++ {
		var lost f
		r, lost = fastTwoSum(b, r, b.Mul(n, b.Const(-unit*parts[k])))
		lo = b.Add(lo, lost)
	}
	return r, b.NegMulAdd(n, part(4), lo)
}

// sinPoly is (sin r − r)/r³ of r² for |r| ≤ π/2; sin r is then right within 2⁻²⁷.
var sinPoly = []float64{-0x1.55554cp-3, 0x1.110edap-7, -0x1.9f70eep-13, 0x1.5dc8c4p-19}

// sinReduced is sin(x − nπ). The first term of the polynomial is added last, lest the others' error grows; without FMA its
// factor r² is taken in two parts too.
func sinReduced(b *builder, x, n f) f {
	c, rest := b.Const(sinPoly[0]), sinPoly[1:]
	if b.Features.FMA {
		r := x
		for _, p := range piParts(b) {
			r = b.FNMA(n, b.Const(p), r)
		}
		z := b.Mul(r, r)
		return b.FMA(r, b.FMA(z, c, b.Mul(b.Mul(z, z), b.Poly(z, rest...))), r)
	}
	r, lo := piReduce(b, x, n, 1)
	r = b.Add(r, lo)
	rh, rl := split(b, r)
	zh, zl := b.Mul(rh, rh), b.Mul(rl, b.Add(r, rh))
	z := b.Add(zh, zl)
	w := b.Add(b.Mul(zl, c), b.Mul(b.Mul(z, z), b.Poly(z, rest...)))
	return b.Add(b.Mul(r, b.Add(b.Mul(zh, c), w)), r)
}

// sin x = (−1)ⁿ·sin(x − nπ).
func sin(b *builder, x f) f {
	b.Guard(beyond(b, b.Abs(x), trigLimit))
	t := b.MulAdd(x, b.Const(1/math.Pi), b.Const(magic))
	y := sinReduced(b, x, b.Sub(t, b.Const(magic)))
	return flip(b, b.Select(b.EQ(x, b.Const(0)), x, y), b.Shl(b.Bits(t), 31))
}

// cos x = −(−1)ⁿ·sin(x − (n+½)π).
func cos(b *builder, x f) f {
	a := b.Abs(x)
	b.Guard(beyond(b, a, trigLimit))
	t := b.Add(b.MulAdd(a, b.Const(1/math.Pi), b.Const(-0.5)), b.Const(magic+1))
	n := b.Add(b.Sub(t, b.Const(magic+1)), b.Const(0.5))
	return flip(b, sinReduced(b, a, n), b.Shl(b.Bits(t), 31))
}

// tan x is tan r or, for odd n, −1/tan r, with r = x − n·π/2.
func tan(b *builder, x f) f {
	b.Guard(beyond(b, b.Abs(x), trigLimit))
	t := b.MulAdd(x, b.Const(2/math.Pi), b.Const(magic))
	r, lo := piReduce(b, x, b.Sub(t, b.Const(magic)), 0.5)
	z := b.Mul(r, r)
	lo = b.MulAdd(lo, z, lo) // times tan' r, nearly
	y := b.Add(b.MulAdd(b.Mul(r, z), b.Poly(z, tanPoly...), lo), r)
	odd := b.EQI(b.AndI(b.Bits(t), b.ConstInt(1)), b.ConstInt(1))
	y = b.Div(b.Select(odd, b.Const(-1), y), b.Select(odd, y, b.Const(1)))
	return b.Select(b.EQ(x, b.Const(0)), x, y)
}

// tanPoly is (tan r − r)/r³ of r² for |r| ≤ π/4; tan r is then right within 2⁻²⁹.
var tanPoly = []float64{
	0x1.555560p-2, 0x1.110d9ep-3, 0x1.bad9c2p-5, 0x1.5cc0d4p-6, 0x1.62cb2ep-7, 0x1.9c138cp-14, 0x1.1e91aap-8,
}

// asinPoly is (asin r − r)/r³ of r² for |r| ≤ 9/16; asin r is then right within 2⁻²⁹.
var asinPoly = []float64{
	0x1.555526p-3, 0x1.334932p-4, 0x1.6a59a6p-5, 0x1.169d94p-5, 0x1.b9e74ap-8, 0x1.84fbeap-5,
}

// halfPi and halfPiLow are π/2 in two parts.
const (
	halfPi    = 0x1.921fb6p+0
	halfPiLow = math.Pi/2 - halfPi
)

// asinParts returns p, which is asin a up to 9/16 and asin √((1−a)/2) above, as the mask tells.
func asinParts(b *builder, a f) (p f, above ir.M) {
	above = b.LT(b.Const(0.5625), a)
	z := b.Select(above, b.Mul(b.Sub(b.Const(1), a), b.Const(0.5)), b.Mul(a, a))
	s := b.Select(above, b.Sqrt(z), a)
	return b.MulAdd(b.Mul(s, z), b.Poly(z, asinPoly...), s), above
}

// asin a = π/2 − 2·asin √((1−a)/2).
func asin(b *builder, x f) f {
	p, above := asinParts(b, b.Abs(x))
	outer := b.Add(b.NegMulAdd(p, b.Const(2), b.Const(halfPi)), b.Const(halfPiLow))
	return b.CopySign(b.Select(above, outer, p), x)
}

// acos x is 2·asin √((1−x)/2) above 9/16, π minus that of −x below −9/16, and π/2 − asin x between.
func acos(b *builder, x f) f {
	p, above := asinParts(b, b.Abs(x))
	negative := b.LT(x, b.Const(0))
	p2 := b.Add(p, p)
	outer := b.Select(negative, b.Sub(b.Const(math.Pi), p2), p2)
	inner := b.Sub(b.Const(halfPi), b.Sub(flip(b, p, sign(b, x)), b.Const(halfPiLow))) // asin is odd
	return b.Select(above, outer, inner)
}

// atanPoly is (atan r − r)/r³ of r² for |r| ≤ 1; atan r is then right within 2⁻²⁸.
var atanPoly = []float64{
	-0x1.55553ep-2, 0x1.9991e4p-3, -0x1.242086p-3, 0x1.c08c50p-4, -0x1.580930p-4, 0x1.da2aa0p-5, -0x1.fd8004p-6,
	0x1.6427e0p-7, -0x1.d3614ep-10,
}

// atan a = π/2 − atan 1/a.
func atan(b *builder, x f) f {
	a, one := b.Abs(x), b.Const(1)
	r := b.Div(b.MinNaN(a, one), b.MaxNaN(a, one))
	z := b.Mul(r, r)
	p := b.MulAdd(b.Mul(r, z), b.Poly(z, atanPoly...), r)
	return flip(b, b.Select(b.LT(one, a), b.Sub(b.Const(halfPi), b.Sub(p, b.Const(halfPiLow))), p), sign(b, x))
}
