package eval

import (
	"fmt"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// CarryFunc computes an instruction that reads or writes the condition code. cc is what the code held; the second result is
// what it holds afterwards (of an instruction without .cc: what it held). After a subtraction the code says, as in hardware, that
// there was no borrow: addc takes it for a carry.
type CarryFunc func(a, b, c uint64, cc bool) (uint64, bool)

// Carry returns the function of an instruction of Kind Carry: add.cc, addc, sub.cc, subc, mad.cc and madc.
func Carry(in *ir.Instr) (CarryFunc, error) {
	t := in.Type(0)
	fail := func() (CarryFunc, error) {
		return nil, fmt.Errorf("ptx/eval: %s with a carry: %w", in.Opcode(), compute.ErrUnsupported)
	}
	for _, m := range in.Mods {
		if _, ok := m.Type(); !ok && m != ir.CC && m != ir.Lo && m != ir.Hi {
			return fail()
		}
	}
	if t != ir.U32 && t != ir.S32 && t != ir.U64 && t != ir.S64 {
		return fail()
	}
	w := uint(t.Bits())
	reads, writes := in.Op == "addc" || in.Op == "subc" || in.Op == "madc", in.Has(ir.CC)
	var f CarryFunc
	sources := 2
	switch in.Op {
	case "add", "addc":
		f = func(a, b, _ uint64, cc bool) (uint64, bool) { return addCarry(a, b, truth(cc), w) }
	case "sub", "subc":
		f = func(a, b, _ uint64, cc bool) (uint64, bool) {
			r, borrow := bits.Sub64(a&mask(w), b&mask(w), truth(reads && !cc))
			return r & mask(w), borrow == 0
		}
	case "mad", "madc":
		p, _, err := product(in.First(ir.Lo, ir.Hi), w, t.IsSigned())
		if err != nil {
			return fail()
		}
		sources = 3
		f = func(a, b, c uint64, cc bool) (uint64, bool) { return addCarry(p(a, b, 0, 0), c, truth(cc), w) }
	}
	if f == nil || !reads && !writes || len(in.Args)-1 != sources {
		return fail()
	}
	return func(a, b, c uint64, cc bool) (uint64, bool) {
		r, out := f(a, b, c, cc && reads)
		if !writes {
			out = cc
		}
		return r, out
	}, nil
}

func addCarry(a, b, c uint64, w uint) (uint64, bool) {
	r, carry := bits.Add64(a&mask(w), b&mask(w), c)
	return r & mask(w), carry == 1 || r>>(w-1)>>1 != 0
}
