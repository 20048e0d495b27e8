package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
)

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

// tanh64 takes the Taylor series near 0, where 1 − 2/(e²ˣ+1) cancels.
func tanh64(x float64) float64 {
	a := math.Abs(x)
	if a < 0.3 {
		s := x * x
		return x * (1 + s*(-1./3+s*(2./15+s*(-17./315+s*(62./2835+s*(-1382./155925+s*(21844./6081075)))))))
	}
	return math.Copysign(1-2/(exp64(2*a)+1), x)
}

func sigmoid64(x float64) float64 { return 1 / (1 + exp64(-x)) }

// softplus64 is max(x, 0) + log(1+e⁻ˡˣˡ); the sum in the logarithm would lose a small addend.
func softplus64(x float64) float64 {
	e := exp64(-math.Abs(x))
	if e < 1e-6 {
		return max(x, 0) + e*(1-e/2)
	}
	return max(x, 0) + math.Log(1+e)
}

// limited reports −Inf, at which x·f(x) with f → 0 is not what IEEE arithmetic makes of it.
func limited(x float64) bool { return x < -math.MaxFloat64 }

func silu64(x float64) float64 {
	if limited(x) {
		return 0
	}
	return x / (1 + exp64(-x))
}

// gelu64 uses ½(1 + tanh u) = 1/(1 + e⁻²ᵘ), which does not cancel.
func gelu64(x float64) float64 {
	if limited(x) {
		return 0
	}
	u := math.Sqrt2 * 2 / math.SqrtPi * x * (1 + 0.044715*x*x) // 2·√(2/π)·(x + 0.044715x³)
	return x / (1 + exp64(-u))
}

func geluErf64(x float64) float64 {
	if limited(x) {
		return 0
	}
	return 0.5 * x * math.Erfc(-x/math.Sqrt2)
}

// mish64 uses tanh(log(1+e)) = n/(n+2) with n = e(e+2).
func mish64(x float64) float64 {
	if limited(x) {
		return 0
	}
	e := exp64(x)
	n := e * (e + 2)
	return x * (n / (n + 2))
}

// selu64: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
func selu64(x float64) float64 {
	if x > 0 {
		return catalogue.SELUScale * x
	}
	return catalogue.SELUScale * catalogue.SELUAlpha * math.Expm1(x)
}
