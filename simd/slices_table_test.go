package simd_test

import (
	"cmp"
	"fmt"
	"math"

	"github.com/wavelane/wavelane/simd"
)

// sliceFunction is a slice function under test, with its reference in float64.
type sliceFunction struct {
	name      string
	f         any
	p         []float32 // scalar arguments
	ref       any       // of an element, func(float64) float64 …; of all, func(in [][]float64) []float64; func(n int) []float64
	low, high float32   // of random elements
	abs, rel  float64   // tolerance
	empty     int       // what it makes of empty slices
}

const (
	nothing = iota
	zero
	nan
	panics
)

// Errors of arithmetic with one rounding, of functions, of what is made of several, and of sums.
const (
	tight = 1.2e-7
	func2 = 3e-7
	loose = 2e-5
	sums  = 4e-6
)

func one(f func(x float64) float64) any         { return f }
func two(f func(a, b float64) float64) any      { return f }
func three(f func(a, b, c float64) float64) any { return f }
func all(f func(in [][]float64) []float64) any  { return f }
func truth(t bool) float64 {
	if t {
		return 1
	}
	return 0
}
func sigmoid(x float64) float64  { return 1 / (1 + math.Exp(-x)) }
func softplus(x float64) float64 { return math.Log1p(math.Exp(x)) }
func selu(x float64, scale, alpha float64) float64 {
	if x > 0 {
		return scale * x
	}
	return scale * alpha * math.Expm1(x)
}

