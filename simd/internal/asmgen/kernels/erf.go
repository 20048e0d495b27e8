package kernels

// erf is an odd polynomial below 1 and a polynomial about 2.375 above, up to where it is 1.
func erf(b *builder, x f) f {
	a := b.Abs(x)
	z := b.Mul(a, a)
	small := b.MulAdd(a, b.Poly(z, erfPoly...), a)
	t := b.Sub(b.MinNaN(a, b.Const(3.95)), b.Const(2.375))
	return b.CopySign(b.Select(b.LT(b.Const(1), a), b.Poly(t, erfTail...), small), x)
}

// erfPoly is erf r/r − 1 of r² for |r| ≤ 1; erf r is then right within 2⁻²⁹.
var erfPoly = []float64{
	0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce6p-4, -0x1.b7f71ap-6, 0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fep-14,
}

// erfTail is erf(2.375 + t) for 1 ≤ 2.375 + t ≤ 3.95 within 2⁻²⁵.
var erfTail = []float64{
	0x1.ff9962p-1, 0x1.0693d4p-8, -0x1.37d8d6p-7, 0x1.c1dba6p-7, -0x1.adfe36p-7, 0x1.121928p-7, -0x1.9c4ae0p-9,
	0x1.d940a6p-14, 0x1.4e9b1ep-11, -0x1.5d88b8p-12, 0x1.788d2ap-16, 0x1.21b50cp-15, -0x1.2b8240p-17,
}

// geluErf is max(x, 0) − a·Φ(−a) with a = |x|: the lower tail of the normal distribution times a is e^(−a²/2)·w(a). The exponent is
// taken in double precision, as its error is that of the result, relatively. w is a polynomial in t = (a−1.5)/(a+1.5), a map for
// functions on [0, ∞) from Shepherd and Laframboise, "Chebyshev approximation of (1+2x)exp(x²)erfc x", 1981. Where a is small
// Φ is a polynomial.
func geluErf(b *builder, x f) f {
	k := b.Const(1.5)
	a := b.MinNaN(b.Abs(x), b.Const(14.75))
	t := b.Div(b.Sub(a, k), b.Add(a, k))
	z, zl := twoProd(b, a, b.Mul(a, b.Const(-0.5)))
	q, s, c := expNegative(b, z, &zl)
	w := b.Mul(s, b.Poly(t, normalTail...))
	large := b.NegMulAdd(b.MulAdd(w, q, w), c, b.MaxNaN(x, b.Const(0)))
	small := b.Mul(x, b.MulAdd(x, b.Poly(z, normalCentre...), b.Const(0.5)))
	return b.Select(b.LT(b.Const(0.75), a), large, small)
}

// normalTail is a·Φ(−a)·e^(a²/2) of (a−1.5)/(a+1.5) for 0.75 ≤ a ≤ 15 within 2⁻²⁶.
var normalTail = []float64{
	0x1.3c1440p-2, 0x1.b0604cp-3, -0x1.02a7fep-3, -0x1.4450bep-6, 0x1.22d4e6p-6, 0x1.60558ep-7, 0x1.078666p-10,
	-0x1.3d877ap-9, -0x1.7ccb88p-9, 0x1.72a81ap-12, 0x1.71caa2p-11,
}

// normalCentre is (Φ(x) − ½)/x of −x²/2 for |x| ≤ 0.75; Φ is then right within 2⁻²⁸.
var normalCentre = []float64{0x1.988452p-2, 0x1.1057b6p-3, 0x1.46b146p-5, 0x1.342528p-7, 0x1.9cc08ap-10}

// mish is x·h/(h + 1) with h = e + e²/2, e = eˣ. For x < −2 that is n − n·h/(h + 1) with n = x·h, and as e is s·(1 + q) that is
// x·s·(1 + q + (1+q)·e/2); for x > 0.75 it is x − x/(h + 1): the quotient's error hardly counts. Between it is a polynomial.
func mish(b *builder, x f) f {
	v := clamp(b, x, -110, 20)
	q, s, c := expNegative(b, v, nil)
	one := b.Const(1)
	e := b.Mul(b.MulAdd(s, q, s), c)
	half := b.Mul(e, b.Const(0.5))
	h := b.MulAdd(e, half, e)
	n := b.Mul(v, s)
	n = b.MulAdd(n, b.MulAdd(b.Add(q, one), half, q), n)
	above := b.LT(b.Const(0), x)
	y := b.Div(b.Select(above, v, b.Mul(n, h)), b.Add(h, one))
	y = b.Mul(b.Sub(b.Select(above, x, n), y), c)
	t := b.Add(x, b.Const(1.5))
	return b.Select(b.LT(b.Abs(b.Sub(x, b.Const(-0.625))), b.Const(1.375)), b.Mul(x, b.Poly(t, mishPoly...)), y)
}

// mishPoly is mish(x)/x of x + 1.5 for −2 ≤ x ≤ 0.75 within 2⁻²⁵.
var mishPoly = []float64{
	0x1.97016ap-3, 0x1.66da14p-3, 0x1.0b5deep-4, 0x1.0e9beep-7, -0x1.ca5d28p-9, -0x1.1c9434p-9, -0x1.ff000ep-12,
	0x1.8b63aep-14, 0x1.fd509ap-15, -0x1.d0c308p-15, 0x1.a1050cp-14, -0x1.c3430ap-15, 0x1.812b60p-17, -0x1.d373e4p-21,
}
