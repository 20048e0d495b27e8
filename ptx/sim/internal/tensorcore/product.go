package tensorcore

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Product is D = A·B + C as mma, wmma and wgmma compute it.
//
// Hardware does not say how it rounds inside. Here products are exact and summed in float64, from C on and along k upwards;
// the result is rounded once, to nearest even. NaN is the canonical one. Products of f64 are a chain of fused multiply-adds
// along k. Integers are summed exactly, and wrap, or saturate with .satfinite.
type Product struct {
	M, N, K          int
	Saturate         bool // sums of integers
	Xor              bool // products of single bits count different bits instead of common ones
	NegateA, NegateB bool
	Shift            int // C is divided by two to this

	td, ta, tb, tc            ir.Type
	decodeA, decodeB, decodeC func(uint64) float64
}

// NewProduct returns a product of an m×k matrix of type ta and a k×n matrix of type tb, added to one of type tc. It is an error if
// no instruction has these types together.
func NewProduct(m, n, k int, td, ta, tb, tc ir.Type) (*Product, error) {
	p := &Product{M: m, N: n, K: k, td: td, ta: ta, tb: tb, tc: tc,
		decodeA: decoder(ta), decodeB: decoder(tb), decodeC: decoder(tc)}
	ok := false
	switch {
	case ta == ir.F64:
		ok = tb == ir.F64 && tc == ir.F64 && td == ir.F64
	case ta == ir.B1:
		ok = tb == ir.B1 && tc == ir.S32 && td == ir.S32
	case !ta.IsFloat():
		ok = !tb.IsFloat() && ta.Bits() == tb.Bits() && ta.Bits() <= 8 && tc == ir.S32 && td == ir.S32
	case ta == ir.F16 || ta.Bits() == 8:
		ok = (tc == ir.F16 || tc == ir.F32) && (td == ir.F16 || td == ir.F32) && tb.IsFloat() && ta.Bits() == tb.Bits() &&
			(ta.Bits() == 8 || tb == ir.F16)
	case ta == ir.BF16 || ta == ir.TF32:
		ok = tb == ta && tc == ir.F32 && td == ir.F32
	}
	if !ok {
		return nil, fmt.Errorf("product of %v and %v added to %v, result %v: %w", ta, tb, tc, td, compute.ErrUnsupported)
	}
	return p, nil
}

// decoder makes a number of the bits of an element, for types whose products float64 holds exactly.
func decoder(t ir.Type) func(uint64) float64 {
	switch {
	case t == ir.TF32: // the 13 low bits of the register are not read
		return func(b uint64) float64 { return float64(math.Float32frombits(uint32(b) &^ 0x1fff)) }
	case t == ir.F32:
		return func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }
	case t == ir.F16:
		return func(b uint64) float64 { return float64(eval.F16ToF32(uint16(b))) }
	case t == ir.BF16:
		return func(b uint64) float64 { return float64(eval.BF16ToF32(uint16(b))) }
	case t == ir.E4M3 || t == ir.E5M2:
		table := new([256]float64)
		for i := range table {
			if t == ir.E4M3 {
				table[i] = float64(eval.E4M3ToF32(uint8(i)))
			} else {
				table[i] = float64(eval.E5M2ToF32(uint8(i)))
			}
		}
		return func(b uint64) float64 { return table[b&0xff] }
	case t.IsSigned():
		n := 64 - t.Bits()
		return func(b uint64) float64 { return float64(int64(b<<n) >> n) }
	}
	return func(b uint64) float64 { return float64(b) }
}

// minifloat decodes elements without infinities and NaN, of a sign, so many bits of exponent and so many of mantissa.
func minifloat(exponent, mantissa uint) func(uint64) float64 {
	table := make([]float64, 1<<(1+exponent+mantissa))
	bias := 1<<(exponent-1) - 1
	for i := range table {
		e, m := i>>mantissa&(1<<exponent-1), float64(i&(1<<mantissa-1))/float64(int(1)<<mantissa)
		v := math.Ldexp(m, 1-bias)
		if e > 0 {
			v = math.Ldexp(1+m, e-bias)
		}
		if i >= len(table)/2 {
			v = -v
		}
		table[i] = v
	}
	return func(b uint64) float64 { return table[b&uint64(len(table)-1)] }
}

// decode makes numbers of the bits of elements, with the opposite sign if negate is set.
func decode(bits []uint64, number func(uint64) float64, negate bool) []float64 {
	v := make([]float64, len(bits))
	for i, b := range bits {
		if v[i] = number(b); negate {
			v[i] = -v[i]
		}
	}
	return v
}

