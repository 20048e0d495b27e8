package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// calc writes float32 arithmetic into a kernel. What PTX only approximates (ex2 within 2 ulp, rcp within 1) is used where the
// catalogue's tolerances leave room for that. Instructions that take denormals for zero (.ftz) are used where their operand and
// result cannot be one, or where one more or less is nothing: they are a single instruction of the machine.
//
// Polynomials are interpolated at Chebyshev's points; their errors, in float64, are said with each.
type calc struct{ k *ptx.Kernel }

type float = ptx.Reg[float32]

var infinity = math.Inf(1)

// num is a constant.
func num(v float64) float { return ptx.Imm(float32(v)) }

func (c calc) add(x, y float) float    { return ptx.Add(c.k, x, y) }
func (c calc) sub(x, y float) float    { return ptx.Sub(c.k, x, y) }
func (c calc) mul(x, y float) float    { return ptx.Mul(c.k, x, y) }
func (c calc) fma(x, y, z float) float { return ptx.Fma(c.k, x, y, z) }
func (c calc) abs(x float) float       { return ptx.Abs(c.k, x) }
func (c calc) neg(x float) float       { return ptx.Neg(c.k, x) }

// min and max are of numbers: of a number and NaN they are the number.
func (c calc) min(x, y float) float { return ptx.Min(c.k, x, y) }
func (c calc) max(x, y float) float { return ptx.Max(c.k, x, y) }

// where is x if p, else y.
func (c calc) where(p ptx.Reg[bool], x, y float) float { return ptx.Select(c.k, p, x, y) }

// truth is 1 if p, else 0.
func (c calc) truth(p ptx.Reg[bool]) float { return c.where(p, num(1), num(0)) }

// polynomial is p[0] + p[1]·x + p[2]·x² …
func (c calc) polynomial(x float, p ...float64) float {
	y := num(p[len(p)-1])
	for i := len(p) - 2; i >= 0; i-- {
		y = c.fma(x, y, num(p[i]))
	}
	return y
}

// inverse is 1/x for x that is not beyond 2¹²⁶, or gives 0 there.
func (c calc) inverse(x float) float { return ptx.Rcp(c.k, x, ptx.Approx, ptx.FTZ) }

// exp2 is 2ˣ, and exp eˣ: relative error 3e-7 + |x|·1e-7.
func (c calc) exp2(x float) float { return ptx.Ex2(c.k, x) }
func (c calc) exp(x float) float  { return c.exp2(c.mul(x, num(math.Log2E))) }

// smallExp2 is 2ˣ where a denormal result may as well be 0.
func (c calc) smallExp2(x float) float { return ptx.Ex2(c.k, x, ptx.FTZ) }

// relu is max(x, 0), and NaN for NaN.
func (c calc) relu(x float) float { return c.where(ptx.Lt(c.k, x, num(0)), num(0), x) }

// sigmoid is 1/(1+e⁻ˣ).
func (c calc) sigmoid(x float) float {
	return c.inverse(c.add(c.smallExp2(c.mul(x, num(-math.Log2E))), num(1)))
}

// silu is x·sigmoid(x); at −Inf, where that is −Inf·0, its limit. A sigmoid that rounding puts above 1 would make ±Inf of the
// largest numbers.
func (c calc) silu(x float) float {
	return c.zeroBelow(-120, x, c.mul(x, c.min(c.sigmoid(x), num(1))))
}

// plainSiLU is silu where registers are short: the largest numbers may become ±Inf.
func (c calc) plainSiLU(x float) float { return c.zeroBelow(-120, x, c.mul(x, c.sigmoid(x))) }

// zeroBelow is 0 where x is below a limit from which on y is as good as 0, else y.
func (c calc) zeroBelow(limit float64, x, y float) float {
	return c.where(ptx.Lt(c.k, x, num(limit)), num(0), y)
}

// gelu is x·sigmoid(2u) = ½x·(1 + tanh u) with u = √(2/π)·(x + 0.044715x³).
func (c calc) gelu(x float) float {
	const scale = -2 * 0.79788456080286535588 * math.Log2E // for e⁻²ᵘ as a power of two
	u := c.mul(x, c.polynomial(c.mul(x, x), scale, scale*0.044715))
	return c.zeroBelow(-20, x, c.mul(x, c.inverse(c.add(c.smallExp2(u), num(1)))))
}

