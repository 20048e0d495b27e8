package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// magic rounds: numbers up to 2²² added to it become integers, which the low bits of the sum hold.
const magic = 0x1.8p23

var exponentials = []*ir.Kernel{
	unary("Exp", "float32(math.Exp(float64(x[i])))", 2, exp, "Within 1.6 ULP."),
	{
		Name: "ExpSub", Inputs: []string{"x"}, Params: []string{"m"}, Unroll: 2,
		Doc: doc("ExpSub", "y[i] = float32(math.Exp(float64(x[i] - m))); r += y[i]", []string{"and returns r. " + shiftedContract}),
		Body: func(b *builder) {
			y := shiftedExp(b, b.Sub(b.Input(0), b.Param(0)))
			b.Store(y)
			b.Accumulate(0, ir.MergeAdd, func(acc f) f { return b.Add(acc, y) })
		},
	},
	fold("SumExpSub", "x; m", "r += float32(math.Exp(float64(x[i] - m)))", 0, ir.MergeAdd, func(b *builder, acc f) f {
		return b.Add(acc, shiftedExp(b, b.Sub(b.Input(0), b.Param(0))))
	}, shiftedContract),
	unary("Expm1", "float32(math.Expm1(float64(x[i])))", 2, expm1, "Within 1.7 ULP."),
}

const shiftedContract = "x[i] - m must not exceed 88; m is usually the largest x. The relative error is within\n" +
	"1.9e-7 + 2.8e-9·|x[i] - m|, but what is below 2⁻¹²⁶ may be 0."

func exp(b *builder, x f) f {
	q, s := expParts(b, clamp(b, x, -105, 90))
	return b.Mul(b.MulAdd(s, q, s), s)
}

// clamp is x limited to [low, high]; NaN stays.
func clamp(b *builder, x f, low, high float64) f {
	return b.MaxNaN(b.MinNaN(x, b.Const(high)), b.Const(low))
}

// expParts returns q and s with eˣ = s²·(1 + q), −½ ≤ q ≤ 1, for |x| ≤ 160.
//
// Two factors of s reach denormal results with one rounding, and +Inf without an early overflow. With n = round(x/(2·ln 2))
// and r = x − 2n·ln 2 (Cody and Waite, in two parts), s is 2ⁿ and q = eʳ − 1.
func expParts(b *builder, x f) (q, s f) {
	const high = 0x1.62e4p0 // 2·ln 2 in 15 bits
	t := b.MulAdd(x, b.Const(0.5*math.Log2E), b.Const(magic+127))
	n := b.Sub(t, b.Const(magic+127))
	r := b.NegMulAdd(n, b.Const(high), x)
	r = b.NegMulAdd(n, b.Const(2*math.Ln2-high), r)
	return b.MulAdd(b.Mul(r, r), b.Poly(r, expPoly...), r), power(b, t)
}

// expPoly is (eʳ − 1 − r)/r² for |r| ≤ 0.6935; eʳ is then right within 2⁻²⁶.
var expPoly = []float64{0x1.00000cp-1, 0x1.555512p-3, 0x1.5549d2p-5, 0x1.1126c6p-7, 0x1.71c6d8p-10, 0x1.9bdc90p-13}

// power is 2ⁿ, −127 < n < 128, of t = magic + 127 + n.
func power(b *builder, t f) f { return b.Float(b.Shl(b.Bits(t), 23)) }

const ln2High = 0x1.62e4p-1 // ln 2 in 15 bits

// Constants of shiftedExp, which x86 has in the loop of softmax too.
const (
	ShiftedFloor = -88
	ShiftedMagic = magic + 127
)

// ShiftedPoly is eʳ for |r| ≤ ½·ln 2, within 2⁻²³·⁴ of it.
var ShiftedPoly = []float64{1, 0x1.fffff6p-1, 0x1.fffdc4p-2, 0x1.555a6ep-3, 0x1.573ad0p-5, 0x1.0fa7d8p-7}

// shiftedExp is eˣ for x ≤ 88, as of differences from a maximum. One factor 2ⁿ is enough for them; an exponent of −127 makes it 0.
//
// The product with ln 2 in one part changes x by 2⁻²⁸·⁴ of it, which is less than what rounding the difference did.
func shiftedExp(b *builder, x f) f {
	x = b.MaxNaN(x, b.Const(ShiftedFloor))
	t := b.MulAdd(x, b.Const(math.Log2E), b.Const(ShiftedMagic))
	n := b.Sub(t, b.Const(ShiftedMagic))
	r := b.NegMulAdd(n, b.Const(math.Ln2), x)
	if !b.Features.FMA { // the product rounds
		r = b.Sub(b.Sub(x, b.Mul(n, b.Const(ln2High))), b.Mul(n, b.Const(math.Ln2-ln2High)))
	}
	return b.Mul(b.Poly(r, ShiftedPoly...), power(b, t))
}

// expm1Parts returns q and t = magic + 127 + n + shift with e^(x+lo) = 2ⁿ·(1 + q), |q| < 0.42. It is more accurate than
// expParts. A lo of nil is 0.
func expm1Parts(b *builder, x f, lo *f, shift float64) (q, t f) {
	low := b.Const(math.Ln2 - ln2High)
	t = b.MulAdd(x, b.Const(math.Log2E), b.Const(magic+127+shift))
	n := b.Sub(t, b.Const(magic+127+shift))
	r := b.NegMulAdd(n, b.Const(ln2High), x)
	if lo != nil {
		r = b.Add(r, b.NegMulAdd(n, low, *lo))
	} else {
		r = b.NegMulAdd(n, low, r)
	}
	return b.MulAdd(b.Mul(r, r), b.Poly(r, expm1Poly...), r), t
}

// expm1Poly is (eʳ − 1 − r)/r² for |r| ≤ 0.347; eʳ − 1 is then right within 2⁻²⁶.
var expm1Poly = []float64{0x1.fffffep-2, 0x1.5554aap-3, 0x1.555796p-5, 0x1.122beap-7, 0x1.6acf9ap-10}

// expNegative returns q, s and c with eˣ = s·(1 + q)·c for −110 ≤ x ≤ 20: s·(1 + q) is a normal number.
func expNegative(b *builder, x f, lo *f) (q, s, c f) {
	q, t := expm1Parts(b, x, lo, 64)
	return q, power(b, t), b.Const(0x1p-64)
}

// expm1 is 2·(½s·q + (½s − ½)): s itself would overflow before the result does.
func expm1(b *builder, x f) f {
	q, t := expm1Parts(b, clamp(b, x, -20, 89), nil, -1)
	s := power(b, t)
	h := b.MulAdd(s, q, b.Sub(s, b.Const(0.5)))
	// Half of a denormal number may not be one; and −0 stays.
	return b.Select(b.LT(b.Abs(x), b.Const(0x1p-25)), x, b.Add(h, h))
}

// expm1Negative is eˣ − 1 for x ≤ 0, anything for x > 0.
func expm1Negative(b *builder, x f) f {
	q, t := expm1Parts(b, b.MaxNaN(x, b.Const(-20)), nil, 0)
	s := power(b, t)
	return b.MulAdd(s, q, b.Sub(s, b.Const(1)))
}
