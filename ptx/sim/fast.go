package sim

import (
	"math"

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

// vector is a loop of package lanes.
func vector(f func(r, x, y *[warpSize]uint32), d, x, y int32) step {
	return loop[uint32, uint32](func(r, x, y, _ *[warpSize]uint32) { f(r, x, y) }).step(d, x, y, x)
}
