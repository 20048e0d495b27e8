package kernels

import (
	"math"

	"github.com/wavelane/wavelane/simd/internal/asmgen/ir"
)

// magic rounds: numbers up to 2²² added to it become integers, which the low bits of the sum hold.
const magic = 0x1.8p23

var exponentials = []*ir.Kernel{
	unary("Exp", "float32(math.Exp(float64(x[i])))", 2, exp, "Within 1.5 ULP."),
	{
		Name: "ExpSub", Inputs: []string{"x"}, Params: []string{"m"}, Unroll: 2,
		Doc: doc("ExpSub", "y[i] = float32(math.Exp(float64(x[i] - m))); r += y[i]", []string{"and returns r. As Exp."}),
		Body: func(b *builder) {
			y := exp(b, b.Sub(b.Input(0), b.Param(0)))
			b.Store(y)
			b.Accumulate(0, ir.MergeAdd, func(acc f) f { return b.Add(acc, y) })
		},
	},
	fold("SumExpSub", "x; m", "r += float32(math.Exp(float64(x[i] - m)))", 0, ir.MergeAdd, func(b *builder, acc f) f {
		return b.Add(acc, exp(b, b.Sub(b.Input(0), b.Param(0))))
	}),
}

func exp(b *builder, x f) f {
	p, s := expParts(b, b.MaxNaN(b.MinNaN(x, b.Const(90)), b.Const(-105)))
	return b.Mul(b.Mul(p, s), s)
}

// expParts returns p and s with eˣ = p·s², ½ < p < 2, for |x| ≤ 110. Two factors of s reach denormal results with one rounding
// and +Inf without an early overflow. With n = round(x/(2·ln 2)) and r = x − 2n·ln 2, s is 2ⁿ and p = eʳ.
func expParts(b *builder, x f) (p, s f) {
	t := b.MulAdd(x, b.Const(0.5*math.Log2E), b.Const(magic+127))
	n := b.Sub(t, b.Const(magic+127))
	s = b.Float(b.Shl(b.Bits(t), 23))
	const high = 0x1.62e4p0 // 2·ln 2 in 15 bits
	r := b.NegMulAdd(n, b.Const(high), x)
	r = b.NegMulAdd(n, b.Const(2*math.Ln2-high), r)
	return b.Poly(r, 1, 1, 1./2, 1./6, 1./24, 1./120, 1./720, 1./5040), s
}
