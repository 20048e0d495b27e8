package kernels

import (
	"math"
	"math/rand/v2"
)

type formula func(x [3]float64, p [2]float64) float64

// spec is what a kernel promises and how to try it.
type spec struct {
	// ref is the element stored, in float64; term what is added to the result, for sums.
	ref, term formula
	// ulp is the most that a stored element may differ from ref in units of its last place: of float32 rounding ½. A kernel may
	// be off from its portable fallback by as much and the portable fallback's own error.
	ulp float64
	// magnitude makes ulp one of this instead: terms of a sum may cancel, and rounding errors of the way there add up.
	magnitude formula
	// looseZero: of two zeros the result may be either.
	looseZero bool
	// rel and abs are the errors of fast variants instead of ulp; abs is that of a sum's terms too.
	rel, abs float64
	// low and high bound ordinary inputs; -10 and 10 where both are 0.
	low, high float32
	params    func(r *rand.Rand) [2]float32
	// domain brings elements and parameters to where the kernel promises something; nil is everywhere.
	domain func(x []float32, p *[2]float32)
}

func unaryRef(f func(x float64) float64) formula {
	return func(x [3]float64, _ [2]float64) float64 { return f(x[0]) }
}

func binaryRef(f func(x, y float64) float64) formula {
	return func(x [3]float64, _ [2]float64) float64 { return f(x[0], x[1]) }
}

// exact results are those of one rounding, which float64 makes right where it does not round itself.
func exact(f func(x float64) float64) spec { return spec{ref: unaryRef(f), ulp: 0.5} }

// function promises 2 ULP.
func function(f func(x float64) float64, low, high float32) spec {
	return spec{ref: unaryRef(f), ulp: 2, low: low, high: high}
}

// activation may give either zero.
func activation(f func(x float64) float64, low, high float32) spec {
	s := function(f, low, high)
	s.looseZero = true
	return s
}

func params(values ...float32) func(r *rand.Rand) [2]float32 {
	return func(r *rand.Rand) [2]float32 {
		return [2]float32{values[r.IntN(len(values))], values[r.IntN(len(values))]}
	}
}

func gaussian(r *rand.Rand) [2]float32 {
	return [2]float32{float32(r.NormFloat64()), float32(r.NormFloat64())}
}

