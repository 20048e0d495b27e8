package catalogue

import (
	"math"

	"github.com/wavelane/wavelane/internal/program"
)

func sigmoid(x float64) float64            { return 1 / (1 + math.Exp(-x)) }
func limitAtMinusInf(x, f float64) float64 { return zeroIf(math.IsInf(x, -1), f) }
func zeroIf(zero bool, f float64) float64 {
	if zero {
		return 0
	}
	return f
}
func geluTanh(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// Constants of SELU: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
const (
	SELUAlpha = 1.6732632423543772848170429916717
	SELUScale = 1.0507009873554804934193349852946
)

const minusInfGivesZero = "−Inf gives 0, its limit."

// Unary entries.
var (
	Neg   = unary("neg", "Neg", "−x", exact, func(x float64) float64 { return -x })
	Abs   = unary("abs", "Abs", "|x|", exact, math.Abs)
	Sqrt  = unary("sqrt", "Sqrt", "√x", rounded, math.Sqrt).WithSpecial("Negative x gives NaN.").WithDomain(0, 100)
	Recip = unary("recip", "Recip", "1/x", rounded, func(x float64) float64 { return 1 / x })
	Exp   = unary("exp", "Exp", "eˣ", program.Tolerance{Rel: 1e-5}, math.Exp).WithDomain(-20, 20)
	Log   = unary("log", "Log", "the natural logarithm of x", program.Tolerance{Abs: 1e-6, Rel: 1e-6}, math.Log).
		WithSpecial("0 gives −Inf, negative x NaN.").WithDomain(1e-6, 1000)
	Log2 = unary("log2", "Log2", "the base-2 logarithm of x", program.Tolerance{Abs: 1e-6, Rel: 1e-6}, math.Log2).
		WithSpecial("0 gives −Inf, negative x NaN.").WithDomain(1e-6, 1000)
	Sin = unary("sin", "Sin", "the sine of x in radians", program.Tolerance{Abs: 2e-6}, math.Sin).
		WithSpecial("±Inf gives NaN. Beyond |x| = 8192 the error grows with |x|.").WithDomain(-1000, 1000)
	Cos = unary("cos", "Cos", "the cosine of x in radians", program.Tolerance{Abs: 2e-6}, math.Cos).
		WithSpecial("±Inf gives NaN. Beyond |x| = 8192 the error grows with |x|.").WithDomain(-1000, 1000)
	Tanh = unary("tanh", "Tanh", "the hyperbolic tangent of x", program.Tolerance{Abs: 1e-7, Rel: 4e-6}, math.Tanh).WithDomain(-12, 12)

	Floor = unary("floor", "Floor", "the largest integer not above x", exact, math.Floor).WithDomain(-1e4, 1e4)
	Ceil  = unary("ceil", "Ceil", "the smallest integer not below x", exact, math.Ceil).WithDomain(-1e4, 1e4)
	Round = unary("round", "Round", "the integer nearest to x, halves to even", exact, math.RoundToEven).WithDomain(-1e4, 1e4)
	Trunc = unary("trunc", "Trunc", "x without its fraction", exact, math.Trunc).WithDomain(-1e4, 1e4)
	Sign  = unary("sign", "Sign", "−1, 0 or 1 by the sign of x", exact, func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x
	}).WithSpecial("±0 gives 0.")

	ReLU = unary("relu", "ReLU", "max(x, 0)", exact, func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	})
	LeakyReLU = scalarUnary("leaky_relu", "LeakyReLU", "x where x ≥ 0, else alpha·x", rounded,
		[]program.Scalar{scalar("alpha", 0.01, 0, 2)}, func(x, p []float64) float64 {
			if x[0] < 0 {
				return p[0] * x[0]
			}
			return x[0]
		})
	ELU = scalarUnary("elu", "ELU", "x where x > 0, else alpha·(eˣ − 1)", nearExact,
		[]program.Scalar{scalar("alpha", 1, 0.5)}, func(x, p []float64) float64 {
			if x[0] > 0 {
				return x[0]
			}
			return p[0] * math.Expm1(x[0])
		})
	SELU = unary("selu", "SELU", "ELU with the self-normalising constants of Klambauer et al. (2017)", nearExact,
		func(x float64) float64 {
			if x > 0 {
				return SELUScale * x
			}
			return SELUScale * SELUAlpha * math.Expm1(x)
		})
	Sigmoid = unary("sigmoid", "Sigmoid", "1/(1+e⁻ˣ)", program.Tolerance{Rel: 1e-5}, sigmoid).WithDomain(-20, 20)
	GELU    = unary("gelu", "GELU", "x·Φ(x) in its tanh form, ½x·(1+tanh(√(2/π)·(x+0.044715x³)))", nearExact,
		func(x float64) float64 { return limitAtMinusInf(x, geluTanh(x)) }).WithSpecial(minusInfGivesZero).WithDomain(-8, 8)
	GELUErf = unary("gelu_erf", "GELUErf", "x·Φ(x) exactly, ½x·(1+erf(x/√2))", nearExact,
		func(x float64) float64 { return limitAtMinusInf(x, 0.5*x*math.Erfc(-x/math.Sqrt2)) }).
		WithSpecial(minusInfGivesZero).WithDomain(-8, 8)
	SiLU = unary("silu", "SiLU", "x·sigmoid(x), also known as swish", nearExact,
		func(x float64) float64 { return limitAtMinusInf(x, x*sigmoid(x)) }).WithSpecial(minusInfGivesZero).WithDomain(-20, 20)
	HardSwish = unary("hardswish", "HardSwish", "x·min(max(x+3, 0), 6)/6", nearExact,
		func(x float64) float64 { return limitAtMinusInf(x, x*math.Min(math.Max(x+3, 0), 6)/6) }).
		WithSpecial(minusInfGivesZero).WithDomain(-8, 8)
	Mish = unary("mish", "Mish", "x·tanh(softplus(x))", nearExact,
		func(x float64) float64 { return limitAtMinusInf(x, x*math.Tanh(softplus(x))) }).
		WithSpecial(minusInfGivesZero).WithDomain(-20, 20)
	Softplus = unary("softplus", "Softplus", "log(1+eˣ)", nearExact, softplus).WithDomain(-20, 20)
	Clip     = scalarUnary("clip", "Clip", "x limited to [low, high]: min(max(x, low), high)", exact,
		[]program.Scalar{scalar("low", -1, 0), scalar("high", 1, 0.5)},
		func(x, p []float64) float64 { return smaller(larger(x[0], p[0]), p[1]) }).WithSpecial("NaN if a bound is NaN.")
	Scale = scalarUnary("scale", "Scale", "x·factor", exact, []program.Scalar{scalar("factor", 0.5, -3, 0)},
		func(x, p []float64) float64 { return p[0] * x[0] })
	PowScalar = scalarUnary("pow_scalar", "PowScalar", "x to the power exponent", program.Tolerance{Rel: 1e-4},
		[]program.Scalar{scalar("exponent", 2, 0.5, -1, 3, 0)}, func(x, p []float64) float64 { return math.Pow(x[0], p[0]) }).
		WithSpecial(powSpecial).WithDomain(-8, 8)
)