var sliceFunctions = []*sliceFunction{
	{name: "Add", f: simd.Add, ref: two(func(a, b float64) float64 { return a + b }), low: -2, high: 2, rel: tight},
	{name: "Sub", f: simd.Sub, ref: two(func(a, b float64) float64 { return a - b }), low: -2, high: 2, rel: tight},
	{name: "Mul", f: simd.Mul, ref: two(func(a, b float64) float64 { return a * b }), low: -2, high: 2, rel: tight},
	{name: "Div", f: simd.Div, ref: two(func(a, b float64) float64 { return a / b }), low: -2, high: 2, rel: tight},
	{name: "Maximum", f: simd.Maximum, ref: two(math.Max), low: -2, high: 2},
	{name: "Minimum", f: simd.Minimum, ref: two(math.Min), low: -2, high: 2},
	{name: "Less", f: simd.Less, ref: two(func(a, b float64) float64 { return truth(a < b) }), low: -2, high: 2},
	{name: "LessEqual", f: simd.LessEqual, ref: two(func(a, b float64) float64 { return truth(a <= b) }), low: -2, high: 2},
	{name: "Equal", f: simd.Equal, ref: two(func(a, b float64) float64 { return truth(a == b) }), low: -2, high: 2},
	{name: "Select", f: simd.Select, low: -2, high: 2,
		ref: three(func(c, a, b float64) float64 { return truth(c != 0)*a + truth(c == 0)*b })},
	{name: "Pow", f: simd.Pow, ref: two(math.Pow), low: 0.1, high: 5, rel: func2},
	{name: "CopySign", f: simd.CopySign, ref: two(math.Copysign), low: -2, high: 2},
	{name: "FMA", f: simd.FMA, ref: three(func(a, b, c float64) float64 { return a*b + c }), low: -2, high: 2, abs: 5e-7},
	{name: "Lerp", f: simd.Lerp, ref: three(func(a, b, t float64) float64 { return a + t*(b-a) }), low: -2, high: 2, abs: 1e-6},
	{name: "AddScalar", f: simd.AddScalar, p: []float32{0.3}, low: -2, high: 2, rel: tight,
		ref: one(func(x float64) float64 { return x + float64(float32(0.3)) })},
	{name: "Scale", f: simd.Scale, p: []float32{-3}, low: -2, high: 2, rel: tight,
		ref: one(func(x float64) float64 { return -3 * x })},
	{name: "ScaleAdd", f: simd.ScaleAdd, p: []float32{-3, 2}, low: -2, high: 2, abs: 1e-6,
		ref: one(func(x float64) float64 { return -3*x + 2 })},
	{name: "Axpy", f: axpy, p: []float32{-3}, low: -2, high: 2, abs: 1e-6,
		ref: two(func(y, x float64) float64 { return y - 3*x })},
	{name: "PowScalar", f: simd.PowScalar, p: []float32{1.5}, low: 0, high: 9, rel: func2,
		ref: one(func(x float64) float64 { return math.Pow(x, 1.5) })},
	{name: "Clip", f: simd.Clip, p: []float32{-1, 0.5}, low: -2, high: 2,
		ref: one(func(x float64) float64 { return min(max(x, -1), 0.5) })},
	{name: "Neg", f: simd.Neg, ref: one(func(x float64) float64 { return -x }), low: -2, high: 2},
	{name: "Abs", f: simd.Abs, ref: one(math.Abs), low: -2, high: 2},
	{name: "Sqrt", f: simd.Sqrt, ref: one(math.Sqrt), low: 0, high: 9, rel: tight},
	{name: "Recip", f: simd.Recip, ref: one(func(x float64) float64 { return 1 / x }), low: -2, high: 2, rel: tight},
	{name: "Floor", f: simd.Floor, ref: one(math.Floor), low: -9, high: 9},
	{name: "Ceil", f: simd.Ceil, ref: one(math.Ceil), low: -9, high: 9},
	{name: "Round", f: simd.Round, ref: one(math.RoundToEven), low: -9, high: 9},
	{name: "Trunc", f: simd.Trunc, ref: one(math.Trunc), low: -9, high: 9},
	{name: "Fract", f: simd.Fract, ref: one(func(x float64) float64 { return x - math.Trunc(x) }), low: -9, high: 9, abs: tight},
	{name: "Sign", f: simd.Sign, ref: one(func(x float64) float64 { return float64(cmp.Compare(x, 0)) }), low: -9, high: 9},

	{name: "Exp", f: simd.Exp, ref: one(math.Exp), low: -80, high: 80, rel: func2},
	{name: "Expm1", f: simd.Expm1, ref: one(math.Expm1), low: -8, high: 8, rel: func2},
	{name: "Log", f: simd.Log, ref: one(math.Log), low: 0.001, high: 8, rel: func2},
	{name: "Log2", f: simd.Log2, ref: one(math.Log2), low: 0.001, high: 8, rel: func2},
	{name: "Log10", f: simd.Log10, ref: one(math.Log10), low: 0.001, high: 8, rel: func2},
	{name: "Sin", f: simd.Sin, ref: one(math.Sin), low: -99, high: 99, rel: func2},
	{name: "Cos", f: simd.Cos, ref: one(math.Cos), low: -99, high: 99, rel: func2},
	{name: "Tan", f: simd.Tan, ref: one(math.Tan), low: -99, high: 99, rel: func2},
	{name: "Asin", f: simd.Asin, ref: one(math.Asin), low: -1, high: 1, rel: func2},
	{name: "Acos", f: simd.Acos, ref: one(math.Acos), low: -1, high: 1, rel: func2},
	{name: "Atan", f: simd.Atan, ref: one(math.Atan), low: -9, high: 9, rel: func2},
	{name: "Sinh", f: simd.Sinh, ref: one(math.Sinh), low: -9, high: 9, rel: func2},
	{name: "Cosh", f: simd.Cosh, ref: one(math.Cosh), low: -9, high: 9, rel: func2},
	{name: "Tanh", f: simd.Tanh, ref: one(math.Tanh), low: -9, high: 9, rel: func2},
	{name: "Asinh", f: simd.Asinh, ref: one(math.Asinh), low: -9, high: 9, rel: func2},
	{name: "Acosh", f: simd.Acosh, ref: one(math.Acosh), low: 1, high: 9, rel: func2},
	{name: "Erf", f: simd.Erf, ref: one(math.Erf), low: -4, high: 4, rel: func2},
	{name: "Atanh", f: simd.Atanh, ref: one(math.Atanh), low: -1, high: 1, rel: func2},

	{name: "ReLU", f: simd.ReLU, ref: one(func(x float64) float64 { return max(x, 0) }), low: -2, high: 2},
	{name: "LeakyReLU", f: simd.LeakyReLU, p: []float32{0.5}, low: -2, high: 2, rel: tight,
		ref: one(func(x float64) float64 { return max(x, 0.5*x) })},
	{name: "ELU", f: simd.ELU, p: []float32{0.5}, low: -9, high: 9, rel: func2,
		ref: one(func(x float64) float64 { return selu(x, 1, 0.5) })},
	{name: "SELU", f: simd.SELU, low: -9, high: 9, rel: func2,
		ref: one(func(x float64) float64 {
			return selu(x, 1.0507009873554804934, 1.0507009873554804934*1.6732632423543772848/1.0507009873554804934)
		})},
	{name: "Sigmoid", f: simd.Sigmoid, ref: one(sigmoid), low: -50, high: 50, rel: func2},
	{name: "GELU", f: simd.GELU, low: -8, high: 8, rel: func2, ref: one(func(x float64) float64 {
		return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	})},
	{name: "GELUErf", f: simd.GELUErf, ref: one(func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }),
		low: -8, high: 8, rel: func2},
	{name: "SiLU", f: simd.SiLU, ref: one(func(x float64) float64 { return x * sigmoid(x) }), low: -50, high: 50, rel: func2},
	{name: "HardSwish", f: simd.HardSwish, ref: one(func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }),
		low: -5, high: 5, abs: 1e-6},
	{name: "Mish", f: simd.Mish, low: -50, high: 50, rel: func2,
		ref: one(func(x float64) float64 { return x * math.Tanh(softplus(x)) })},
	{name: "Softplus", f: simd.Softplus, ref: one(softplus), low: -50, high: 50, rel: func2},
	{name: "FastExp", f: simd.FastExp, ref: one(math.Exp), low: -80, high: 80, rel: 1e-4},
	{name: "FastTanh", f: simd.FastTanh, ref: one(math.Tanh), low: -9, high: 9, rel: 6e-5},
	{name: "FastSigmoid", f: simd.FastSigmoid, ref: one(sigmoid), low: -50, high: 50, rel: 1e-4},
	{name: "FastGELU", f: simd.FastGELU, low: -4, high: 6, rel: 1.1e-4, ref: one(func(x float64) float64 {
		return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	})},
	{name: "Fill", f: simd.Fill, p: []float32{0.3},
		ref: func(n int) []float64 {
			return each(make([]float64, n), func(float64) float64 { return float64(float32(0.3)) })
		}},

	{name: "Sum", f: simd.Sum, high: 2, rel: sums, empty: zero,
		ref: all(func(in [][]float64) []float64 { return []float64{sum(in[0])} })},
	{name: "SumKahan", f: simd.SumKahan, high: 2, rel: tight, empty: zero,
		ref: all(func(in [][]float64) []float64 { return []float64{sum(in[0])} })},
	{name: "SumSquares", f: simd.SumSquares, ref: all(func(in [][]float64) []float64 { return []float64{dot(in[0], in[0])} }),
		low: -2, high: 2, rel: sums, empty: zero},
	{name: "Dot", f: simd.Dot, ref: all(func(in [][]float64) []float64 { return []float64{dot(in[0], in[1])} }),
		high: 2, rel: sums, empty: zero},
	{name: "NormL1", f: simd.NormL1, ref: all(func(in [][]float64) []float64 { return []float64{sum(each(in[0], math.Abs))} }),
		low: -2, high: 2, rel: sums, empty: zero},
	{name: "NormL2", f: simd.NormL2, ref: all(func(in [][]float64) []float64 { return []float64{math.Sqrt(dot(in[0], in[0]))} }),
		low: -2, high: 2, rel: sums, empty: zero},
	{name: "NormLInf", f: simd.NormLInf, low: -2, high: 1, empty: zero, ref: all(func(in [][]float64) []float64 {
		a := each(in[0], math.Abs)
		return []float64{a[largest(a)]}
	})},
	{name: "Max", f: simd.Max, low: -2, high: -1, empty: panics,
		ref: all(func(in [][]float64) []float64 { return []float64{in[0][largest(in[0])]} })},
	{name: "Min", f: simd.Min, low: 1, high: 2, empty: panics,
		ref: all(func(in [][]float64) []float64 { return []float64{-negated(in[0])[largest(negated(in[0]))]} })},
	{name: "ArgMax", f: simd.ArgMax, low: -2, high: 2, empty: panics,
		ref: all(func(in [][]float64) []float64 { return []float64{float64(largest(in[0]))} })},
	{name: "ArgMin", f: simd.ArgMin, low: -2, high: 2, empty: panics,
		ref: all(func(in [][]float64) []float64 { return []float64{float64(largest(negated(in[0])))} })},
	{name: "Mean", f: simd.Mean, high: 2, rel: sums, empty: nan,
		ref: all(func(in [][]float64) []float64 { return []float64{mean(in[0])} })},
	{name: "Variance", f: simd.Variance, low: 1, high: 2, rel: sums, abs: 1e-12, empty: nan,
		ref: all(func(in [][]float64) []float64 { return []float64{covariance(in[0], in[0])} })},
	{name: "StdDev", f: simd.StdDev, low: 1, high: 2, rel: sums, abs: 1e-6, empty: nan,
		ref: all(func(in [][]float64) []float64 { return []float64{math.Sqrt(covariance(in[0], in[0]))} })},
	{name: "Covariance", f: simd.Covariance, low: 1, high: 2, abs: 3e-6, empty: nan,
		ref: all(func(in [][]float64) []float64 { return []float64{covariance(in[0], in[1])} })},
	{name: "Correlation", f: simd.Correlation, low: 1, high: 2, abs: 3e-5, empty: nan, ref: all(func(in [][]float64) []float64 {
		return []float64{covariance(in[0], in[1]) / math.Sqrt(covariance(in[0], in[0])*covariance(in[1], in[1]))}
	})},

	{name: "Softmax", f: simd.Softmax, low: -10, high: 10, rel: loose, ref: all(func(in [][]float64) []float64 {
		e := each(in[0], math.Exp)
		s := sum(e)
		return each(e, func(v float64) float64 { return v / s })
	})},
	{name: "LogSoftmax", f: simd.LogSoftmax, low: -10, high: 10, abs: 1e-5, ref: all(func(in [][]float64) []float64 {
		l := math.Log(sum(each(in[0], math.Exp)))
		return each(in[0], func(v float64) float64 { return v - l })
	})},
	{name: "LayerNorm", f: simd.LayerNorm, p: []float32{0.01}, low: -2, high: 3, abs: loose,
		ref: all(func(in [][]float64) []float64 {
			y := standard(in[0], float64(float32(0.01)))
			for i := range y {
				y[i] = y[i]*in[1][i] + in[2][i]
			}
			return y
		})},
	{name: "LayerNormSimple", f: simd.LayerNormSimple, p: []float32{0.01}, low: -2, high: 3, abs: loose,
		ref: all(func(in [][]float64) []float64 { return standard(in[0], float64(float32(0.01))) })},
	{name: "RMSNorm", f: simd.RMSNorm, p: []float32{0.01}, low: -2, high: 3, rel: loose, ref: all(func(in [][]float64) []float64 {
		y := make([]float64, len(in[0]))
		f := 1 / math.Sqrt(dot(in[0], in[0])/float64(len(y))+float64(float32(0.01)))
		for i := range y {
			y[i] = in[0][i] * f * in[1][i]
		}
		return y
	})},
	{name: "ZScore", f: simd.ZScore, low: -2, high: 3, abs: 1e-4,
		ref: all(func(in [][]float64) []float64 { return standard(in[0], 0) })},
	{name: "Normalize", f: simd.Normalize, low: -2, high: 3, rel: loose, ref: all(func(in [][]float64) []float64 {
		f := 1 / math.Sqrt(dot(in[0], in[0]))
		return each(in[0], func(v float64) float64 { return v * f })
	})},
	{name: "MinMaxNormalize", f: simd.MinMaxNormalize, low: -2, high: 3, abs: 1e-6, ref: all(func(in [][]float64) []float64 {
		low, high := -negated(in[0])[largest(negated(in[0]))], in[0][largest(in[0])]
		return each(in[0], func(v float64) float64 { return (v - low) / (high - low) })
	})},
}

