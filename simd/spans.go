package simd

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// spans are the elementwise kernels, by entry.
var spans = map[string]spanOp{
	"neg": {neg, 0.3}, "abs": {abs, 0.3}, "sqrt": {sqrt, 0.6}, "recip": {recip, 0.8},
	"floor": {floor, 1.1}, "ceil": {ceil, 1.2}, "round": {round, 1.2}, "trunc": {trunc, 1.1}, "sign": {sign, 0.8},
	"relu": {relu, 0.6}, "leaky_relu": {leakyReLU, 0.6}, "clip": {clip, 0.8}, "scale": {scale, 0.3}, "hardswish": {hardSwish, 1.8},
	"add": {add, 0.3}, "sub": {sub, 0.3}, "mul": {mul, 0.3}, "div": {div, 0.8}, "maximum": {maximum, 0.5}, "minimum": {minimum, 0.5},
	"fma": {fma, 0.8}, "lerp": {lerp, 1},

	"exp": {each(expf), 3.5}, "log": {each(logf), 5}, "log2": {each(log2f), 6.5}, "sin": {each(sinf), 6}, "cos": {each(cosf), 6},
	"tanh": {each(tanhf), 5.5}, "sigmoid": {each(sigmoidf), 4}, "gelu": {each(geluf), 5}, "gelu_erf": {each(geluErff), 7},
	"swish": {each(swishf), 4.5}, "mish": {each(mishf), 5}, "softplus": {each(softplusf), 12}, "selu": {each(seluf), 6},
	"elu": {elu, 6}, "pow_scalar": {powScalar, 30}, "pow": {pow, 32},
}

// activation returns the span of an epilogue; nil for none.
func activation(a compute.Activation) (span, float64) {
	e, err := op.ActivationEntry(a)
	if err != nil || e == nil { // errors were found when the call was checked
		return nil, 0
	}
	s := spans[e.Name]
	return s.f, s.ns
}

// each makes a span of a function of one element.
func each(f func(float32) float32) span {
	return func(y, a, _, _, _ []float32) {
		a = a[:len(y)]
		for i, v := range a {
			y[i] = f(v)
		}
	}
}

const signBit = 1 << 31

func neg(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = -v
	}
}

func abs(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = abs32(v)
	}
}

func abs32(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ signBit) }

func sqrt(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Sqrt(float64(v)))
	}
}

func recip(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = 1 / v
	}
}

func floor(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Floor(float64(v)))
	}
}

func ceil(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Ceil(float64(v)))
	}
}

func round(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.RoundToEven(float64(v)))
	}
}

func trunc(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = float32(math.Trunc(float64(v)))
	}
}

func sign(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		switch {
		case v > 0:
			v = 1
		case v < 0:
			v = -1
		}
		y[i] = v
	}
}

// relu: the builtin max gives NaN for NaN.
func relu(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = max(v, 0)
	}
}

// leakyReLU chooses between bit patterns, which compiles to a conditional move: signs are hard to predict.
func leakyReLU(y, a, _, _, p []float32) {
	a = a[:len(y)]
	alpha := p[0]
	for i, v := range a {
		bits, scaled := math.Float32bits(v), math.Float32bits(alpha*v)
		if v < 0 {
			bits = scaled
		}
		y[i] = math.Float32frombits(bits)
	}
}

func clip(y, a, _, _, p []float32) {
	a = a[:len(y)]
	low, high := p[0], p[1]
	for i, v := range a {
		y[i] = min(max(v, low), high)
	}
}

func scale(y, a, _, _, p []float32) {
	a = a[:len(y)]
	f := p[0]
	for i, v := range a {
		y[i] = f * v
	}
}

// hardSwish: the outer max keeps −Inf from meeting 0.
func hardSwish(y, a, _, _, _ []float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = max(v, -3) * min(max(v+3, 0), 6) / 6
	}
}

func add(y, a, b, _, _ []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] + b[i]
	}
}

func sub(y, a, b, _, _ []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] - b[i]
	}
}

func mul(y, a, b, _, _ []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] * b[i]
	}
}

func div(y, a, b, _, _ []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] / b[i]
	}
}

func maximum(y, a, b, _, _ []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = max(a[i], b[i])
	}
}

func minimum(y, a, b, _, _ []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = min(a[i], b[i])
	}
}

func fma(y, a, b, c, _ []float32) {
	a, b, c = a[:len(y)], b[:len(y)], c[:len(y)]
	for i := range y {
		y[i] = a[i]*b[i] + c[i]
	}
}

func lerp(y, a, b, t, _ []float32) {
	a, b, t = a[:len(y)], b[:len(y)], t[:len(y)]
	for i := range y {
		y[i] = a[i] + t[i]*(b[i]-a[i])
	}
}
