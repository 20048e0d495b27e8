package host

import (
	"math"
	"sort"
)

// smallFloat is a floating-point type of at most 8 bits.
type smallFloat struct {
	exponent, mantissa, bias int
	infinite                 bool // the largest exponent is Inf and NaN, as in IEEE 754
	zeroNaN                  bool // the code of −0 is NaN, and there is no other
	unsigned, noNaN          bool
	values                   []float64 // of codes without sign, ascending
}

var smallFloats = map[Kind]*smallFloat{
	F8E4M3FN:   newSmall(smallFloat{exponent: 4, mantissa: 3, bias: 7}),
	F8E4M3FNUZ: newSmall(smallFloat{exponent: 4, mantissa: 3, bias: 8, zeroNaN: true}),
	F8E5M2:     newSmall(smallFloat{exponent: 5, mantissa: 2, bias: 15, infinite: true}),
	F8E5M2FNUZ: newSmall(smallFloat{exponent: 5, mantissa: 2, bias: 16, zeroNaN: true}),
	F4E2M1:     newSmall(smallFloat{exponent: 2, mantissa: 1, bias: 1, noNaN: true}),
	F8E8M0:     newSmall(smallFloat{exponent: 8, bias: 127, unsigned: true}),
}

func newSmall(f smallFloat) *smallFloat {
	n := 1 << (f.exponent + f.mantissa)
	for code := range n {
		f.values = append(f.values, f.magnitude(code))
	}
	switch { // NaN is not among those that are rounded to
	case f.infinite:
		f.values = f.values[:n-1<<f.mantissa+1] // with Inf
	case !f.zeroNaN && !f.noNaN:
		f.values = f.values[:n-1]
	}
	return &f
}

func (f *smallFloat) magnitude(code int) float64 {
	e, m := code>>f.mantissa, code&(1<<f.mantissa-1)
	if f.unsigned {
		return math.Ldexp(1, e-f.bias)
	}
	last := 1<<f.exponent - 1
	switch {
	case f.infinite && e == last && m == 0:
		return math.Inf(1)
	case e == 0:
		return math.Ldexp(float64(m), 1-f.bias-f.mantissa)
	}
	return math.Ldexp(float64(m+1<<f.mantissa), e-f.bias-f.mantissa)
}

func (f *smallFloat) sign() int { return 1 << (f.exponent + f.mantissa) }

func (f *smallFloat) nan() byte {
	switch {
	case f.zeroNaN:
		return byte(f.sign())
	case f.infinite:
		return byte(len(f.values)) // the code after Inf
	case f.unsigned:
		return 255
	}
	return byte(f.sign() - 1)
}

func (f *smallFloat) decode(b byte) float64 {
	if f.unsigned {
		if b == 255 {
			return math.NaN()
		}
		return f.values[b]
	}
	code := int(b) & (f.sign() - 1)
	if f.zeroNaN && int(b) == f.sign() || code >= len(f.values) {
		return math.NaN()
	}
	if int(b)&f.sign() != 0 {
		return math.Copysign(f.values[code], -1)
	}
	return f.values[code]
}

// encode rounds to nearest even. What is beyond the largest number becomes that number with saturate, else Inf or NaN.
func (f *smallFloat) encode(x float64, saturate bool) byte {
	if x != x {
		if f.noNaN {
			return byte(f.sign()) // −0, as in ml_dtypes
		}
		return f.nan()
	}
	finite := f.values
	if f.infinite {
		finite = finite[:len(finite)-1]
	}
	sign, a := byte(0), math.Abs(x)
	if math.Signbit(x) && !f.unsigned {
		sign = byte(f.sign())
	}
	top := len(finite) - 1
	// Beyond the middle between the largest number and what would follow it, x is out of range.
	limit := finite[top] + (finite[top]-finite[top-1])/2
	if math.IsInf(x, 0) || a > limit || a == limit && top&1 == 1 {
		switch {
		case saturate || f.noNaN:
			if math.IsInf(x, 0) && f.infinite && !saturate {
				return sign | byte(top+1)
			}
			return sign | byte(top)
		case f.infinite:
			return sign | byte(top+1)
		case f.zeroNaN:
			return f.nan()
		}
		return sign | f.nan()
	}
	i := min(sort.SearchFloat64s(finite, a), top)
	if i > 0 {
		below, above := a-finite[i-1], finite[i]-a
		if below < above || below == above && (i-1)&1 == 0 {
			i--
		}
	}
	if i == 0 && f.zeroNaN {
		return 0
	}
	return sign | byte(i)
}
