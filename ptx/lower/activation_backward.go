package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// within is x limited to ±bound. NaN, of which min and max make numbers, has to be put back.
func (c calc) within(x float, bound float64) float { return c.max(c.min(x, num(bound)), num(-bound)) }

func (c calc) orNaN(x, y float) float { return c.where(ptx.SetP(c.k, ptx.Nan, x, x), x, y) }

// sigmoidSlope is σ(w) + xw·σ(w)·σ(−w), by e^−|w|, of which all are fractions.
func (c calc) sigmoidSlope(w, xw float) float {
	e := c.smallExp2(c.mul(c.abs(w), num(-math.Log2E)))
	r := c.inverse(c.add(e, num(1)))
	er := c.mul(e, r)
	return c.fma(xw, c.mul(er, r), c.where(ptx.Lt(c.k, w, num(0)), er, r))
}

// The slopes of activations. Far out, where products would overflow, they are what they are at ±Inf.

func (c calc) siluSlope(x float) float {
	y := c.within(x, 80)
	return c.orNaN(x, c.sigmoidSlope(y, y))
}

func (c calc) geluSlope(x float) float {
	const a, b = 1.5957691216057308, 0.044715
	y := c.within(x, 10)
	q := c.mul(y, y)
	return c.orNaN(x, c.sigmoidSlope(c.mul(y, c.polynomial(q, a, a*b)), c.mul(y, c.polynomial(q, a, 3*a*b))))
}

// geluErfSlope is Φ(x) + x·φ(x), with Φ(−|x|) as in geluErf.
func (c calc) geluErfSlope(x float) float {
	y := c.within(x, 12)
	a := c.abs(y)
	t := c.inverse(c.fma(a, num(0.23164189), num(1)))
	tail := c.mul(t, c.polynomial(t, 0.127414796, -0.142248368, 0.7107068705, -0.7265760135, 0.5307027145))
	e := c.smallExp2(c.mul(c.mul(a, a), num(-0.5*math.Log2E)))
	low := c.mul(tail, e)
	phi := c.where(ptx.Lt(c.k, y, num(0)), low, c.sub(num(1), low))
	return c.orNaN(x, c.fma(c.mul(y, e), num(0.39894228040143267794), phi))
}
