package kernels

import "math"

// The portable fallbacks of functions compute in float64 and round once, so that their error is little more than that of the rounding:
// 0.5 ULP, 0.51 with exp64. A fast variant's portable fallback is that of the accurate function.

func expGo(y, x []float32) {
	x = x[:len(y)]
	for i, v := range x {
		r, scale := reduceExp(float64(v))
		y[i] = float32(taylorExp(r) * scale)
	}
}

// each stores f of every element. It calls f through its value, as the compiler would inline what it knows: in the loop, unlike
// in a function, the conversion of the next element to float64 waits for the register that holds this one's result.
//
//go:noinline
func each(y, x []float32, f func(v float32) float32) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = f(v)
	}
}

func expm1Go(y, x []float32)    { each(y, x, expm1f) }
func logGo(y, x []float32)      { each(y, x, logf) }
func log2Go(y, x []float32)     { each(y, x, log2f) }
func log10Go(y, x []float32)    { each(y, x, log10f) }
func sinGo(y, x []float32)      { each(y, x, sinf) }
func cosGo(y, x []float32)      { each(y, x, cosf) }
func tanGo(y, x []float32)      { each(y, x, tanf) }
func asinGo(y, x []float32)     { each(y, x, asinf) }
func acosGo(y, x []float32)     { each(y, x, acosf) }
func atanGo(y, x []float32)     { each(y, x, atanf) }
func sinhGo(y, x []float32)     { each(y, x, sinhf) }
func coshGo(y, x []float32)     { each(y, x, coshf) }
func tanhGo(y, x []float32)     { each(y, x, tanhf) }
func asinhGo(y, x []float32)    { each(y, x, asinhf) }
func acoshGo(y, x []float32)    { each(y, x, acoshf) }
func atanhGo(y, x []float32)    { each(y, x, atanhf) }
func sigmoidGo(y, x []float32)  { each(y, x, sigmoidf) }
func geluGo(y, x []float32)     { each(y, x, geluf) }
func geluErfGo(y, x []float32)  { each(y, x, geluErff) }
func erfGo(y, x []float32)      { each(y, x, erff) }
func siLUGo(y, x []float32)     { each(y, x, siluf) }
func mishGo(y, x []float32)     { each(y, x, mishf) }
func softplusGo(y, x []float32) { each(y, x, softplusf) }
func seluGo(y, x []float32)     { each(y, x, seluf) }

func expm1f(v float32) float32    { return float32(math.Expm1(float64(v))) }
func logf(v float32) float32      { return float32(math.Log(float64(v))) }
func log2f(v float32) float32     { return float32(math.Log(float64(v)) * math.Log2E) }
func log10f(v float32) float32    { return float32(math.Log(float64(v)) * math.Log10E) }
func sinf(v float32) float32      { return float32(math.Sin(float64(v))) }
func cosf(v float32) float32      { return float32(math.Cos(float64(v))) }
func tanf(v float32) float32      { return float32(math.Tan(float64(v))) }
func asinf(v float32) float32     { return float32(math.Asin(float64(v))) }
func acosf(v float32) float32     { return float32(math.Acos(float64(v))) }
func atanf(v float32) float32     { return float32(math.Atan(float64(v))) }
func sinhf(v float32) float32     { return float32(math.Sinh(float64(v))) }
func coshf(v float32) float32     { return float32(math.Cosh(float64(v))) }
func tanhf(v float32) float32     { return float32(tanh64(float64(v))) }
func asinhf(v float32) float32    { return float32(math.Asinh(float64(v))) }
func acoshf(v float32) float32    { return float32(math.Acosh(float64(v))) }
func atanhf(v float32) float32    { return float32(math.Atanh(float64(v))) }
func sigmoidf(v float32) float32  { return float32(sigmoid64(float64(v))) }
func geluf(v float32) float32     { return float32(gelu64(float64(v))) }
func geluErff(v float32) float32  { return float32(geluErf64(float64(v))) }
func erff(v float32) float32      { return float32(math.Erf(float64(v))) }
func siluf(v float32) float32     { return float32(silu64(float64(v))) }
func mishf(v float32) float32     { return float32(mish64(float64(v))) }
func softplusf(v float32) float32 { return float32(softplus64(float64(v))) }
func seluf(v float32) float32     { return float32(selu64(float64(v))) }

func eluGo(y, x []float32, alpha float32) {
	x = x[:len(y)]
	for i, v := range x {
		if !(v > 0) {
			v = float32(float64(alpha) * math.Expm1(float64(v)))
		}
		y[i] = v
	}
}

func powGo(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = float32(math.Pow(float64(a[i]), float64(b[i])))
	}
}

// powScalarGo has the exponents that people use without a call of pow; products of float64 have room for them.
func powScalarGo(y, a []float32, e float32) {
	a = a[:len(y)]
	switch e {
	case 1:
		copy(y, a)
	case 2:
		mulGo(y, a, a)
	case 3:
		for i, v := range a {
			x := float64(v)
			y[i] = float32(x * x * x)
		}
	case -1:
		recipGo(y, a)
	default:
		for i, v := range a {
			y[i] = float32(math.Pow(float64(v), float64(e)))
		}
	}
}

func fastExpGo(y, x []float32)     { expGo(y, x) }
func fastTanhGo(y, x []float32)    { tanhGo(y, x) }
func fastSigmoidGo(y, x []float32) { sigmoidGo(y, x) }
func fastGELUGo(y, x []float32)    { geluGo(y, x) }

// expSubGo returns the sum of what it stores. The difference is rounded to float32, as in all tiers.
func expSubGo(y, x []float32, m float32) float32 {
	x = x[:len(y)]
	s := 0.0
	for i, v := range x {
		r, scale := reduceExp(float64(v - m))
		e := taylorExp(r) * scale
		y[i] = float32(e)
		s += e
	}
	return float32(s)
}

func sumExpSubGo(x []float32, m float32) float32 {
	s := 0.0
	for _, v := range x {
		r, scale := reduceExp(float64(v - m))
		s += taylorExp(r) * scale
	}
	return float32(s)
}
