package catalogue

import (
	"math"

	"github.com/wavelane/wavelane/internal/program"
)

// backward is the gradient of an elementwise function: dy·slope(x). The slope is bounded, and where rounding matters in it, it does
// so in units of 1, not of its own size: terms cancel.
func backward(e program.Entry, slope func(x float64) float64) *program.Entry {
	e.Class, e.Inputs, e.Tol = program.Binary, []program.Input{{Name: "x"}, {Name: "dy"}}, program.Tolerance{Rel: 1e-5, Mag: 4e-6}
	e.Special = "The slope at ±Inf is its limit, 0 or 1. The result is NaN if x or dy is."
	e.F = func(x, _ []float64) float64 { return x[1] * slope(x[0]) }
	return elementwise(e)
}

// limited is f, with its limits at ±Inf, 0 and 1.
func limited(f func(x float64) float64) func(x float64) float64 {
	return func(x float64) float64 {
		if math.IsInf(x, 0) {
			return max(math.Copysign(1, x), 0)
		}
		return f(x)
	}
}

func geluSlope(x float64) float64 {
	k := math.Sqrt(2 / math.Pi)
	t := math.Tanh(k * (x + 0.044715*x*x*x))
	if t*t == 1 { // the rest overflows
		return 0.5 * (1 + t)
	}
	return 0.5*(1+t) + 0.5*x*(1-t*t)*k*(1+3*0.044715*x*x)
}

func geluErfSlope(x float64) float64 {
	return 0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

func siluSlope(x float64) float64 {
	s := sigmoid(x)
	return s * (1 + x*sigmoid(-x))
}

// Gradients of activations with respect to x.
var (
	ReLUBackward = elementwise(program.Entry{Name: "relu_backward", Method: "ReLUBackward", Class: program.Binary,
		Doc: "dy where x > 0, else 0: the gradient of relu",
		Special: "The result is 0 where x is 0, and where x is negative whatever dy is. It is NaN where x " +
			"is.",
		Inputs: []program.Input{{Name: "x"}, {Name: "dy"}}, F: func(x, _ []float64) float64 {
			switch {
			case x[0] > 0:
				return x[1]
			case x[0] <= 0:
				return 0
			}
			return x[0]
		}})
	GELUBackward = backward(program.Entry{Name: "gelu_backward", Method: "GELUBackward",
		Doc:    "the gradient of gelu: dy·(½(1+t) + ½x·(1−t²)·√(2/π)·(1+0.134145x²)) with t = tanh(√(2/π)·(x+0.044715x³))",
		Domain: [2]float64{-8, 8}}, limited(geluSlope))
	GELUErfBackward = backward(program.Entry{Name: "gelu_erf_backward", Method: "GELUErfBackward",
		Doc:    "the gradient of gelu_erf: dy·(Φ(x) + x·φ(x)) with the normal distribution Φ and its density φ",
		Domain: [2]float64{-8, 8}}, limited(geluErfSlope))
	SiLUBackward = backward(program.Entry{Name: "silu_backward", Method: "SiLUBackward",
		Doc: "the gradient of silu: dy·(s + x·s·(1−s)) with s = sigmoid(x)", Domain: [2]float64{-20, 20}}, limited(siluSlope))
)
