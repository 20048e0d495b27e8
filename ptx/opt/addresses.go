package opt

import (
	"math"

	"github.com/wavelane/wavelane/ptx/ir"
)

// sum is a register that holds another one, or the address of a variable, plus a constant.
type sum struct {
	base ir.Reg
	sym  string
	off  int64
}

// addresses puts constants that are added to 64-bit addresses into the offsets of loads and stores, and the addresses of
// variables into those that name their space. 32-bit addresses stay: whether reg+offset wraps there is nowhere written.
func (u *unit) addresses() int {
	f := u.facts()
	sums := map[ir.Reg]sum{}
	n := 0
	for _, b := range f.g.RPO {
		for i := f.g.Blocks[b].Start; i < f.g.Blocks[b].End; i++ {
			in := &u.f.Body[i]
			switch in.Kind() {
			case ir.Load, ir.Store, ir.Atomic:
				for j := range in.Args {
					n += u.address(in, &in.Args[j], sums)
				}
				continue
			}
			s, ok := u.sum(in)
			if !ok || !f.single(in.Args[0].Reg) || s.base != 0 && !f.single(s.base) {
				continue
			}
			// What is a sum of a sum adds both constants at once.
			if t, found := sums[s.base]; found && t.sym == "" && s.base != 0 {
				off := s.off + t.off // modulo 2^64, as the register
				s = sum{base: t.base, off: off}
				if in.Op == "add" && u.stands(t.base, in.Args[0].Reg) {
					in.Args[1], in.Args[2] = ir.R(t.base), ir.Int(off)
					n++
				}
			}
			sums[in.Args[0].Reg] = s
		}
	}
	return n
}

// sum reads an instruction as one.
func (u *unit) sum(in *ir.Instr) (sum, bool) {
	if in.Guard.Reg != 0 || len(in.Mods) != 1 || len(in.Args) < 2 || in.Args[0].Kind != ir.RegOperand ||
		u.bits(in.Args[0].Reg) != 64 {
		return sum{}, false
	}
	if in.Op == "mov" && in.Args[1].Kind == ir.SymOperand {
		return sum{sym: in.Args[1].Sym, off: in.Args[1].Off}, true
	}
	if in.Op != "add" || in.Type(0).IsFloat() || in.Type(0).Bits() != 64 {
		return sum{}, false
	}
	for k := 1; k <= 2; k++ {
		if r, c := in.Args[k], in.Args[3-k]; r.Kind == ir.RegOperand && c.Kind == ir.IntOperand {
			return sum{base: r.Reg, off: int64(c.Bits)}, true
		}
	}
	return sum{}, false
}

func (u *unit) address(in *ir.Instr, o *ir.Operand, sums map[ir.Reg]sum) int {
	s, ok := sums[o.Reg]
	if o.Kind != ir.AddrOperand || o.Reg == 0 || !ok || s.sym != "" && (in.Space() == ir.NoSpace || !u.isVariable(s.sym)) {
		return 0
	}
	off := o.Off + s.off
	if off != int64(int32(off)) || s.off > math.MaxInt32 || s.off < math.MinInt32 {
		return 0
	}
	o.Reg, o.Sym, o.Off = s.base, s.sym, off
	return 1
}

// isVariable tells whether a name is that of a variable inside the function: not a function, and not one whose size is open.
func (u *unit) isVariable(name string) bool {
	for i := range u.f.Vars {
		if v := &u.f.Vars[i]; v.Name == name && v.Space != ir.ParamSpace {
			return true
		}
	}
	return false
}
