package scalar

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// Math writes float32 arithmetic into a kernel. What PTX only approximates (ex2 within 2 ulp, rcp within 1) is used where the
// catalogue's tolerances leave room for that. Instructions that take denormals for zero (.ftz) are used where their operand and
// result cannot be one, or where one more or less is nothing: they are a single instruction of the machine.
//
// Polynomials are interpolated at Chebyshev's points; their errors, in float64, are said with each.
type Math struct{ K *ptx.Kernel }

// Float is a float32 in a register.
type Float = ptx.Reg[float32]

var infinity = math.Inf(1)

// Where is x if p, else y.
func (c Math) Where(p ptx.Reg[bool], x, y Float) Float { return ptx.Select(p, x, y) }

// truth is 1 if p, else 0.
func (c Math) truth(p ptx.Reg[bool]) Float { return c.Where(p, ptx.F32(1), ptx.F32(0)) }

// polynomial is p[0] + p[1]·x + p[2]·x² …
func (c Math) polynomial(x Float, p ...float64) Float {
	y := ptx.F32(p[len(p)-1])
	for i := len(p) - 2; i >= 0; i-- {
		y = x.Fma(y, p[i])
	}
	return y
}

// Inverse is 1/x for x that is not beyond 2¹²⁶, or gives 0 there.
func (c Math) Inverse(x Float) Float { return x.Rcp(ptx.Approx, ptx.FTZ) }

// Exp2 is 2ˣ, and exp eˣ: relative error 3e-7 + |x|·1e-7.
func (c Math) Exp2(x Float) Float { return x.Ex2() }
func (c Math) exp(x Float) Float  { return c.Exp2(x.Mul(math.Log2E)) }

// SmallExp2 is 2ˣ where a denormal result may as well be 0.
func (c Math) SmallExp2(x Float) Float { return x.Ex2(ptx.FTZ) }

// relu is max(x, 0), and NaN for NaN.
func (c Math) relu(x Float) Float { return c.Where(x.Lt(0), ptx.F32(0), x) }

// sigmoid is 1/(1+e⁻ˣ).
func (c Math) sigmoid(x Float) Float {
	return c.Inverse(c.SmallExp2(x.Mul(-math.Log2E)).Add(1))
}

// Silu is x·sigmoid(x); at −Inf, where that is −Inf·0, its limit. A sigmoid that rounding puts above 1 would make ±Inf of the
// largest numbers.
func (c Math) Silu(x Float) Float {
	return c.zeroBelow(-120, x, x.Mul(c.sigmoid(x).Min(1)))
}

// PlainSiLU is silu where registers are short: the largest numbers may become ±Inf.
func (c Math) PlainSiLU(x Float) Float { return c.zeroBelow(-120, x, x.Mul(c.sigmoid(x))) }

// zeroBelow is 0 where x is below a limit from which on y is as good as 0, else y.
func (c Math) zeroBelow(limit float64, x, y Float) Float {
	return c.Where(x.Lt(limit), ptx.F32(0), y)
}

// gelu is x·sigmoid(2u) = ½x·(1 + tanh u) with u = √(2/π)·(x + 0.044715x³).
func (c Math) gelu(x Float) Float {
	const scale = -2 * 0.79788456080286535588 * math.Log2E // for e⁻²ᵘ as a power of two
	u := x.Mul(c.polynomial(x.Mul(x), scale, scale*0.044715))
	return c.zeroBelow(-20, x, x.Mul(c.Inverse(c.SmallExp2(u).Add(1))))
}

// geluErf is x·Φ(x). Φ(−|x|) = ½·erfc(|x|/√2) is formula 7.1.26 of Abramowitz and Stegun, exact to 0.8e-7.
func (c Math) geluErf(x Float) Float {
	a := x.Abs().Min(20)
	t := c.Inverse(a.Fma(0.23164189, 1))
	tail := t.Mul(c.polynomial(t, 0.127414796, -0.142248368, 0.7107068705, -0.7265760135, 0.5307027145))
	e := c.SmallExp2(a.Mul(a).Mul(-0.5 * math.Log2E))
	return a.Neg().Fma(tail.Mul(e), c.relu(x))
}

// Tanh is odd: x + x³·P(x²) near 0 (8e-9), else ±(1 − 2/(e^2|x| + 1)).
func (c Math) Tanh(x Float) Float {
	a, z := x.Abs(), x.Mul(x)
	near := x.Mul(z).Fma(c.polynomial(z, -0.333333284, 0.133325323, -0.053715121, 0.0192680452), x)
	r := c.Inverse(c.SmallExp2(a.Mul(2 * math.Log2E)).Add(1))
	far := c.withSign(r.Fma(-2, 1), x)
	return c.Where(a.Lt(0.4), near, far)
}

// withSign is |x| with the sign of s.
func (c Math) withSign(x, s Float) Float { return x.Copysign(s) }

// Expm1 is eˣ − 1 for x up to 0: x + x²·P(x) near 0 (1e-8).
func (c Math) Expm1(x Float) Float {
	near := x.Mul(x).Fma(c.polynomial(x, 0.5, 0.166665629, 0.0416499302, 0.00823822152, 0.00116428698), x)
	far := c.SmallExp2(x.Mul(math.Log2E)).Add(-1)
	return c.Where(x.Gt(-0.5), near, far)
}

// elu is x where x > 0, else alpha·(eˣ − 1).
func (c Math) elu(x, alpha Float) Float {
	return c.Where(x.Gt(0), x, alpha.Mul(c.Expm1(x)))
}

// softplus is max(x, 0) + log(1+e) with e = e^−|x|, by the series of 2·atanh(e/(2+e)) (2e-8), which keeps small e.
func (c Math) softplus(x Float) Float {
	e := c.SmallExp2(x.Abs().Mul(-math.Log2E))
	s := e.Mul(c.Inverse(e.Add(2)))
	z, twice := s.Mul(s), s.Add(s)
	p := c.polynomial(z, 0.333333194, 0.200037807, 0.141183093, 0.134257495)
	return c.relu(x).Add(twice.Mul(z).Fma(p, twice))
}

// mish is x·tanh(softplus(x)), which is x·w/(w+2) with w = n² + 2n, n = eˣ; beyond 40, where that is x, n stays.
func (c Math) mish(x Float) Float {
	n := c.SmallExp2(x.Min(40).Mul(math.Log2E))
	w := n.Mul(n.Add(2))
	return c.zeroBelow(-120, x, x.Mul(w.Mul(c.Inverse(w.Add(2)))))
}

// hardSwish is x·min(max(x+3, 0), 6)/6.
func (c Math) hardSwish(x Float) Float {
	return c.zeroBelow(-3, x, x.Mul(x.Fma(1.0/6, 0.5, ptx.Sat)))
}

// sign is −1 or 1, or x itself where that is 0 or NaN.
func (c Math) sign(x Float) Float {
	return c.Where(x.Abs().Gt(0), c.withSign(ptx.F32(1), x), x)
}

// NanMax and nanMin are NaN if an operand is: max.NaN would need sm_80.
func (c Math) NanMax(x, y Float) Float {
	return c.Where(x.SetP(ptx.Nan, y), ptx.F32(math.NaN()), x.Max(y))
}

func (c Math) nanMin(x, y Float) Float {
	return c.Where(x.SetP(ptx.Nan, y), ptx.F32(math.NaN()), x.Min(y))
}