// geluErf is x·Φ(x). Φ(−|x|) = ½·erfc(|x|/√2) is formula 7.1.26 of Abramowitz and Stegun, exact to 0.8e-7.
func (c calc) geluErf(x float) float {
	a := c.min(c.abs(x), num(20))
	t := c.inverse(c.fma(a, num(0.23164189), num(1)))
	tail := c.mul(t, c.polynomial(t, 0.127414796, -0.142248368, 0.7107068705, -0.7265760135, 0.5307027145))
	e := c.smallExp2(c.mul(c.mul(a, a), num(-0.5*math.Log2E)))
	return c.fma(c.neg(a), c.mul(tail, e), c.relu(x))
}

// tanh is odd: x + x³·P(x²) near 0 (8e-9), else ±(1 − 2/(e^2|x| + 1)).
func (c calc) tanh(x float) float {
	a, z := c.abs(x), c.mul(x, x)
	near := c.fma(c.mul(x, z), c.polynomial(z, -0.333333284, 0.133325323, -0.053715121, 0.0192680452), x)
	r := c.inverse(c.add(c.smallExp2(c.mul(a, num(2*math.Log2E))), num(1)))
	far := c.withSign(c.fma(r, num(-2), num(1)), x)
	return c.where(ptx.Lt(c.k, a, num(0.4)), near, far)
}

// withSign is |x| with the sign of s.
func (c calc) withSign(x, s float) float { return ptx.Copysign(c.k, x, s) }

// expm1 is eˣ − 1 for x up to 0: x + x²·P(x) near 0 (1e-8).
func (c calc) expm1(x float) float {
	near := c.fma(c.mul(x, x), c.polynomial(x, 0.5, 0.166665629, 0.0416499302, 0.00823822152, 0.00116428698), x)
	far := c.add(c.smallExp2(c.mul(x, num(math.Log2E))), num(-1))
	return c.where(ptx.Gt(c.k, x, num(-0.5)), near, far)
}

// elu is x where x > 0, else alpha·(eˣ − 1).
func (c calc) elu(x, alpha float) float {
	return c.where(ptx.Gt(c.k, x, num(0)), x, c.mul(alpha, c.expm1(x)))
}

// softplus is max(x, 0) + log(1+e) with e = e^−|x|, by the series of 2·atanh(e/(2+e)) (2e-8), which keeps small e.
func (c calc) softplus(x float) float {
	e := c.smallExp2(c.mul(c.abs(x), num(-math.Log2E)))
	s := c.mul(e, c.inverse(c.add(e, num(2))))
	z, twice := c.mul(s, s), c.add(s, s)
	p := c.polynomial(z, 0.333333194, 0.200037807, 0.141183093, 0.134257495)
	return c.add(c.relu(x), c.fma(c.mul(twice, z), p, twice))
}

// mish is x·tanh(softplus(x)), which is x·w/(w+2) with w = n² + 2n, n = eˣ; beyond 40, where that is x, n stays.
func (c calc) mish(x float) float {
	n := c.smallExp2(c.mul(c.min(x, num(40)), num(math.Log2E)))
	w := c.mul(n, c.add(n, num(2)))
	return c.zeroBelow(-120, x, c.mul(x, c.mul(w, c.inverse(c.add(w, num(2))))))
}

// hardSwish is x·min(max(x+3, 0), 6)/6.
func (c calc) hardSwish(x float) float {
	return c.zeroBelow(-3, x, c.mul(x, ptx.Fma(c.k, x, num(1.0/6), num(0.5), ptx.Sat)))
}

// sign is −1 or 1, or x itself where that is 0 or NaN.
func (c calc) sign(x float) float {
	return c.where(ptx.Gt(c.k, c.abs(x), num(0)), c.withSign(num(1), x), x)
}

// nanMax and nanMin are NaN if an operand is: max.NaN would need sm_80.
func (c calc) nanMax(x, y float) float {
	return c.where(ptx.SetP(c.k, ptx.Nan, x, y), num(math.NaN()), c.max(x, y))
}

func (c calc) nanMin(x, y float) float {
	return c.where(ptx.SetP(c.k, ptx.Nan, x, y), num(math.NaN()), c.min(x, y))
}
