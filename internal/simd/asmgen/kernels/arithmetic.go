package kernels

import "github.com/wavelane/wavelane/internal/simd/asmgen/ir"

var arithmetic = []*ir.Kernel{
	binary("Add", "a[i] + b[i]", (*builder).Add),
	binary("Sub", "a[i] - b[i]", (*builder).Sub),
	binary("Mul", "a[i] * b[i]", (*builder).Mul),
	binary("Div", "a[i] / b[i]", (*builder).Div),
	binary("Maximum", "max(a[i], b[i])", (*builder).MaxNaN, "NaN if either is; either zero where both are zeros."),
	binary("Minimum", "min(a[i], b[i])", (*builder).MinNaN, "NaN if either is; either zero where both are zeros."),
	binary("CopySign", "float32(math.Copysign(float64(a[i]), float64(b[i])))", (*builder).CopySign),

	elementwise("AddScalar", "a; s", "a[i] + s", 4, func(b *builder) f { return b.Add(b.Input(0), b.Param(0)) }),
	elementwise("Scale", "a; f", "f * a[i]", 4, func(b *builder) f { return b.Mul(b.Input(0), b.Param(0)) }),
	elementwise("ScaleAdd", "a; f s", "f*a[i] + s", 4, func(b *builder) f {
		return b.MulAdd(b.Input(0), b.Param(0), b.Param(1))
	}, fused),
	elementwise("Axpy", "a x; f", "a[i] + f*x[i]", 4, func(b *builder) f {
		return b.MulAdd(b.Input(1), b.Param(0), b.Input(0))
	}, fused),
	elementwise("MulAdd", "a b c", "a[i]*b[i] + c[i]", 4, func(b *builder) f {
		return b.MulAdd(b.Input(0), b.Input(1), b.Input(2))
	}, fused),
	elementwise("Lerp", "a b t", "a[i] + t[i]*(b[i]-a[i])", 4, func(b *builder) f {
		x := b.Input(0)
		return b.MulAdd(b.Input(2), b.Sub(b.Input(1), x), x)
	}, fused),

	binary("Less", "truth(a[i] < b[i])", comparing((*builder).LT), truth),
	binary("LessEqual", "truth(a[i] <= b[i])", comparing((*builder).LE), truth),
	binary("Equal", "truth(a[i] == b[i])", comparing((*builder).EQ), truth),
	elementwise("Select", "cond a b", "select(cond[i] != 0, a[i], b[i])", 4, func(b *builder) f {
		return b.Select(b.NE(b.Input(0), b.Const(0)), b.Input(1), b.Input(2))
	}, "select(c, a, b) is a if c, else b. NaN is not 0."),

	unary("Neg", "-x[i]", 4, (*builder).Neg),
	unary("Abs", "float32(math.Abs(float64(x[i])))", 4, (*builder).Abs),
	unary("Sqrt", "float32(math.Sqrt(float64(x[i])))", 4, (*builder).Sqrt),
	unary("Recip", "1 / x[i]", 4, func(b *builder, x f) f { return b.Div(b.Const(1), x) }),
}

const truth = "truth is 1 or 0; that of NaN is 0."

// comparing is a comparison as a number.
func comparing(compare func(b *builder, x, y f) ir.M) func(b *builder, x, y f) f {
	return func(b *builder, x, y f) f { return b.Select(compare(b, x, y), b.Const(1), b.Const(0)) }
}

const fused = "The product is rounded or not, as suits the instruction set."

var roundings = []*ir.Kernel{
	unary("Floor", "float32(math.Floor(float64(x[i])))", 4, (*builder).Floor),
	unary("Ceil", "float32(math.Ceil(float64(x[i])))", 4, (*builder).Ceil),
	unary("Round", "float32(math.RoundToEven(float64(x[i])))", 4, (*builder).Nearest),
	unary("Trunc", "float32(math.Trunc(float64(x[i])))", 4, (*builder).Trunc),
	unary("Fract", "x[i] - float32(math.Trunc(float64(x[i])))", 4, func(b *builder, x f) f {
		return b.Sub(x, b.Trunc(x))
	}, "±Inf gives NaN."),
}

var clamps = []*ir.Kernel{
	unary("Sign", "sign(x[i])", 4, func(b *builder, x f) f {
		zero := b.Const(0)
		return b.Select(b.LT(zero, x), b.Const(1), b.Select(b.LT(x, zero), b.Const(-1), x))
	}, "sign is −1, ±0 or 1 by the sign of x; NaN for NaN."),
	elementwise("Clip", "x; low high", "min(max(x[i], low), high)", 4, func(b *builder) f {
		low, high := b.Param(0), b.Param(1)
		nan := b.SelectI(b.Or(b.IsNaN(low), b.IsNaN(high)), b.ConstInt(-1), b.ConstInt(0)) // once, not for every element
		return b.Float(b.OrI(b.Bits(b.MinOf(high, b.MaxOf(low, b.Input(0)))), nan))
	}, "NaN gives NaN."),
	unary("ReLU", "max(x[i], 0)", 4, func(b *builder, x f) f { return b.MaxNaN(x, b.Const(0)) },
		"NaN gives NaN, −0 either zero."),
	elementwise("LeakyReLU", "x; alpha", "leaky(x[i])", 4, func(b *builder) f {
		x := b.Input(0)
		return b.Select(b.LT(x, b.Const(0)), b.Mul(x, b.Param(0)), x)
	}, "leaky(x) is alpha·x where x < 0, else x."),
	unary("HardSwish", "x[i] * min(max(x[i]+3, 0), 6) / 6", 4, func(b *builder, x f) f {
		gate := b.MinNaN(b.MaxNaN(b.Add(x, b.Const(3)), b.Const(0)), b.Const(6))
		// 6·(1/6) rounds to 1, so that large x stay what they are; −Inf must not meet the gate's 0.
		return b.Mul(b.MaxNaN(x, b.Const(-4)), b.Mul(gate, b.Const(1./6)))
	}, "Within 2.5 ULP. −Inf gives 0, its limit."),
}
