package eval

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Func computes an instruction: a to d are its source operands in their order, as many as it has. A negated predicate comes
// negated. Operands that PTX wants constant (the table of lop3) are in the function and are not counted.
//
// Of an instruction with two destinations, p|q, the second one is in bit 32 of the result (setp, lop3).
type Func func(a, b, c, d uint64) uint64

// row is a set of forms that share their code.
type row struct {
	types string // that the first type of the opcode may be; "" for opcodes without types
	mods  string // other parts that the opcode may have
	least int    // sources
	most  int
	make  func(in *ir.Instr, t ir.Type) (Func, error)
}

// adder enters the same rows for each of the roots, separated by spaces.
type adder func(roots string, rows ...row)

// table has the instructions by their roots. Each file adds those of its subject.
var table = sync.OnceValue(func() map[ir.Op][]row {
	table := map[ir.Op][]row{}
	for _, of := range []func(adder){addApprox, addBits, addCompare, addConversions, addFloat, addInteger, addVideo} {
		of(func(roots string, rows ...row) {
			for _, op := range strings.Fields(roots) {
				table[ir.Op(op)] = append(table[ir.Op(op)], rows...)
			}
		})
	}
	return table
})

// Of returns the function of a pure instruction: those of Kind Arithmetic, Move and SetPred, but for what depends on where
// memory lies (cvta, isspacep, mapa …) and mov of vectors. The error wraps compute.ErrUnsupported for instructions that are not here
// and compute.ErrArgument for those that PTX does not have. It does not check operands as [ir.FormOf] does.
func Of(in *ir.Instr) (Func, error) {
	rows, ok := table()[in.Op]
	if !ok || in.Has(ir.CC) {
		return nil, fmt.Errorf("ptx/eval: %s is not a function of its operands alone: %w", in.Opcode(), compute.ErrUnsupported)
	}
	t := in.Type(0)
	var reason string
	for i := range rows {
		r := &rows[i]
		switch {
		case !r.takes(t):
			continue
		case !r.allows(in, &reason):
			continue
		case len(in.Args)-1 < r.least || len(in.Args)-1 > r.most:
			return nil, fmt.Errorf("ptx/eval: %s with %d operands: %w", in.Opcode(), len(in.Args), compute.ErrArgument)
		}
		f, err := r.make(in, t)
		if err != nil {
			return nil, fmt.Errorf("ptx/eval: %s: %w", in.Opcode(), err)
		}
		return f, nil
	}
	if reason != "" {
		return nil, fmt.Errorf("ptx/eval: %s: no .%s here: %w", in.Opcode(), reason, compute.ErrUnsupported)
	}
	return nil, fmt.Errorf("ptx/eval: %s: no such type: %w", in.Opcode(), compute.ErrUnsupported)
}

func (r *row) takes(t ir.Type) bool {
	return r.types == "" && t == ir.NoType || slices.Contains(strings.Fields(r.types), t.String())
}

func (r *row) allows(in *ir.Instr, reason *string) bool {
	allowed := strings.Fields(r.mods)
	for _, m := range in.Mods {
		if _, isType := m.Type(); !isType && !slices.Contains(allowed, string(m)) {
			*reason = string(m)
			return false
		}
	}
	return true
}

// same is for functions that depend on nothing but the type's width and sign.
func same(f func(w uint, signed bool) Func) func(*ir.Instr, ir.Type) (Func, error) {
	return func(_ *ir.Instr, t ir.Type) (Func, error) { return f(uint(t.Bits()), t.IsSigned()), nil }
}

// halves applies a function of 16-bit values to both halves of 32-bit ones.
func halves(f Func) Func {
	return func(a, b, c, d uint64) uint64 {
		lo := f(a&0xffff, b&0xffff, c&0xffff, d&0xffff)
		hi := f(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff, d>>16&0xffff)
		return lo&0xffff | hi&0xffff<<16
	}
}

// part is the type of the parts of a packed type, or t itself.
func part(t ir.Type) (ir.Type, bool) {
	switch t {
	case ir.F16x2:
		return ir.F16, true
	case ir.BF16x2:
		return ir.BF16, true
	case ir.U16x2:
		return ir.U16, true
	case ir.S16x2:
		return ir.S16, true
	case ir.F32x2:
		return ir.F32, true
	}
	return t, false
}

// mask has the w low bits set.
func mask(w uint) uint64 { return ^uint64(0) >> (64 - w) }

// sext reads the w low bits as two's complement.
func sext(v uint64, w uint) int64 { return int64(v<<(64-w)) >> (64 - w) }

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
