package eval

import (
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

// format is a binary floating-point format. Arithmetic in any format and rounding goes through number; f32 and f64 to nearest take
// the processor's instead.
type format struct {
	man, exp uint   // bits of significand (without the leading one) and exponent
	pad      uint   // unused low bits (tf32)
	nan      uint64 // canonical
	finite   bool   // no infinities, and one NaN only: e4m3
}

var (
	f16  = &format{man: 10, exp: 5, nan: 0x7fff}
	bf16 = &format{man: 7, exp: 8, nan: 0x7fff}
	tf32 = &format{man: 10, exp: 8, pad: 13, nan: 0x7fffffff}
	f32  = &format{man: 23, exp: 8, nan: 0x7fffffff}
	f64  = &format{man: 52, exp: 11, nan: 0xfff8000000000000}
	e4m3 = &format{man: 3, exp: 4, nan: 0x7f, finite: true}
	e5m2 = &format{man: 2, exp: 5, nan: 0x7f}
)

func formatOf(t ir.Type) *format {
	switch t {
	case ir.F16, ir.F16x2:
		return f16
	case ir.BF16, ir.BF16x2:
		return bf16
	case ir.TF32:
		return tf32
	case ir.F32, ir.F32x2:
		return f32
	case ir.F64:
		return f64
	case ir.E4M3, ir.E4M3x2:
		return e4m3
	case ir.E5M2, ir.E5M2x2:
		return e5m2
	}
	return nil
}

func (f *format) bias() int      { return 1<<(f.exp-1) - 1 }
func (f *format) sign() uint64   { return 1 << (f.man + f.exp + f.pad) }
func (f *format) inf() uint64    { return mask(f.exp) << (f.man + f.pad) }
func (f *format) one() uint64    { return uint64(f.bias()) << (f.man + f.pad) }
func (f *format) normal() uint64 { return 1 << (f.man + f.pad) } // the least normal number
func (f *format) largest() uint64 {
	if f.finite {
		return f.nan - 1
	}
	return f.inf() - 1<<f.pad
}

// isNaN looks at the format's own bits of v only.
func (f *format) isNaN(v uint64) bool {
	v &= f.sign() - 1
	if f.finite {
		return v == f.nan
	}
	return v > f.inf()
}

// flush turns a subnormal number into zero of its sign.
func (f *format) flush(v uint64) uint64 {
	if v&f.inf() == 0 {
		return v & f.sign()
	}
	return v & (f.sign()<<1 - 1)
}

type kind uint8

const (
	zero kind = iota
	finite
	infinite
	notANumber
)

// number is a value of any format, exact or, with bit 0 of lo set, somewhat (less than that bit) beside: enough to round it
// right once. A finite one is hi:lo / 2^127 · 2^exp, the highest bit of hi set.
type number struct {
	kind   kind
	neg    bool
	exp    int
	hi, lo uint64
}

func (f *format) unpack(v uint64) number {
	n := number{neg: v&f.sign() != 0}
	v = v & (f.sign() - 1) >> f.pad
	e, m := int(v>>f.man), v&mask(f.man)
	switch {
	case f.isNaN(v << f.pad):
		n.kind = notANumber
	case v<<f.pad >= f.inf() && !f.finite:
		n.kind = infinite
	case v == 0:
	case e == 0:
		shift := bits.LeadingZeros64(m)
		n.kind, n.hi, n.exp = finite, m<<shift, 1-f.bias()-int(f.man)+63-shift
	default:
		n.kind, n.hi, n.exp = finite, (m|1<<f.man)<<(63-f.man), e-f.bias()
	}
	return n
}

// integer is v as a number.
func integer(neg bool, v uint64) number {
	if v == 0 {
		return number{neg: neg}
	}
	shift := bits.LeadingZeros64(v)
	return number{kind: finite, neg: neg, exp: 63 - shift, hi: v << shift}
}

// roundUp decides whether a number, whose kept part is odd or even and whose rest is compared with half a unit, goes away from zero.
func roundUp(mode ir.Mod, neg, odd bool, rest, half uint64) bool {
	switch mode {
	case ir.RZ, ir.RZI:
		return false
	case ir.RM, ir.RMI:
		return neg && rest != 0
	case ir.RP, ir.RPI:
		return !neg && rest != 0
	case ir.RNA:
		return rest >= half
	}
	return rest > half || rest == half && odd
}

// cut drops the low bits of a 64-bit magnitude with its sticky bit, and rounds.
func cut(m uint64, drop uint, mode ir.Mod, neg bool) uint64 {
	if drop == 0 {
		return m
	}
	if drop > 64 { // less than half a unit
		m, drop = 1, 64
	}
	q, half := m>>drop, uint64(1)<<(drop-1)
	if roundUp(mode, neg, q&1 == 1, m&mask(drop), half) {
		q++
	}
	return q
}

// round gives the bits of the number in the format, an overflow as the mode says or, in a format without infinities, the largest.
func (f *format) round(n number, mode ir.Mod) uint64 {
	var v uint64
	switch n.kind {
	case notANumber:
		return f.nan
	case infinite:
		v = f.inf()
		if f.finite {
			v = f.largest()
		}
	case finite:
		m := n.hi
		if n.lo != 0 {
			m |= 1
		}
		drop, e := 63-f.man, n.exp+f.bias()-1
		if e < 0 {
			drop, e = drop+uint(-e), 0
		}
		// The leading one counts as 1 in the exponent, so that a carry out of the significand is right as well.
		q := cut(m, drop, mode, n.neg)
		if e > 1<<f.exp {
			e = 1 << f.exp
		}
		v = (uint64(e)<<f.man + q) << f.pad
		if v > f.largest() {
			v = f.inf()
			if f.finite || mode == ir.RZ || mode == ir.RM && !n.neg || mode == ir.RP && n.neg {
				v = f.largest()
			}
		}
	}
	if n.neg {
		v |= f.sign()
	}
	return v
}

// nanOf is the NaN that an operation on a, b and c gives.
func (f *format) nanOf(a, b, c uint64) uint64 {
	if f == f64 {
		for _, v := range [...]uint64{a, b, c} {
			if f.isNaN(v) {
				return v | 1<<51
			}
		}
	}
	return f.nan
}

// multiply gives the exact product.
func multiply(a, b number) number {
	p := number{kind: min(a.kind, b.kind), neg: a.neg != b.neg}
	switch {
	case a.kind == notANumber || b.kind == notANumber:
		p.kind = notANumber
	case a.kind == infinite || b.kind == infinite:
		if p.kind = infinite; a.kind == zero || b.kind == zero {
			p.kind = notANumber
		}
	case p.kind == finite:
		p.hi, p.lo = bits.Mul64(a.hi, b.hi)
		p.exp = a.exp + b.exp + 1
		if p.hi>>63 == 0 {
			p.hi, p.lo = p.hi<<1|p.lo>>63, p.lo<<1
			p.exp--
		}
	}
	return p
}

// sum adds two numbers, of which b has a significand of 64 bits at most and a one of 126. The mode decides the sign of zero.
func sum(a, b number, mode ir.Mod) number {
	switch {
	case a.kind == notANumber || b.kind == notANumber || a.kind == infinite && b.kind == infinite && a.neg != b.neg:
		return number{kind: notANumber}
	case a.kind == infinite || b.kind == zero && a.kind != zero:
		return a
	case b.kind == infinite || a.kind == zero && b.kind != zero:
		return b
	case a.kind == zero:
		if a.neg != b.neg {
			a.neg = mode == ir.RM
		}
		return a
	}
	if a.exp < b.exp || a.exp == b.exp && (a.hi < b.hi || a.hi == b.hi && a.lo < b.lo) {
		a, b = b, a
	}
	// One bit of room for the carry; what b loses by the shift stays visible in its lowest bit.
	a.hi, a.lo = shiftRight(a.hi, a.lo, 1)
	b.hi, b.lo = shiftRight(b.hi, b.lo, uint(a.exp-b.exp)+1)
	var carry uint64
	if a.neg == b.neg {
		a.lo, carry = bits.Add64(a.lo, b.lo, 0)
		a.hi, _ = bits.Add64(a.hi, b.hi, carry)
	} else {
		a.lo, carry = bits.Sub64(a.lo, b.lo, 0)
		a.hi, _ = bits.Sub64(a.hi, b.hi, carry)
	}
	if a.hi|a.lo == 0 {
		return number{neg: mode == ir.RM}
	}
	a.exp++
	if a.hi == 0 {
		a.hi, a.lo, a.exp = a.lo, 0, a.exp-64
	}
	if s := bits.LeadingZeros64(a.hi); s > 0 {
		a.hi, a.lo, a.exp = a.hi<<s|a.lo>>(64-s), a.lo<<s, a.exp-s
	}
	return a
}

func shiftRight(hi, lo uint64, n uint) (uint64, uint64) {
	var lost uint64
	switch {
	case n >= 128:
		hi, lo, lost = 0, 0, hi|lo
	case n >= 64:
		lost = lo | hi&(1<<(n-64)-1)
		hi, lo = 0, hi>>(n-64)
	case n > 0:
		lost = lo & (1<<n - 1)
		hi, lo = hi>>n, hi<<(64-n)|lo>>n
	}
	return hi, lo | truth(lost != 0)
}

// quotient gives a/b.
func quotient(a, b number) number {
	q := number{kind: finite, neg: a.neg != b.neg}
	switch {
	case a.kind == notANumber || b.kind == notANumber || a.kind == b.kind && a.kind != finite:
		q.kind = notANumber
	case a.kind == infinite || b.kind == zero:
		q.kind = infinite
	case a.kind == zero || b.kind == infinite:
		q.kind = zero
	default:
		q.exp = a.exp - b.exp - 1
		hi, lo := a.hi, uint64(0)
		if hi >= b.hi {
			hi, lo = hi>>1, hi<<63
			q.exp++
		}
		var rest uint64
		q.hi, rest = bits.Div64(hi, lo, b.hi)
		q.lo = truth(rest != 0)
	}
	return q
}

// root gives the square root of a number of 53 bits: that of float64 in [1, 4), corrected by the sign of its error.
func root(a number) number {
	switch {
	case a.kind == zero || a.kind == infinite && !a.neg:
		return a
	case a.kind == notANumber || a.neg:
		return number{kind: notANumber}
	}
	m := math.Float64frombits(0x3ff<<52 | a.hi>>11&mask(52))
	if a.exp&1 != 0 {
		m *= 2
	}
	r := math.Sqrt(m)
	n := number{kind: finite, exp: a.exp >> 1, hi: 1<<63 | math.Float64bits(r)<<11}
	switch e := math.FMA(-r, r, m); {
	case e > 0:
		n.lo = 1
	case e < 0:
		n.hi, n.lo = n.hi-1, 1
	}
	return n
}
