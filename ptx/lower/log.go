package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// splitExponent is f and e with x = (1+f)·2ᵉ and 1+f in [√½, √2), for finite x above 0.
func (c calc) splitExponent(x float) (f, e float) {
	k := c.k
	const sqrtHalf = 0x3f3504f3 // its bits
	denormal := ptx.Lt(k, x, num(0x1p-126))
	bits := ptx.Sub(k, ptx.Bitcast[uint32](k, c.where(denormal, c.mul(x, num(0x1p23)), x)), ptx.Imm[uint32](sqrtHalf))
	e = ptx.Convert[float32](k, ptx.Shr(k, ptx.Bitcast[int32](k, bits), ptx.Imm[uint32](23)))
	e = c.add(e, c.where(denormal, num(-23), num(0)))
	fraction := ptx.Add(k, ptx.And(k, bits, ptx.Imm[uint32](1<<23-1)), ptx.Imm[uint32](sqrtHalf))
	return c.add(ptx.Bitcast[float32](k, fraction), num(-1)), e
}

// log1pRest is log(1+f) − f + carry for f of [calc.splitExponent]: f²·(−½ + f·P(f)) (2e-8 of the logarithm).
func (c calc) log1pRest(f, carry float) float {
	p := c.polynomial(f, -0.5, 0.333333313, -0.25000307, 0.200010449, -0.166412815, 0.142144963, -0.129981831, 0.126223192,
		-0.0790274367)
	return c.fma(c.mul(f, f), p, carry)
}

// logLimits is y where x is finite and above 0, −Inf at 0, and else a third value.
func (c calc) logLimits(x, y, other float) float {
	bits := ptx.Sub(c.k, ptx.Bitcast[uint32](c.k, x), ptx.Imm[uint32](1))
	other = c.where(ptx.Eq(c.k, x, num(0)), num(-infinity), other)
	return c.where(ptx.Lt(c.k, bits, ptx.Imm[uint32](0x7f7fffff)), y, other)
}

// unlogarithmic is what a logarithm is beyond finite numbers from 0 on: NaN below, NaN and Inf at themselves.
func (c calc) unlogarithmic(x float) float {
	return c.where(ptx.Lt(c.k, x, num(0)), num(math.NaN()), x)
}

// log is the natural logarithm, to 1.2e-7 of its value.
func (c calc) log(x float) float {
	return c.logLimits(x, c.finiteLog(x), c.unlogarithmic(x))
}

// finiteLog is log for finite x above 0.
func (c calc) finiteLog(x float) float {
	f, e := c.splitExponent(x)
	ln2 := float64(float32(math.Ln2))
	rest := c.log1pRest(f, c.mul(e, num(math.Ln2-ln2)))
	return c.fma(e, num(ln2), c.add(f, rest))
}

// log2 is the binary logarithm, to 2e-7 of its value.
func (c calc) log2(x float) float { return c.logLimits(x, c.finiteLog2(x), c.unlogarithmic(x)) }

// finiteLog2 is log2 for finite x above 0.
func (c calc) finiteLog2(x float) float {
	f, e := c.splitExponent(x)
	return c.fma(c.log1pRest(f, f), num(math.Log2E), e)
}

// pow is C's: the magnitude is 2^(y·log2|x|), which knows 0, infinities and NaN; then come the sign, what is no number, and
// what is one whatever the other operand is. Its relative error is that of the product: 3e-7·|y·log2 x|.
func (c calc) pow(x, y float) float {
	k := c.k
	a := c.abs(x)
	m := c.exp2(c.mul(y, c.logLimits(a, c.finiteLog2(a), a)))

	// The remainder of y by 2, exactly: 0 and ±1 of whole numbers, NaN of infinities, which count as even.
	remainder := c.abs(c.fma(ptx.Round(k, c.mul(y, num(0.5)), ptx.RZI), num(-2), y))
	odd := ptx.Eq(k, remainder, num(1))
	fractional := ptx.SetPWith(k, ptx.GT, ptx.OpAnd, remainder, num(0), ptx.Not(k, odd))

	sign := ptx.And(k, ptx.Bitcast[uint32](k, x), ptx.Imm[uint32](1<<31))
	signed := ptx.Bitcast[float32](k, ptx.Or(k, ptx.Bitcast[uint32](k, m), sign))
	m = c.where(odd, signed, m)

	negative := ptx.SetPWith(k, ptx.GT, ptx.OpAnd, x, num(-infinity), ptx.Lt(k, x, num(0)))
	m = c.where(ptx.And(k, negative, fractional), num(math.NaN()), m)

	one := ptx.SetPWith(k, ptx.EQ, ptx.OpOr, x, num(1), ptx.Eq(k, y, num(0)))
	minusOne := ptx.SetPWith(k, ptx.EQ, ptx.OpAnd, c.abs(y), num(infinity), ptx.Eq(k, x, num(-1)))
	return c.where(ptx.Or(k, one, minusOne), num(1), m)
}
