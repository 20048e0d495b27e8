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
	Neg  = unary(program.Entry{Name: "neg", Method: "Neg", Doc: "−x"}, func(x float64) float64 { return -x })
	Abs  = unary(program.Entry{Name: "abs", Method: "Abs", Doc: "|x|"}, math.Abs)
	Sqrt = unary(program.Entry{Name: "sqrt", Method: "Sqrt", Doc: "√x", Special: "A negative x gives NaN.", Tol: rounded,
		Domain: [2]float64{0, 100}}, math.Sqrt)
	Recip = unary(program.Entry{Name: "recip", Method: "Recip", Doc: "1/x", Tol: rounded}, func(x float64) float64 { return 1 / x })
	Exp   = unary(program.Entry{Name: "exp", Method: "Exp", Doc: "eˣ", Tol: program.Tolerance{Rel: 1e-5},
		Domain: [2]float64{-20, 20}}, math.Exp)
	Log = unary(program.Entry{Name: "log", Method: "Log", Doc: "the natural logarithm of x",
		Special: "0 gives −Inf. A negative x gives NaN.", Tol: program.Tolerance{Abs: 1e-6, Rel: 1e-6},
		Domain: [2]float64{1e-6, 1000}}, math.Log)
	Log2 = unary(program.Entry{Name: "log2", Method: "Log2", Doc: "the base-2 logarithm of x",
		Special: "0 gives −Inf. A negative x gives NaN.", Tol: program.Tolerance{Abs: 1e-6, Rel: 1e-6},
		Domain: [2]float64{1e-6, 1000}}, math.Log2)
	Sin = unary(program.Entry{Name: "sin", Method: "Sin", Doc: "the sine of x in radians",
		Special: "±Inf gives NaN. Beyond |x| = 8192 the error grows with |x|.", Tol: program.Tolerance{Abs: 2e-6},
		Domain: [2]float64{-1000, 1000}}, math.Sin)
	Cos = unary(program.Entry{Name: "cos", Method: "Cos", Doc: "the cosine of x in radians",
		Special: "±Inf gives NaN. Beyond |x| = 8192 the error grows with |x|.", Tol: program.Tolerance{Abs: 2e-6},
		Domain: [2]float64{-1000, 1000}}, math.Cos)
	Tanh = unary(program.Entry{Name: "tanh", Method: "Tanh", Doc: "the hyperbolic tangent of x",
		Tol: program.Tolerance{Abs: 1e-7, Rel: 4e-6}, Domain: [2]float64{-12, 12}}, math.Tanh)

	Floor = unary(program.Entry{Name: "floor", Method: "Floor", Doc: "the largest integer not above x",
		Domain: [2]float64{-1e4, 1e4}}, math.Floor)
	Ceil = unary(program.Entry{Name: "ceil", Method: "Ceil", Doc: "the smallest integer not below x",
		Domain: [2]float64{-1e4, 1e4}}, math.Ceil)
	Round = unary(program.Entry{Name: "round", Method: "Round", Doc: "the integer nearest to x, halves to even",
		Domain: [2]float64{-1e4, 1e4}}, math.RoundToEven)
	Trunc = unary(program.Entry{Name: "trunc", Method: "Trunc", Doc: "x without its fraction", Domain: [2]float64{-1e4, 1e4}},
		math.Trunc)
	Sign = unary(program.Entry{Name: "sign", Method: "Sign", Doc: "−1, 0 or 1 by the sign of x", Special: "±0 gives 0."},
		func(x float64) float64 {
			switch {
			case x > 0:
				return 1
			case x < 0:
				return -1
			}
			return x
		})

	ReLU = unary(program.Entry{Name: "relu", Method: "ReLU", Doc: "max(x, 0)"}, func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	})
	LeakyReLU = elementwise(program.Entry{Name: "leaky_relu", Method: "LeakyReLU", Class: program.Unary,
		Doc: "x where x ≥ 0, else alpha·x", Inputs: []program.Input{{Name: "x"}},
		Scalars: []program.Scalar{scalar("alpha", 0.01, 0, 2)}, Tol: rounded, F: func(x, p []float64) float64 {
			if x[0] < 0 {
				return p[0] * x[0]
			}
			return x[0]
		}})
	ELU = elementwise(program.Entry{Name: "elu", Method: "ELU", Class: program.Unary, Doc: "x where x > 0, else alpha·(eˣ − 1)",
		Inputs: []program.Input{{Name: "x"}}, Scalars: []program.Scalar{scalar("alpha", 1, 0.5)}, Tol: nearExact,
		F: func(x, p []float64) float64 {
			if x[0] > 0 {
				return x[0]
			}
			return p[0] * math.Expm1(x[0])
		}})
	SELU = unary(program.Entry{Name: "selu", Method: "SELU",
		Doc: "ELU with the self-normalising constants of Klambauer et al. (2017)", Tol: nearExact}, func(x float64) float64 {
		if x > 0 {
			return SELUScale * x
		}
		return SELUScale * SELUAlpha * math.Expm1(x)
	})
	Sigmoid = unary(program.Entry{Name: "sigmoid", Method: "Sigmoid", Doc: "1/(1+e⁻ˣ)", Tol: program.Tolerance{Rel: 1e-5},
		Domain: [2]float64{-20, 20}}, sigmoid)
	GELU = unary(program.Entry{Name: "gelu", Method: "GELU",
		Doc: "x·Φ(x) in its tanh form, ½x·(1+tanh(√(2/π)·(x+0.044715x³)))", Special: minusInfGivesZero, Tol: nearExact,
		Domain: [2]float64{-8, 8}}, func(x float64) float64 { return limitAtMinusInf(x, geluTanh(x)) })
	GELUErf = unary(program.Entry{Name: "gelu_erf", Method: "GELUErf", Doc: "x·Φ(x) exactly, ½x·(1+erf(x/√2))",
		Special: minusInfGivesZero, Tol: nearExact, Domain: [2]float64{-8, 8}},
		func(x float64) float64 { return limitAtMinusInf(x, 0.5*x*math.Erfc(-x/math.Sqrt2)) })
	SiLU = unary(program.Entry{Name: "silu", Method: "SiLU", Doc: "x·sigmoid(x), also known as swish",
		Special: minusInfGivesZero, Tol: nearExact, Domain: [2]float64{-20, 20}},
		func(x float64) float64 { return limitAtMinusInf(x, x*sigmoid(x)) })
	HardSwish = unary(program.Entry{Name: "hardswish", Method: "HardSwish", Doc: "x·min(max(x+3, 0), 6)/6",
		Special: minusInfGivesZero, Tol: nearExact, Domain: [2]float64{-8, 8}},
		func(x float64) float64 { return limitAtMinusInf(x, x*math.Min(math.Max(x+3, 0), 6)/6) })
	Mish = unary(program.Entry{Name: "mish", Method: "Mish", Doc: "x·tanh(softplus(x))", Special: minusInfGivesZero,
		Tol: nearExact, Domain: [2]float64{-20, 20}},
		func(x float64) float64 { return limitAtMinusInf(x, x*math.Tanh(softplus(x))) })
	Softplus = unary(program.Entry{Name: "softplus", Method: "Softplus", Doc: "log(1+eˣ)", Tol: nearExact,
		Domain: [2]float64{-20, 20}}, softplus)
	Clip = elementwise(program.Entry{Name: "clip", Method: "Clip", Class: program.Unary,
		Doc: "x limited to [low, high]: min(max(x, low), high)", Special: "A bound of NaN gives NaN.",
		Inputs: []program.Input{{Name: "x"}}, Scalars: []program.Scalar{scalar("low", -1, 0), scalar("high", 1, 0.5)},
		F: func(x, p []float64) float64 { return smaller(larger(x[0], p[0]), p[1]) }})
	Scale = elementwise(program.Entry{Name: "scale", Method: "Scale", Class: program.Unary, Doc: "x·factor",
		Inputs: []program.Input{{Name: "x"}}, Scalars: []program.Scalar{scalar("factor", 0.5, -3, 0)},
		F: func(x, p []float64) float64 { return p[0] * x[0] }})
	PowScalar = elementwise(program.Entry{Name: "pow_scalar", Method: "PowScalar", Class: program.Unary, Doc: "x to the power exponent",
		Special: powSpecial, Inputs: []program.Input{{Name: "x"}},
		Scalars: []program.Scalar{scalar("exponent", 2, 0.5, -1, 3, 0)}, Tol: program.Tolerance{Rel: 1e-4},
		Domain: [2]float64{-8, 8}, F: func(x, p []float64) float64 { return math.Pow(x[0], p[0]) }})
)

