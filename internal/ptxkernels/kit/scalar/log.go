package scalar

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// splitExponent is f and e with x = (1+f)·2ᵉ and 1+f in [√½, √2), for finite x above 0.
func (c Math) splitExponent(x Float) (f, e Float) {
	const sqrtHalf = 0x3f3504f3 // its bits
	denormal := x.Lt(0x1p-126)
	bits := ptx.Bitcast[uint32](c.Where(denormal, x.Mul(0x1p23), x)).Sub(sqrtHalf)
	e = ptx.Convert[float32](ptx.Bitcast[int32](bits).Shr(23))
	e = e.Add(c.Where(denormal, ptx.F32(-23), ptx.F32(0)))
	fraction := bits.And(1<<23 - 1).Add(sqrtHalf)
	return ptx.Bitcast[float32](fraction).Add(-1), e
}

// log1pRest is log(1+f) − f + carry for f of [calc.splitExponent]: f²·(−½ + f·P(f)) (2e-8 of the logarithm).
func (c Math) log1pRest(f, carry Float) Float {
	p := c.polynomial(f, -0.5, 0.333333313, -0.25000307, 0.200010449, -0.166412815, 0.142144963, -0.129981831, 0.126223192,
		-0.0790274367)
	return f.Mul(f).Fma(p, carry)
}

// logLimits is y where x is finite and above 0, −Inf at 0, and else a third value.
func (c Math) logLimits(x, y, other Float) Float {
	bits := ptx.Bitcast[uint32](x).Sub(1)
	other = c.Where(x.Eq(0), ptx.F32(-infinity), other)
	return c.Where(bits.Lt(0x7f7fffff), y, other)
}

// unlogarithmic is what a logarithm is beyond finite numbers from 0 on: NaN below, NaN and Inf at themselves.
func (c Math) unlogarithmic(x Float) Float {
	return c.Where(x.Lt(0), ptx.F32(math.NaN()), x)
}

// Log is the natural logarithm, to 1.2e-7 of its value.
func (c Math) Log(x Float) Float {
	return c.logLimits(x, c.FiniteLog(x), c.unlogarithmic(x))
}

// FiniteLog is log for finite x above 0.
func (c Math) FiniteLog(x Float) Float {
	f, e := c.splitExponent(x)
	ln2 := float64(float32(math.Ln2))
	rest := c.log1pRest(f, e.Mul(math.Ln2-ln2))
	return e.Fma(ln2, f.Add(rest))
}

// log2 is the binary logarithm, to 2e-7 of its value.
func (c Math) log2(x Float) Float { return c.logLimits(x, c.finiteLog2(x), c.unlogarithmic(x)) }

// finiteLog2 is log2 for finite x above 0.
func (c Math) finiteLog2(x Float) Float {
	f, e := c.splitExponent(x)
	return c.log1pRest(f, f).Fma(math.Log2E, e)
}

// pow is C's: the magnitude is 2^(y·log2|x|), which knows 0, infinities and NaN; then come the sign, what is no number, and
// what is one whatever the other operand is. Its relative error is that of the product: 3e-7·|y·log2 x|.
func (c Math) pow(x, y Float) Float {
	a := x.Abs()
	m := c.Exp2(y.Mul(c.logLimits(a, c.finiteLog2(a), a)))

	// The remainder of y by 2, exactly: 0 and ±1 of whole numbers, NaN of infinities, which count as even.
	remainder := y.Mul(0.5).Round(ptx.RZI).Fma(-2, y).Abs()
	odd := remainder.Eq(1)
	fractional := remainder.SetPWith(ptx.GT, 0, ptx.OpAnd, odd.Not())

	sign := ptx.Bitcast[uint32](x).And(1 << 31)
	signed := ptx.Bitcast[float32](ptx.Bitcast[uint32](m).Or(sign))
	m = c.Where(odd, signed, m)

	negative := x.SetPWith(ptx.GT, -infinity, ptx.OpAnd, x.Lt(0))
	m = c.Where(negative.And(fractional), ptx.F32(math.NaN()), m)

	one := x.SetPWith(ptx.EQ, 1, ptx.OpOr, y.Eq(0))
	minusOne := y.Abs().SetPWith(ptx.EQ, infinity, ptx.OpAnd, x.Eq(-1))
	return c.Where(one.Or(minusOne), ptx.F32(1), m)
}