const powSpecial = "Special values as C's pow: a negative base takes integer exponents, else NaN; x⁰ and 1ʸ are 1."

func softplus(x float64) float64 {
	return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
}

// Binary entries.
var (
	Add     = binary("add", "Add", "a + b", exact, func(a, b float64) float64 { return a + b })
	Sub     = binary("sub", "Sub", "a − b", exact, func(a, b float64) float64 { return a - b })
	Mul     = binary("mul", "Mul", "a·b", exact, func(a, b float64) float64 { return a * b })
	Div     = binary("div", "Div", "a/b", rounded, func(a, b float64) float64 { return a / b })
	Maximum = binary("maximum", "Maximum", "the larger of a and b", exact, larger).WithSpecial("NaN if either is NaN.")
	Minimum = binary("minimum", "Minimum", "the smaller of a and b", exact, smaller).WithSpecial("NaN if either is NaN.")
	Pow     = binary("pow", "Pow", "a to the power b", program.Tolerance{Rel: 1e-4}, math.Pow).WithSpecial(powSpecial)

	Less      = comparison("less", "Less", "1 where a < b, else 0", func(a, b float64) bool { return a < b })
	LessEqual = comparison("less_equal", "LessEqual", "1 where a ≤ b, else 0", func(a, b float64) bool { return a <= b })
	Equal     = comparison("equal", "Equal", "1 where a = b, else 0", func(a, b float64) bool { return a == b })
)

// comparison is an entry for [Select] to choose by. What is greater is less the other way round.
func comparison(name, method, doc string, f func(a, b float64) bool) *program.Entry {
	return binary(name, method, doc, exact, func(a, b float64) float64 {
		if f(a, b) {
			return 1
		}
		return 0
	}).WithSpecial("0 if either is NaN; −0 equals 0.")
}

// Ternary entries.
var (
	FMA = broadcasting(program.Ternary, "fma", "FMA", "a·b + c, fused or not", program.Tolerance{Mag: 2e-7},
		[]program.Input{{Name: "a"}, {Name: "b"}, {Name: "c"}}, func(x, _ []float64) float64 { return x[0]*x[1] + x[2] }).
		WithSpecial("Where a·b overflows, so may the result, to ±Inf or NaN.")
	Lerp = broadcasting(program.Ternary, "lerp", "Lerp", "a + t·(b − a)", program.Tolerance{Mag: 4e-7},
		[]program.Input{{Name: "a"}, {Name: "b"}, {Name: "t"}}, func(x, _ []float64) float64 { return x[0] + x[2]*(x[1]-x[0]) }).
		WithSpecial("Where t·(b − a) overflows, so may the result, to ±Inf or NaN.")
	Select = broadcasting(program.Ternary, "select", "Select", "a where cond is not 0, else b", exact,
		[]program.Input{{Name: "cond"}, {Name: "a"}, {Name: "b"}}, func(x, _ []float64) float64 {
			if x[0] != 0 {
				return x[1]
			}
			return x[2]
		}).WithSpecial("−0 is 0, NaN is not, as in C and NumPy. NaN and Inf on the side that is not chosen have no effect.")
)

// larger is math.Max, but for (+Inf, NaN), where that is +Inf; ours, as NumPy's, is NaN.
func larger(a, b float64) float64 {
	if a != a || b != b {
		return math.NaN()
	}
	return math.Max(a, b)
}

// smaller is math.Min with NaN as larger has it.
func smaller(a, b float64) float64 {
	if a != a || b != b {
		return math.NaN()
	}
	return math.Min(a, b)
}
