package scalar

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// within is x limited to ±bound. NaN, of which min and max make numbers, has to be put back.
func (c Math) within(x Float, bound float64) Float { return x.Min(bound).Max(-bound) }

func (c Math) orNaN(x, y Float) Float { return c.Where(x.SetP(ptx.Nan, x), x, y) }

// sigmoidSlope is σ(w) + xw·σ(w)·σ(−w), by e^−|w|, of which all are fractions.
func (c Math) sigmoidSlope(w, xw Float) Float {
	e := c.SmallExp2(w.Abs().Mul(-math.Log2E))
	r := c.Inverse(e.Add(1))
	er := e.Mul(r)
	return xw.Fma(er.Mul(r), c.Where(w.Lt(0), er, r))
}

// The slopes of activations. Far out, where products would overflow, they are what they are at ±Inf.

// SiluSlope is the derivative of silu.
func (c Math) SiluSlope(x Float) Float {
	y := c.within(x, 80)
	return c.orNaN(x, c.sigmoidSlope(y, y))
}

func (c Math) geluSlope(x Float) Float {
	const a, b = 1.5957691216057308, 0.044715
	y := c.within(x, 10)
	q := y.Mul(y)
	return c.orNaN(x, c.sigmoidSlope(y.Mul(c.polynomial(q, a, a*b)), y.Mul(c.polynomial(q, a, 3*a*b))))
}

// geluErfSlope is Φ(x) + x·φ(x), with Φ(−|x|) as in geluErf.
func (c Math) geluErfSlope(x Float) Float {
	y := c.within(x, 12)
	a := y.Abs()
	t := c.Inverse(a.Fma(0.23164189, 1))
	tail := t.Mul(c.polynomial(t, 0.127414796, -0.142248368, 0.7107068705, -0.7265760135, 0.5307027145))
	e := c.SmallExp2(a.Mul(a).Mul(-0.5 * math.Log2E))
	low := tail.Mul(e)
	phi := c.Where(y.Lt(0), low, ptx.F32(1).Sub(low))
	return c.orNaN(x, y.Mul(e).Fma(0.39894228040143267794, phi))
}