// axpy gives Axpy the form of the others: a destination, which the first operand is copied to.
func axpy(dst, a, x []float32, f float32) {
	if len(a) != len(dst) {
		simd.Axpy(dst, a, f) // refused
	}
	copy(dst, a)
	simd.Axpy(dst, x, f)
}

func (f *sliceFunction) operands() int {
	switch f.f.(type) {
	case func(dst []float32, v float32):
		return 0
	case func(dst, x []float32), func(dst, x []float32, s float32), func(dst, x []float32, s, t float32),
		func(x []float32) float32, func(x []float32) int:
		return 1
	case func(dst, a, b []float32), func(dst, a, b []float32, s float32), func(a, b []float32) float32:
		return 2
	}
	return 3
}

func (f *sliceFunction) stores() bool {
	switch f.f.(type) {
	case func(x []float32) float32, func(x []float32) int, func(a, b []float32) float32:
		return false
	}
	return true
}

// result is what a bound call without a destination found.
var result float64

// bind returns the call itself.
func (f *sliceFunction) bind(dst []float32, in [][]float32) func() {
	switch g := f.f.(type) {
	case func(dst []float32, v float32):
		return func() { g(dst, f.p[0]) }
	case func(dst, x []float32):
		return func() { g(dst, in[0]) }
	case func(dst, x []float32, s float32):
		return func() { g(dst, in[0], f.p[0]) }
	case func(dst, x []float32, s, t float32):
		return func() { g(dst, in[0], f.p[0], f.p[1]) }
	case func(dst, a, b []float32):
		return func() { g(dst, in[0], in[1]) }
	case func(dst, a, b []float32, s float32):
		return func() { g(dst, in[0], in[1], f.p[0]) }
	case func(dst, a, b, c []float32):
		return func() { g(dst, in[0], in[1], in[2]) }
	case func(dst, a, b, c []float32, s float32):
		return func() { g(dst, in[0], in[1], in[2], f.p[0]) }
	case func(x []float32) float32:
		return func() { result = float64(g(in[0])) }
	case func(x []float32) int:
		return func() { result = float64(g(in[0])) }
	case func(a, b []float32) float32:
		return func() { result = float64(g(in[0], in[1])) }
	}
	panic(fmt.Sprintf("%s has a new form, %T", f.name, f.f))
}

