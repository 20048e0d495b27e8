package kernels

import (
	"math"
	"testing"
)

func above(limit float64) func(float64) bool {
	return func(x float64) bool { return !(math.Abs(x) <= limit) }
}

func notPositive(x float64) bool { return !(x >= 0x1p-126) && x != 0 || math.IsInf(x, 1) }

func zeroAtMinusInf(f func(x float64) float64) func(x float64) float64 {
	return func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0
		}
		return f(x)
	}
}

func expm1Of(alpha float64) func(x float64) float64 {
	return func(x float64) float64 {
		if x > 0 {
			return x
		}
		return alpha * math.Expm1(x)
	}
}

func softplusRef(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func geluRef(x float64) float64 {
	return x / (1 + math.Exp(-2*math.Sqrt2/math.SqrtPi*(x+0.044715*x*x*x)))
}

var functions = []function{
	{name: "Exp", ulp: 1.6, f: math.Exp, points: []float64{88.72, 103.97, 87.33}},
	{name: "Expm1", ulp: 1.7, f: math.Expm1, points: []float64{88.72, 0x1p-25, 0.3466, 17, 20}, odd: true},
	{name: "Log", ulp: 1, f: math.Log, rare: notPositive, points: []float64{math.Sqrt2, math.Sqrt2 / 2}},
	{name: "Log2", ulp: 1.4, f: math.Log2, rare: notPositive, points: []float64{math.Sqrt2, math.Sqrt2 / 2}},
	{name: "Log10", ulp: 1.4, f: math.Log10, rare: notPositive, points: []float64{math.Sqrt2, math.Sqrt2 / 2}},
	{name: "Sin", ulp: 1.8, f: math.Sin, rare: above(trigLimit), points: multiplesOfPi},
	{name: "Cos", ulp: 2, f: math.Cos, rare: above(trigLimit), points: multiplesOfPi},
	{name: "Tan", ulp: 1.7, f: math.Tan, rare: above(trigLimit), points: multiplesOfPi},
	{name: "Asin", ulp: 1.5, f: math.Asin, odd: true},
	{name: "Acos", ulp: 1.3, f: math.Acos},
	{name: "Atan", ulp: 1.6, f: math.Atan, odd: true},
	{name: "Sinh", ulp: 1.7, f: math.Sinh, odd: true, points: []float64{89.41, 88.72, 91}},
	{name: "Cosh", ulp: 1.6, f: math.Cosh, points: []float64{89.41, 88.72, 91}},
	{name: "Tanh", ulp: 1.7, f: math.Tanh, odd: true, points: []float64{9.01, 10, 0.1733}},
	{name: "Asinh", ulp: 1.9, f: math.Asinh, odd: true, rare: above(large), points: []float64{0x1p60, 0x1p12, 0x1p24}},
	{name: "Acosh", ulp: 2, f: math.Acosh, rare: func(x float64) bool { return !(x >= 1 && x <= large) },
		points: []float64{0x1p60, 0x1p12, 0x1p24}},
	{name: "Atanh", ulp: 1.9, f: math.Atanh, odd: true, rare: func(x float64) bool { return !(math.Abs(x) < 1) },
		points: []float64{0x1p-12}},
	{name: "Sigmoid", ulp: 1.8, f: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		points: []float64{17.3, 30, 88.72, 103.97, 87.33, 110}},
	{name: "SiLU", ulp: 1.8, f: zeroAtMinusInf(func(x float64) float64 { return x / (1 + math.Exp(-x)) }),
		points: []float64{17.3, 30, 92, 103.97, 108.4, 110}},
	{name: "GELU", ulp: 1.8, f: zeroAtMinusInf(geluRef), points: []float64{6, 5, 10.05, 10.8, 11}},
	{name: "GELUErf", ulp: 2, f: zeroAtMinusInf(func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }),
		points: []float64{5.4, 12.8, 13.3, 14.3, 14.75}},
	{name: "Erf", ulp: 1.5, f: math.Erf, odd: true, points: []float64{3.83, 3.95}},
	{name: "Mish", ulp: 1.6, f: zeroAtMinusInf(func(x float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) }),
		points: []float64{20, 64, 92, 103.97, 108.4, 110}},
	{name: "Softplus", ulp: 1.9, f: softplusRef, points: []float64{16.6, 87.33, 103.97, 105}},
	{name: "ELU", ulp: 1.7, f: expm1Of(1), params: []float32{1}, points: []float64{16.6, 20}},
	{name: "ELU", ulp: 1.7, f: expm1Of(0.75), params: []float32{0.75}, points: []float64{16.6, 20}},
	{name: "PowScalar", ulp: 1.3, params: []float32{2.2}, f: powOf(2.2), rare: notPow, points: powPoints},
	{name: "PowScalar", ulp: 1.3, params: []float32{-0.3}, f: powOf(-0.3), rare: notPow, points: powPoints},
	{name: "PowScalar", ulp: 1.3, params: []float32{150}, f: powOf(150), rare: notPow, points: powPoints},
	{name: "PowScalar", ulp: 1.3, params: []float32{-3000}, f: powOf(-3000), rare: notPow, points: powPoints},
	{name: "PowScalar", ulp: 1.3, params: []float32{0}, f: powOf(0), rare: notPow, points: powPoints},
	{name: "SELU", ulp: 2, f: func(x float64) float64 { return seluScale * expm1Of(seluAlpha)(x) }},
}

var multiplesOfPi = func() (p []float64) {
	for i := 1; i < 40; i++ {
		p = append(p, float64(i)*math.Pi/4)
	}
	for _, i := range []float64{255, 256, 1023, 1024, 2047, 4096, 5214} {
		p = append(p, i*math.Pi, (i+0.5)*math.Pi)
	}
	return append(p, trigLimit)
}()

func powOf(e float32) func(float64) float64 {
	return func(x float64) float64 { return math.Pow(x, float64(e)) }
}

func notPow(x float64) bool { return !(x >= 0x1p-126) || math.IsInf(x, 1) }

var powPoints = []float64{math.Sqrt2, math.Sqrt2 / 2, 1, 0.99, 1.01}

func TestFunctions(t *testing.T) {
	for _, fn := range functions {
		t.Run(fn.name, fn.check)
	}
}
