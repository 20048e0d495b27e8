package eval

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// AtomFunc is what an atomic operation writes where old was. b and c are its operands; c is only used by cas, where b is
// compared.
type AtomFunc func(old, b, c uint64) uint64

// Atom returns the operation of atom, red or the like, of one element: .f16x2 counts as one, vectors of .v2 and so on do not.
// Addition of f32 in global memory flushes subnormal numbers, as PTX documents; in shared memory and through generic addresses
// it does not.
func Atom(in *ir.Instr) (AtomFunc, error) {
	t := in.Type(0)
	elem, _ := part(t)
	f, w, isFloat := formatOf(elem), uint(elem.Bits()), elem.IsFloat()
	op := in.First("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
	fail := func() (AtomFunc, error) {
		return nil, fmt.Errorf("ptx/eval: %s is no atomic operation: %w", in.Opcode(), compute.ErrUnsupported)
	}
	if w < 16 && op != "" || w > 64 {
		return fail()
	}
	binary := func(g Func) (AtomFunc, error) {
		g = spread(t, g)
		return func(old, b, _ uint64) uint64 { return g(old, b, 0, 0) }, nil
	}
	m := mask(w)
	switch {
	case op == "add" && isFloat:
		var g Func
		switch f {
		case f64:
			g = nearest64["add"]
		case f32:
			g = nearest32["add"]
			if in.Space() == ir.GlobalSpace {
				g = flushed(f, g)
			}
		case f16, bf16:
			g = halfArithmetic("add", f)
		default:
			return fail()
		}
		return binary(g)
	case (op == "min" || op == "max") && (f == f16 || f == bf16):
		g, err := extreme(&ir.Instr{Op: ir.Op(op), Args: make([]ir.Operand, 3)}, elem)
		if err != nil {
			return fail()
		}
		return binary(g)
	case isFloat && op != "exch" || elem == ir.Pred || elem == ir.NoType:
		return fail()
	case op == "exch":
		return func(_, b, _ uint64) uint64 { return b & m }, nil
	case op == "cas":
		return func(old, b, c uint64) uint64 {
			if (old^b)&m == 0 {
				return c & m
			}
			return old
		}, nil
	case op == "add":
		return binary(addInt(w, false))
	case op == "min" && t.Class() != ir.Bits:
		return binary(minInt(w, t.IsSigned()))
	case op == "max" && t.Class() != ir.Bits:
		return binary(maxInt(w, t.IsSigned()))
	case op == "and":
		return func(old, b, _ uint64) uint64 { return old & b & m }, nil
	case op == "or":
		return func(old, b, _ uint64) uint64 { return (old | b) & m }, nil
	case op == "xor":
		return func(old, b, _ uint64) uint64 { return (old ^ b) & m }, nil
	case op == "inc":
		return func(old, b, _ uint64) uint64 {
			if old&m >= b&m {
				return 0
			}
			return (old + 1) & m
		}, nil
	case op == "dec":
		return func(old, b, _ uint64) uint64 {
			if old&m == 0 || old&m > b&m {
				return b & m
			}
			return (old - 1) & m
		}, nil
	}
	return fail()
}