var specs = map[string]spec{
	"Add":      {ref: binaryRef(func(a, b float64) float64 { return a + b }), ulp: 0.5},
	"Sub":      {ref: binaryRef(func(a, b float64) float64 { return a - b }), ulp: 0.5},
	"Mul":      {ref: binaryRef(func(a, b float64) float64 { return a * b }), ulp: 0.5},
	"Div":      {ref: binaryRef(func(a, b float64) float64 { return a / b }), ulp: 0.5},
	"Maximum":  {ref: binaryRef(func(a, b float64) float64 { return max(a, b) }), ulp: 0.5, looseZero: true},
	"Minimum":  {ref: binaryRef(func(a, b float64) float64 { return min(a, b) }), ulp: 0.5, looseZero: true},
	"CopySign": {ref: binaryRef(math.Copysign), ulp: 0.5},

	"AddScalar": {ref: func(x [3]float64, p [2]float64) float64 { return x[0] + p[0] }, ulp: 0.5, params: gaussian},
	"Scale":     {ref: func(x [3]float64, p [2]float64) float64 { return x[0] * p[0] }, ulp: 0.5, params: gaussian},
	"ScaleAdd": {ref: func(x [3]float64, p [2]float64) float64 { return x[0]*p[0] + p[1] }, ulp: 1, params: gaussian,
		magnitude: func(x [3]float64, p [2]float64) float64 { return math.Abs(x[0]*p[0]) + math.Abs(p[1]) }},
	"Axpy": {ref: func(x [3]float64, p [2]float64) float64 { return x[0] + p[0]*x[1] }, ulp: 1, params: gaussian,
		magnitude: func(x [3]float64, p [2]float64) float64 { return math.Abs(x[0]) + math.Abs(p[0]*x[1]) }},
	"MulAdd": {ref: func(x [3]float64, _ [2]float64) float64 { return x[0]*x[1] + x[2] }, ulp: 1,
		magnitude: func(x [3]float64, _ [2]float64) float64 { return math.Abs(x[0]*x[1]) + math.Abs(x[2]) }},
	"Lerp": {ref: func(x [3]float64, _ [2]float64) float64 { return x[0] + x[2]*(x[1]-x[0]) }, ulp: 2,
		magnitude: func(x [3]float64, _ [2]float64) float64 {
			return math.Abs(x[0]) + wide(math.Abs(x[1])+math.Abs(x[0]))*math.Abs(x[2])
		}},

	"Less":      {ref: binaryRef(func(a, b float64) float64 { return float64(truth(a < b)) })},
	"LessEqual": {ref: binaryRef(func(a, b float64) float64 { return float64(truth(a <= b)) })},
	"Equal":     {ref: binaryRef(func(a, b float64) float64 { return float64(truth(a == b)) })},
	"Select": {ref: func(x [3]float64, _ [2]float64) float64 {
		if x[0] != 0 {
			return x[1]
		}
		return x[2]
	}},

	"Neg": exact(func(x float64) float64 { return -x }), "Abs": exact(math.Abs), "Sqrt": exact(math.Sqrt),
	"Recip": exact(func(x float64) float64 { return 1 / x }),
	"Floor": exact(math.Floor), "Ceil": exact(math.Ceil), "Round": exact(math.RoundToEven), "Trunc": exact(math.Trunc),
	"Fract": {ref: unaryRef(func(x float64) float64 { return x - math.Trunc(x) }), ulp: 0.5, looseZero: true},
	"Sign": exact(func(x float64) float64 {
		if x == 0 || x != x {
			return x
		}
		return math.Copysign(1, x)
	}),
	"Clip": {ref: func(x [3]float64, p [2]float64) float64 { return min(max(x[0], p[0]), p[1]) }, ulp: 0.5, looseZero: true,
		domain: func(_ []float32, p *[2]float32) {
			if !(p[0] <= p[1]) {
				p[1] = p[0]
			}
		},
		params: func(r *rand.Rand) [2]float32 {
			a, b := 20*r.Float32()-10, 20*r.Float32()-10
			return [][2]float32{{min(a, b), max(a, b)}, {0, inf}, {-inf, 0}, {-1, 1}, {2, 2}}[r.IntN(5)]
		}},
	"ReLU": {ref: unaryRef(func(x float64) float64 { return max(x, 0) }), ulp: 0.5, looseZero: true},
	"LeakyReLU": {ulp: 0.5, params: params(0.01, 0, 2, -0.5), ref: func(x [3]float64, p [2]float64) float64 {
		if x[0] < 0 {
			return p[0] * x[0]
		}
		return x[0]
	}},
	"HardSwish": {ulp: 2.5, looseZero: true, ref: unaryRef(func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0
		}
		return x * (min(max(x+3, 0), 6) / 6)
	})},

	"Exp": function(math.Exp, -105, 90), "Expm1": function(math.Expm1, -20, 90), "Log": function(math.Log, 1e-3, 10),
	"Log2": function(log2, 1e-3, 10), "Log10": function(math.Log10, 1e-3, 10),
	"Sin": function(math.Sin, -100, 100), "Cos": function(math.Cos, -100, 100), "Tan": function(math.Tan, -100, 100),
	"Asin": function(math.Asin, -1, 1), "Acos": function(math.Acos, -1, 1), "Atan": function(math.Atan, -10, 10),
	"Sinh": function(math.Sinh, -90, 90), "Cosh": function(math.Cosh, -90, 90), "Tanh": function(math.Tanh, -12, 12),
	"Asinh": function(math.Asinh, -100, 100), "Acosh": function(math.Acosh, 1, 100), "Atanh": function(math.Atanh, -0.999, 0.999),
	"Sigmoid": function(sigmoidRef, -105, 20), "Softplus": function(softplusRef, -105, 20), "Erf": function(math.Erf, -5, 5),
	"GELU": activation(geluRef, -15, 10), "GELUErf": activation(geluErfRef, -15, 10), "SELU": activation(seluRef, -20, 20),
	"SiLU": activation(siluRef, -105, 20), "Mish": activation(mishRef, -105, 20),
	"ELU": {ulp: 2, looseZero: true, low: -20, high: 20, params: params(1, 0.5, 1.7),
		ref: func(x [3]float64, p [2]float64) float64 {
			if x[0] > 0 {
				return x[0]
			}
			return p[0] * math.Expm1(x[0])
		}},
	"Pow": {ref: binaryRef(math.Pow), ulp: 2, low: 1e-3, high: 20},
	"PowScalar": {ref: func(x [3]float64, p [2]float64) float64 { return math.Pow(x[0], p[0]) }, ulp: 2, low: 1e-3, high: 20,
		params: params(2, 0.5, -1, 3, 0, 1, 2.7, -0.5, 1./3, -2, 17, 100.25)},
	// Fast ones are right but for the last bits where the result is normal, and next to nothing where it is denormal.
	"FastExp":     {ref: unaryRef(math.Exp), rel: 8.6e-5, abs: 0x1p-126, low: -87, high: 88},
	"FastTanh":    {ref: unaryRef(math.Tanh), rel: 5.1e-5, abs: 0x1p-126, low: -12, high: 12},
	"FastSigmoid": {ref: unaryRef(sigmoidRef), rel: 8.6e-5, abs: 0x1p-126, low: -87, high: 20},
	"FastGELU":    {ref: unaryRef(geluRef), rel: 1.01e-4, abs: 1.5e-28, low: -9, high: 10},

	"Sum":         sum(func(x [3]float64, _ [2]float64) float64 { return x[0] }),
	"SumKahan":    sum(func(x [3]float64, _ [2]float64) float64 { return x[0] }),
	"SumAbs":      sum(func(x [3]float64, _ [2]float64) float64 { return math.Abs(x[0]) }),
	"SumSquares":  sum(func(x [3]float64, _ [2]float64) float64 { return x[0] * x[0] }),
	"Dot":         sum(func(x [3]float64, _ [2]float64) float64 { return x[0] * x[1] }),
	"SumSqDiff":   sum(func(x [3]float64, p [2]float64) float64 { return (x[0] - p[0]) * (x[0] - p[0]) }),
	"SumProdDiff": sum(func(x [3]float64, p [2]float64) float64 { return (x[0] - p[0]) * (x[1] - p[1]) }),
	"ExpSub": {ref: expSub, term: expSub, rel: 4.5e-7, abs: 0x1p-126, low: -30, high: 3, params: oneOf3,
		domain: littleMore},
	"SumExpSub": {term: expSub, abs: 0x1p-126, low: -30, high: 3, params: oneOf3, domain: littleMore},

	"Max": {looseZero: true}, "Min": {looseZero: true}, "MaxAbs": {},
	"Find": {low: -2, high: 2, params: params(0, 1, -1.5, 2)}, "FindNaN": {},

	"Normalize": {ref: func(x [3]float64, p [2]float64) float64 { return float64(float32(x[0]-p[0])) * p[1] }, ulp: 0.5,
		params: gaussian},
	"NormAffine": {params: gaussian, ulp: 3, ref: func(x [3]float64, p [2]float64) float64 {
		return (x[0]-p[0])*p[1]*x[1] + x[2]
	}, magnitude: func(x [3]float64, p [2]float64) float64 {
		return wide(wide(math.Abs(x[0]-p[0]))*math.Abs(p[1]))*math.Abs(x[1]) + math.Abs(x[2])
	}},
	"NormScale": {params: gaussian, ulp: 0.5, ref: func(x [3]float64, p [2]float64) float64 {
		return float64(float32(x[0]*p[0])) * x[1]
	}},
}