// encode rounds a sum to the type of the result, f16 or f32.
func encode(t ir.Type, v float64) uint64 {
	switch {
	case t == ir.F16 && v != v:
		return 0x7fff
	case t == ir.F16:
		return uint64(eval.F32ToF16(toOdd(v)))
	case v != v:
		return 0x7fffffff
	}
	return uint64(math.Float32bits(float32(v)))
}

// toOdd rounds to the float32 whose last bit says whether it was exact, so that rounding once more to a narrower type is as
// good as rounding once (Boldo and Melquiond 2008).
func toOdd(v float64) float32 {
	f := float32(v)
	if float64(f) == v {
		return f
	}
	if math.IsInf(float64(f), 0) {
		return float32(math.Copysign(math.MaxFloat32, v))
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(v) {
		b--
	}
	return math.Float32frombits(b | 1)
}

// Compute computes D from the bits of the elements: a by rows, b by columns, c and d by rows. d may be c.
func (p *Product) Compute(d, c, a, b []uint64) {
	switch {
	case p.ta == ir.F64:
		p.double(d, c, a, b)
	case p.ta == ir.B1:
		p.single(d, c, a, b)
	default:
		p.general(d, c, a, b)
	}
}

// general computes all but f64 and single bits. Sums of integers stay far below 2^53, so float64 serves them too.
func (p *Product) general(d, c, a, b []uint64) {
	p.sums(d, c, decode(a[:p.M*p.K], p.decodeA, p.NegateA), decode(b[:p.N*p.K], p.decodeB, p.NegateB))
}

// ComputeScaled computes D from elements that have scales: sa by rows, sb by columns, one for each group of so many elements along k. A
// product of two elements and their scales is exact.
func (p *Product) ComputeScaled(d, c, a, b []uint64, sa, sb []float64, group int) {
	fa, fb := decode(a[:p.M*p.K], p.decodeA, p.NegateA), decode(b[:p.N*p.K], p.decodeB, p.NegateB)
	for i := range fa {
		fa[i] *= sa[i/group]
	}
	for i := range fb {
		fb[i] *= sb[i/group]
	}
	p.sums(d, c, fa, fb)
}

func (p *Product) sums(d, c []uint64, fa, fb []float64) {
	scale := math.Ldexp(1, -p.Shift)
	for i := range p.M {
		row := fa[i*p.K : (i+1)*p.K]
		for j := 0; j < p.N; j += 4 { // four sums at once, as each waits for its own last one
			at := i*p.N + j
			s0, s1, s2, s3 := p.decodeC(c[at])*scale, p.decodeC(c[at+1])*scale, p.decodeC(c[at+2])*scale, p.decodeC(c[at+3])*scale
			b0, b1, b2, b3 := fb[j*p.K:][:len(row)], fb[(j+1)*p.K:][:len(row)], fb[(j+2)*p.K:][:len(row)], fb[(j+3)*p.K:][:len(row)]
			for k, x := range row {
				s0 += x * b0[k] // exact products: fused or not is the same
				s1 += x * b1[k]
				s2 += x * b2[k]
				s3 += x * b3[k]
			}
			for q, s := range [4]float64{s0, s1, s2, s3} {
				d[at+q] = p.result(s)
			}
		}
	}
}

func (p *Product) result(s float64) uint64 {
	if p.td != ir.S32 {
		return encode(p.td, s)
	}
	if p.Saturate {
		s = min(max(s, math.MinInt32), math.MaxInt32)
	}
	return uint64(uint32(int64(s)))
}

func (p *Product) double(d, c, a, b []uint64) {
	for i := range p.M {
		for j := range p.N {
			s := math.Float64frombits(c[i*p.N+j])
			for k := range p.K {
				s = math.FMA(math.Float64frombits(a[i*p.K+k]), math.Float64frombits(b[j*p.K+k]), s)
			}
			d[i*p.N+j] = math.Float64bits(s)
		}
	}
}

// single counts the bits that a row and a column have in common, or in which they differ.
func (p *Product) single(d, c, a, b []uint64) {
	for i := range p.M {
		for j := range p.N {
			s := uint32(c[i*p.N+j])
			for k := range p.K {
				x, y := a[i*p.K+k], b[j*p.K+k]
				if p.Xor {
					s += uint32(bits.OnesCount64(x ^ y))
				} else {
					s += uint32(bits.OnesCount64(x & y))
				}
			}
			d[i*p.N+j] = uint64(s)
		}
	}
}
