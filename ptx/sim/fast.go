package sim

import (
	"math"
	"unsafe"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// The instructions in which kernels spend their time have loops of their own, with the arithmetic inside: for all 32 lanes,
// and for any others. What they compute is what package eval computes; a test compares them.
//
// Functions that return loops are not to be inlined: in the copy of a closure that inlining makes, calls are not inlined any
// more.

// fast returns such a loop for an instruction with the destination and sources, nil if it has none.
func fast(in *ir.Instr, d ref, s []ref) step {
	if d.i < 0 {
		return nil
	}
	t := in.Type(0)
	bank := uint8(bank32)
	switch {
	case t == ir.Pred:
		bank = bankP
	case t.Bits() == 64:
		bank = bank64
	}
	for i, r := range s {
		if r.i < 0 {
			return nil
		}
		if r.bank != bank && !((in.Op == "selp" || in.Op == "setp") && i == 2) && !((in.Op == "shl" || in.Op == "shr") && i == 1) {
			return fastMixed(in, d, s)
		}
	}
	if in.Op == "setp" {
		return fastCompare(in, t, d, s)
	}
	if in.Op == "cvt" && d.bank == bank32 {
		return fastConvert(in, d, s[0])
	}
	if in.Op == "mul" && in.Has(ir.Wide) || in.Op == "mad" && in.Has(ir.Wide) || in.Op == "cvt" || d.bank != bank ||
		int(d.bits) != t.Bits() {
		return fastMixed(in, d, s)
	}
	if t == ir.Pred {
		return fastPredicate(in.Op, d.i, s)
	}
	if t == ir.F32 && in.Op != "selp" {
		return fastFloat(in, d.i, s)
	}
	if t.IsFloat() && in.Op != "selp" || t.Bits() != 32 && t.Bits() != 64 || in.Has(ir.Sat) {
		return nil
	}
	switch wide := t.Bits() == 64; {
	case in.Op == "shl" && s[1].bank != bank32:
	case in.Op == "shl" && wide:
		return shl[uint64](d.i, s[0].i, s[1].i)
	case in.Op == "shl":
		return shl[uint32](d.i, s[0].i, s[1].i)
	case in.Op == "shr" && s[1].bank != bank32:
	case in.Op == "shr" && t.IsSigned():
		return shrSigned(wide, d.i, s[0].i, s[1].i)
	case in.Op == "shr" && wide:
		return shr[uint64](d.i, s[0].i, s[1].i)
	case in.Op == "shr":
		return shr[uint32](d.i, s[0].i, s[1].i)
	case in.Op == "min" || in.Op == "max":
		return fastExtreme(in, d.i, s)
	case in.Has(ir.Hi) && !wide:
		return fastHigh(in, d.i, s)
	case in.Op == "selp" && !wide:
		return selp32(d.i, s[0].i, s[1].i, s[2].i)
	case in.Op == "selp":
	case wide:
		return fastInt[uint64](in, d.i, s)
	default:
		return fastInt[uint32](in, d.i, s)
	}
	return nil
}

func fromBits(v uint32) float32 { return math.Float32frombits(v) }

// toBits is the bits of a result, with PTX's one NaN.
func toBits(v float32) uint32 {
	if v != v {
		return nan32
	}
	return math.Float32bits(v)
}

// fmaBits computes one fma. The product is exact in float64; the sum is rounded there and again to float32, which is right
// unless the first rounding ended halfway between two float32: then the low 28 bits are 0 (whatever the exponent), and if the
// sum was not exact, the slow way decides.
func fmaBits(a, b, c uint32) uint32 {
	p := float64(fromBits(a)) * float64(fromBits(b))
	z := float64(fromBits(c))
	s := p + z
	if math.Float64bits(s)<<36 != 0 || s-p == z && s-z == p {
		return math.Float32bits(float32(s))
	}
	return toBits(eval.FMA32(fromBits(a), fromBits(b), fromBits(c)))
}

// asFloats is a register as float32.
func asFloats(r *[warpSize]uint32) *[warpSize]float32 { return (*[warpSize]float32)(unsafe.Pointer(r)) }

//go:noinline
func fma32(d, a, b, c int32) step {
	return func(w *warp, m uint32) {
		x, y, z, r := &w.r32[a], &w.r32[b], &w.r32[c], &w.r32[d]
		if m == full {
			// Two lanes at a time and as float32: on amd64 a conversion waits for what its destination held before.
			x, y, z, r := asFloats(x), asFloats(y), asFloats(z), asFloats(r)
			for l := 0; l < warpSize; l += 2 {
				p, q := float64(float64(x[l])*float64(y[l])), float64(float64(x[l+1])*float64(y[l+1]))
				c, d := float64(z[l]), float64(z[l+1])
				s, t := p+c, q+d
				if (math.Float64bits(s)<<36 != 0 || s-p == c && s-c == p) && (math.Float64bits(t)<<36 != 0 || t-q == d && t-d == q) {
					r[l], r[l+1] = float32(s), float32(t)
					continue
				}
				for i := l; i < l+2; i++ {
					r[i] = fromBits(fmaBits(math.Float32bits(x[i]), math.Float32bits(y[i]), math.Float32bits(z[i])))
				}
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			r[l] = fmaBits(x[l], y[l], z[l])
		}
	}
}