func sum(term formula) spec { return spec{term: term, params: gaussian} }

// expSub: x − m is rounded to float32.
func expSub(x [3]float64, p [2]float64) float64 { return math.Exp(float64(float32(x[0] - p[0]))) }

// littleMore keeps elements from being more than m by more than 1.
func littleMore(x []float32, p *[2]float32) {
	for i, v := range x {
		if v > p[0]+1 {
			x[i] = p[0]
		}
	}
}

func oneOf3(r *rand.Rand) [2]float32 {
	if r.IntN(16) == 0 {
		return [2]float32{specials[r.IntN(len(specials))]}
	}
	return [2]float32{3 * r.Float32()}
}

// wide makes numbers beyond float32 so large that what is made of them stays there: they overflow on the way.
func wide(x float64) float64 {
	if x > math.MaxFloat32 {
		return x * 0x1p400
	}
	return x
}

func log2(x float64) float64 { return math.Log(x) * math.Log2E } // math.Log2 cancels near 1

func sigmoidRef(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// atMinusInf makes the limit at −Inf the value there.
func atMinusInf(x, f float64) float64 {
	if math.IsInf(x, -1) {
		return 0
	}
	return f
}

func geluRef(x float64) float64 {
	u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
	return atMinusInf(x, x/(1+math.Exp(-2*u)))
}
func geluErfRef(x float64) float64 { return atMinusInf(x, 0.5*x*math.Erfc(-x/math.Sqrt2)) }
func siluRef(x float64) float64    { return atMinusInf(x, x*sigmoidRef(x)) }
func softplusRef(x float64) float64 {
	return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
}

// mishRef: tanh(log(1+e)) = n/(n+2) with n = e(e+2), which overflows where the ratio is 1.
func mishRef(x float64) float64 {
	if x > 40 {
		return x
	}
	e := math.Exp(x)
	n := e * (e + 2)
	return atMinusInf(x, x*(n/(n+2)))
}

func seluRef(x float64) float64 {
	const alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
	if x > 0 {
		return scale * x
	}
	return scale * alpha * math.Expm1(x)
}

// accepts says whether an element may be got where its portable fallback gives want.
func (s *spec) accepts(got, want float32, x [3]float64, p [2]float64) bool {
	switch {
	case math.Float32bits(got) == math.Float32bits(want), got != got && want != want:
		return true
	case s.magnitude != nil:
		m := s.magnitude(x, p)
		switch {
		case m > math.MaxFloat64: // an infinite operand
			return got-got != 0
		case m > math.MaxFloat32: // may overflow on the way
			return true
		}
		return math.Abs(float64(got)-float64(want)) <= (2*s.ulp+1)*0x1p-24*m+0x1p-148
	case got != got || want != want:
		return false
	case s.rel > 0 && got == inf:
		return want > 2.4e38
	case s.rel > 0:
		return math.Abs(float64(got)-float64(want)) <= s.rel*math.Abs(float64(want))+s.abs
	case got == want:
		return s.looseZero // zeros of different sign
	}
	d := order(got) - order(want)
	return max(d, -d) <= int64(s.ulp) // half a unit is none between results that are rounded already
}

// order numbers the floats from -Inf to Inf; both zeros are 0.
func order(x float32) int64 {
	b := int64(math.Float32bits(x) &^ signBit)
	if math.Signbit(float64(x)) {
		return -b
	}
	return b
}

// acceptsSum says whether a sum of n terms may be got where float64 gives want. Magnitude is the sum of the absolute values
// of those that are finite. An element takes part in at most this number of additions, and abs is an error that each may have.
func acceptsSum(got, want, magnitude, abs float64, n, additions int) bool {
	switch {
	case got == want, got != got && want != want:
		return true
	case magnitude > math.MaxFloat32/4: // may overflow on the way
		return true
	case got-got != 0 || want-want != 0:
		return false
	}
	// An addition rounds by up to 2⁻²⁴ of the sum so far. Where one term outweighs all others, that is the whole sum from there on.
	// Few roundings may all be in one direction. Of many, √(a/3) is the standard deviation, which is exceeded six times once in 10⁹.
	//
	// What is below half a unit of the last place is lost: of terms like those of exp, most of which are small, always. That adds up:
	// for arguments spread over 30, to 2⁻³⁰ of the sum for each addition (the mean over a growing sum, and 1/30 of the terms for each
	// factor e); here it is twice that. Beside it there is the error of the terms.
	a := float64(additions)
	bound := 3e-7 + 0x1p-24*min(a, 6*math.Sqrt(a/3)) + 0x1p-29*a
	return math.Abs(got-want) <= bound*magnitude+float64(n+1)*(0x1p-148+abs)
}

// additions is of how many an element of n is part at most, where kernels sum in lanes: they have two lots of them or more, and add up
// these in the end.
func additions(n int) int {
	lanes := 0
	switch Active() {
	case AVX512:
		lanes = 16
	case AVX2:
		lanes = 8
	case SSE, NEON, SIMD128:
		lanes = 4
	default:
		return 0 // sums in float64
	}
	return n/(2*lanes) + 1 + 6
}
