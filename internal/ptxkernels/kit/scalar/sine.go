package scalar

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// Sine is sin(x + quarters·π/2), to 1e-7 for |x| up to about 10⁶; beyond, the error grows, and the result stays within [-1, 1].
//
// The argument is reduced to [−π/4, π/4] with π/2 in two parts (Cody and Waite), of which the first, fused, leaves no error: it
// ends in 2⁻²³, and so does the difference.
func (c Math) Sine(x Float, quarters uint32) Float {
	const (
		shift = 0x1.8p23 // added to a number, leaves its nearest integer in the last bits
		upper = float64(float32(math.Pi / 2))
	)
	shifted := x.Fma(2/math.Pi, shift)
	quadrant := ptx.Bitcast[uint32](shifted).Add(quarters)
	n := shifted.Add(-shift)
	r := n.Fma(-upper, x)
	r = n.Fma(upper-math.Pi/2, r)
	r = r.Max(-1).Min(1) // which it is, until x is so large that n is far off

	sin, cos := c.NearSine(r)
	odd := quadrant.And(1).Ne(0)
	sign := quadrant.And(2).Shl(30)
	y := ptx.Bitcast[uint32](c.Where(odd, cos, sin)).Xor(sign)
	return x.Fma(0, ptx.Bitcast[float32](y)) // 0·x is NaN for infinities and NaN
}

// NearSine is the sine and the cosine in [−π/4, π/4].
func (c Math) NearSine(r Float) (sin, cos Float) {
	z := r.Mul(r)
	sin = r.Mul(z).Fma(c.polynomial(z, -0.166666642, 0.00833274238, -0.000195866072), r) // 8e-9
	cos = c.polynomial(z, 1, -0.5, 0.0416666642, -0.00138882967, 2.45466563e-05)         // 6e-10
	return sin, cos
}