const powSpecial = "Special values are those of C's pow: x⁰ and 1ʸ are 1, and a negative base gives " +
	"NaN unless the exponent is an integer."

func softplus(x float64) float64 {
	return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
}

// Binary entries.
var (
	Add     = binary(program.Entry{Name: "add", Method: "Add", Doc: "a + b"}, func(a, b float64) float64 { return a + b })
	Sub     = binary(program.Entry{Name: "sub", Method: "Sub", Doc: "a − b"}, func(a, b float64) float64 { return a - b })
	Mul     = binary(program.Entry{Name: "mul", Method: "Mul", Doc: "a·b"}, func(a, b float64) float64 { return a * b })
	Div     = binary(program.Entry{Name: "div", Method: "Div", Doc: "a/b", Tol: rounded}, func(a, b float64) float64 { return a / b })
	Maximum = binary(program.Entry{Name: "maximum", Method: "Maximum", Doc: "the larger of a and b",
		Special: "The result is NaN if either operand is."}, larger)
	Minimum = binary(program.Entry{Name: "minimum", Method: "Minimum", Doc: "the smaller of a and b",
		Special: "The result is NaN if either operand is."}, smaller)
	Pow = binary(program.Entry{Name: "pow", Method: "Pow", Doc: "a to the power b", Special: powSpecial,
		Tol: program.Tolerance{Rel: 1e-4}}, math.Pow)

	Less = comparison(program.Entry{Name: "less", Method: "Less", Doc: "1 where a < b, else 0"},
		func(a, b float64) bool { return a < b })
	LessEqual = comparison(program.Entry{Name: "less_equal", Method: "LessEqual", Doc: "1 where a ≤ b, else 0"},
		func(a, b float64) bool { return a <= b })
	Equal = comparison(program.Entry{Name: "equal", Method: "Equal", Doc: "1 where a = b, else 0"},
		func(a, b float64) bool { return a == b })
)

