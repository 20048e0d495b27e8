package simd

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// spans are the elementwise kernels, by entry.
var spans = map[string]spanOp{
	"neg": {neg, 0.5}, "abs": {abs, 0.5}, "sqrt": {sqrt, 1.5}, "recip": {recip, 1.5},
	"floor": {floor, 0.8}, "ceil": {ceil, 0.8}, "round": {round, 0.8}, "trunc": {trunc, 0.8}, "sign": {sign, 1},
	"relu": {relu, 0.8}, "leaky_relu": {leakyReLU, 0.8}, "clip": {clip, 1.5}, "scale": {scale, 0.5}, "hardswish": {hardSwish, 2.5},
	"add": {add, 0.6}, "sub": {sub, 0.6}, "mul": {mul, 0.6}, "div": {div, 1.5}, "maximum": {maximum, 1.2}, "minimum": {minimum, 1.2},
	"fma": {fma, 1.5}, "lerp": {lerp, 1.7},

	"exp": {each(expf), 6}, "log": {each(logf), 10}, "log2": {each(log2f), 12}, "sin": {each(sinf), 15}, "cos": {each(cosf), 15},
	"tanh": {each(tanhf), 8}, "sigmoid": {each(sigmoidf), 8}, "gelu": {each(geluf), 8}, "gelu_erf": {each(geluErff), 20},
	"swish": {each(swishf), 8}, "mish": {each(mishf), 9}, "softplus": {each(softplusf), 18}, "selu": {each(seluf), 12},
	"elu": {elu, 12}, "pow_scalar": {powScalar, 40}, "pow": {pow, 40},
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

// fma: the product is exact in float64, so that it cannot overflow before the sum does, as in a fused instruction.
func fma(y, a, b, c, _ []float32) {
	a, b, c = a[:len(y)], b[:len(y)], c[:len(y)]
	for i := range y {
		y[i] = float32(float64(a[i])*float64(b[i]) + float64(c[i]))
	}
}

func lerp(y, a, b, t, _ []float32) {
	a, b, t = a[:len(y)], b[:len(y)], t[:len(y)]
	for i := range y {
		from := float64(a[i])
		y[i] = float32(from + float64(t[i])*(float64(b[i])-from))
	}
}
