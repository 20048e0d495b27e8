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

// geluErf is max(x, 0) − a·Φ(−a) with a = |x|: the lower tail of the normal distribution times a is e^(−a²/2)·w(a). The
// exponent is taken in double precision, as its error is that of the result, relatively. w is a polynomial in
// t = (a−1.5)/(a+1.5), a map for functions on [0, ∞) from Shepherd and Laframboise, "Chebyshev approximation of
// (1+2x)exp(x²)erfc x", 1981. Where a is small Φ is a polynomial.
func geluErf(b *builder, x f) f {
	k := b.Const(1.5)
	a := b.MinNaN(b.Abs(x), b.Const(14.75))
	t := b.Div(b.Sub(a, k), b.Add(a, k))
	z, zl := twoProd(b, a, b.Mul(a, b.Const(-0.5)))
	q, s, c := expNegative(b, z, &zl)
	first, rest := b.Const(normalTail[0]), b.Poly(t, normalTail[1:]...)
	w := b.MulAdd(t, rest, first)
	wl := b.MulAdd(t, rest, b.Sub(first, w)) // what w lost
	w = b.Mul(b.Add(b.MulAdd(w, q, wl), w), s)
	large := b.NegMulAdd(w, c, b.MaxNaN(x, b.Const(0)))
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