// comparison is an entry whose results [Select] chooses by. There is no entry for greater: swap the operands of less.
func comparison(e program.Entry, f func(a, b float64) bool) *program.Entry {
	e.Special = "The result is 0 if either operand is NaN. −0 equals 0."
	return binary(e, func(a, b float64) float64 {
		if f(a, b) {
			return 1
		}
		return 0
	})
}

// Ternary entries.
var (
	FMA = elementwise(program.Entry{Name: "fma", Method: "FMA", Class: program.Ternary, Doc: "a·b + c",
		Special: "Whether the product is rounded before the sum depends on the device. Where a·b " +
			"overflows, the result may be ±Inf or NaN.",
		Inputs: []program.Input{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Tol: program.Tolerance{Mag: 2e-7},
		F: func(x, _ []float64) float64 { return x[0]*x[1] + x[2] }})
	Lerp = elementwise(program.Entry{Name: "lerp", Method: "Lerp", Class: program.Ternary, Doc: "a + t·(b − a)",
		Special: "Where t·(b − a) overflows, the result may be ±Inf or NaN.",
		Inputs:  []program.Input{{Name: "a"}, {Name: "b"}, {Name: "t"}}, Tol: program.Tolerance{Mag: 4e-7},
		F: func(x, _ []float64) float64 { return x[0] + x[2]*(x[1]-x[0]) }})
	Select = elementwise(program.Entry{Name: "select", Method: "Select", Class: program.Ternary, Doc: "a where cond is not 0, else b",
		Special: "−0 counts as 0 and NaN does not, as in C and NumPy. NaN and Inf in the operand that is " +
			"not chosen have no effect.",
		Inputs: []program.Input{{Name: "cond"}, {Name: "a"}, {Name: "b"}}, F: func(x, _ []float64) float64 {
			if x[0] != 0 {
				return x[1]
			}
			return x[2]
		}})
)

// larger is math.Max, except that (+Inf, NaN) gives NaN, as in NumPy.
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