// call returns the result, or the elements of dst.
func (f *sliceFunction) call(dst []float32, in [][]float32) []float64 {
	f.bind(dst, in)()
	if !f.stores() {
		return []float64{result}
	}
	return wide(dst)
}

// want is the reference's result for n elements.
func (f *sliceFunction) want(n int, in [][]float32) []float64 {
	x := make([][]float64, len(in))
	for k := range in {
		x[k] = wide(in[k])
	}
	switch g := f.ref.(type) {
	case func(x float64) float64:
		return each(x[0], g)
	case func(a, b float64) float64:
		y := make([]float64, len(x[0]))
		for i := range y {
			y[i] = g(x[0][i], x[1][i])
		}
		return y
	case func(a, b, c float64) float64:
		y := make([]float64, len(x[0]))
		for i := range y {
			y[i] = g(x[0][i], x[1][i], x[2][i])
		}
		return y
	case func(in [][]float64) []float64:
		return g(x)
	case func(n int) []float64:
		return g(n)
	}
	panic(f.name + " has no reference")
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func each(x []float64, f func(float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

func negated(x []float64) []float64 { return each(x, func(v float64) float64 { return -v }) }

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

func mean(x []float64) float64 { return sum(x) / float64(len(x)) }

func covariance(a, b []float64) float64 {
	ma, mb := mean(a), mean(b)
	a, b = each(a, func(v float64) float64 { return v - ma }), each(b, func(v float64) float64 { return v - mb })
	return dot(a, b) / float64(len(a))
}

func standard(x []float64, eps float64) []float64 {
	m, s := mean(x), math.Sqrt(covariance(x, x)+eps)
	return each(x, func(v float64) float64 { return (v - m) / s })
}

// largest is the index of the first of the largest.
func largest(x []float64) int {
	at := 0
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}
