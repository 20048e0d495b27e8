package simd

import (
	"math"

	"github.com/wavelane/wavelane/internal/op"
)

// The functions of one element compute in float64 and round once, so that their error is little more than that of the
// rounding: 0.5 ULP, 0.51 with exp64.

// exp64 is eˣ within 2⁻³¹ for |x| up to 200, where every float32 result is 0 or +Inf already; beyond, it is that of ±200.
// NaN gives NaN.
//
// With k = round(x/ln 2) and r = x − k·ln 2, eˣ = 2ᵏ·eʳ. The two halves are functions of their own so that the compiler
// inlines them into loops: there, unlike in a call, the conversion of the next element to float64 does not wait for the
// register that holds this one's result.
func exp64(x float64) float64 {
	r, scale := reduceExp(x)
	return taylorExp(r) * scale
}

// reduceExp returns r, |r| ≤ 0.347, and 2ᵏ.
func reduceExp(x float64) (r, scale float64) {
	const magic = 0x1.8p52 // adding it rounds to an integer, which the low bits of the sum then hold
	if x > 200 {
		x = 200
	} else if x < -200 {
		x = -200
	}
	t := x*math.Log2E + magic
	return x - (t-magic)*math.Ln2, math.Float64frombits((math.Float64bits(t) + 1023) << 52)
}

// taylorExp is eʳ by its series to degree 8, whose rest is below 2.5e-10.
func taylorExp(r float64) float64 {
	r2 := r * r
	low := 1 + r + r2*(1./2+r*(1./6))
	high := 1./24 + r*(1./120) + r2*(1./720+r*(1./5040)+r2*(1./40320))
	return low + r2*r2*high
}

func expf(x float32) float32  { return float32(exp64(float64(x))) }
func logf(x float32) float32  { return float32(math.Log(float64(x))) }
func log2f(x float32) float32 { return float32(math.Log2(float64(x))) }
func sinf(x float32) float32  { return float32(math.Sin(float64(x))) }
func cosf(x float32) float32  { return float32(math.Cos(float64(x))) }

func tanhf(x float32) float32     { return float32(tanh64(float64(x))) }
func softplusf(x float32) float32 { return float32(softplus64(float64(x))) }

// tanh64 takes the Taylor series near 0, where 1 − 2/(e²ˣ+1) cancels.
func tanh64(x float64) float64 {
	a := math.Abs(x)
	if a < 0.3 {
		s := x * x
		return x * (1 + s*(-1./3+s*(2./15+s*(-17./315+s*(62./2835+s*(-1382./155925+s*(21844./6081075)))))))
	}
	return math.Copysign(1-2/(exp64(2*a)+1), x)
}

// softplus64 is max(x, 0) + log(1+e⁻ˡˣˡ); the sum in the logarithm would lose a small addend.
func softplus64(x float64) float64 {
	e := exp64(-math.Abs(x))
	if e < 1e-6 {
		return max(x, 0) + e*(1-e/2)
	}
	return max(x, 0) + math.Log(1+e)
}

func sigmoidf(x float32) float32 { return float32(1 / (1 + exp64(-float64(x)))) }

// limited reports −Inf, at which x·f(x) with f → 0 is not what IEEE arithmetic makes of it.
func limited(x float32) bool { return x < -math.MaxFloat32 }

func swishf(x float32) float32 {
	if limited(x) {
		return 0
	}
	v := float64(x)
	return float32(v / (1 + exp64(-v)))
}

// geluf uses ½(1 + tanh u) = 1/(1 + e⁻²ᵘ), which does not cancel.
func geluf(x float32) float32 {
	if limited(x) {
		return 0
	}
	v := float64(x)
	u := math.Sqrt2 * 2 / math.SqrtPi * v * (1 + 0.044715*v*v) // 2·√(2/π)·(x + 0.044715x³)
	return float32(v / (1 + exp64(-u)))
}

func geluErff(x float32) float32 {
	if limited(x) {
		return 0
	}
	v := float64(x)
	return float32(0.5 * v * math.Erfc(-v/math.Sqrt2))
}

// mishf uses tanh(log(1+e)) = n/(n+2) with n = e(e+2).
func mishf(x float32) float32 {
	if limited(x) {
		return 0
	}
	e := exp64(float64(x))
	n := e * (e + 2)
	return float32(float64(x) * (n / (n + 2)))
}

func seluf(x float32) float32 {
	if x > 0 {
		return float32(op.SELUScale * float64(x))
	}
	return float32(op.SELUScale * op.SELUAlpha * math.Expm1(float64(x)))
}

// each makes a loop of a function of one element.
func each(f func(float32) float32) func(y, a []float32) {
	return func(y, a []float32) {
		a = a[:len(y)]
		for i, v := range a {
			y[i] = f(v)
		}
	}
}

func elu(y, a []float32, alpha float32) {
	a = a[:len(y)]
	for i, v := range a {
		y[i] = eluf(v, alpha)
	}
}

//go:noinline // as with exp64, the conversion must not wait for the element before
func eluf(x, alpha float32) float32 {
	if x > 0 {
		return x
	}
	return float32(float64(alpha) * math.Expm1(float64(x)))
}

// powScalar has the exponents that people use without a call of pow; products of float64 have room for them.
func powScalar(y, a []float32, exponent float32) {
	a = a[:len(y)]
	e := float64(exponent)
	for i, v := range a {
		x := float64(v)
		switch e {
		case 1:
		case 2:
			x *= x
		case 3:
			x *= x * x
		case -1:
			x = 1 / x
		default:
			x = math.Pow(x, e)
		}
		y[i] = float32(x)
	}
}

func pow(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = float32(math.Pow(float64(a[i]), float64(b[i])))
	}
}
