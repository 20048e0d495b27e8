package kernels

import (
	"math"
	"testing"
)

// relative makes the errors of functions relative ones where the argument is in a range, and elsewhere lets results be 0 or
// +Inf early.
func relative(low, high float64) func(got float32, x, want float64) float64 {
	return func(got float32, x, want float64) float64 {
		g := float64(got)
		switch {
		case math.IsNaN(x) && math.IsNaN(g) || g == want || math.Abs(g-want) <= 0x1p-149:
			return 0
		case x >= low && x <= high:
			return math.Abs(g-want) / math.Abs(want)
		case x < low && math.Abs(want) < 1e-17 && math.Abs(g) < 1e-17:
			return 0
		case x > high && want > 1e38 && (g > 1e38 || math.IsInf(g, 1)):
			return 0
		}
		return math.Inf(1)
	}
}

// shifted makes the errors of exponentials of at most 88 relative ones, as far as they are not of x itself.
func shifted(got float32, x, want float64) float64 {
	off := math.Abs(float64(got) - want)
	if x > 88 || math.IsNaN(x) && got != got || off < 0x1p-126 {
		return 0
	}
	return off/want - 2.8e-9*math.Abs(x)
}

var fastFunctions = []function{
	{name: "ExpSub", ulp: 1.9e-7, f: math.Exp, error: shifted, params: []float32{0}, points: []float64{87.33, 88, 103.97}},
	{name: "FastExp", ulp: 8.5e-5, f: math.Exp, error: relative(-87, 88), points: []float64{87.7, 88, 88.4, 88.8}},
	{name: "FastTanh", ulp: 5e-5, f: math.Tanh, error: relative(math.Inf(-1), math.Inf(1)),
		points: []float64{5.5, 9}, odd: true},
	{name: "FastSigmoid", ulp: 8.5e-5, f: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		error: relative(-87, math.Inf(1)), points: []float64{17.3, 87.7, 88.4}},
	{name: "FastGELU", ulp: 1e-4, f: zeroAtMinusInf(geluRef), error: relative(-9, math.Inf(1)),
		points: []float64{9, 10, 10.1, 11}},
}

func TestFastFunctions(t *testing.T) {
	for _, fn := range fastFunctions {
		t.Run(fn.name, fn.check)
	}
}
