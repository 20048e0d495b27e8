package scalar

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// within is x limited to ±bound. NaN, of which min and max make numbers, has to be put back.
func (c Math) within(x Float, bound float64) Float { return c.Max(c.min(x, Num(bound)), Num(-bound)) }

func (c Math) orNaN(x, y Float) Float { return c.Where(x.SetP(ptx.Nan, x), x, y) }

// sigmoidSlope is σ(w) + xw·σ(w)·σ(−w), by e^−|w|, of which all are fractions.
func (c Math) sigmoidSlope(w, xw Float) Float {
	e := c.SmallExp2(c.Mul(c.Abs(w), Num(-math.Log2E)))
	r := c.Inverse(c.Add(e, Num(1)))
	er := c.Mul(e, r)
	return c.Fma(xw, c.Mul(er, r), c.Where(w.Lt(0), er, r))
}

// The slopes of activations. Far out, where products would overflow, they are what they are at ±Inf.

func (c Math) SiluSlope(x Float) Float {
	y := c.within(x, 80)
	return c.orNaN(x, c.sigmoidSlope(y, y))
}

func (c Math) geluSlope(x Float) Float {
	const a, b = 1.5957691216057308, 0.044715
	y := c.within(x, 10)
	q := c.Mul(y, y)
	return c.orNaN(x, c.sigmoidSlope(c.Mul(y, c.polynomial(q, a, a*b)), c.Mul(y, c.polynomial(q, a, 3*a*b))))
}

// geluErfSlope is Φ(x) + x·φ(x), with Φ(−|x|) as in geluErf.
func (c Math) geluErfSlope(x Float) Float {
	y := c.within(x, 12)
	a := c.Abs(y)
	t := c.Inverse(c.Fma(a, Num(0.23164189), Num(1)))
	tail := c.Mul(t, c.polynomial(t, 0.127414796, -0.142248368, 0.7107068705, -0.7265760135, 0.5307027145))
	e := c.SmallExp2(c.Mul(c.Mul(a, a), Num(-0.5*math.Log2E)))
	low := c.Mul(tail, e)
	phi := c.Where(y.Lt(0), low, c.Sub(Num(1), low))
	return c.orNaN(x, c.Fma(c.Mul(y, e), Num(0.39894228040143267794), phi))
}
