package opt

import "github.com/wavelane/wavelane/ptx/ir"

// contract makes fma.rn of a mul and the add that alone reads its result, where neither says how to round.
func (u *unit) contract() int {
	f := u.facts()
	n := 0
	for i := range u.f.Body {
		in := &u.f.Body[i]
		if in.Op != "add" || !u.contractible(in) {
			continue
		}
		for k := 1; k <= 2; k++ {
			o := in.Args[k]
			if o.Kind != ir.RegOperand || !f.single(o.Reg) || f.reads[o.Reg] != 1 {
				continue
			}
			d := f.def[o.Reg]
			mul := &u.f.Body[d]
			if mul.Op != "mul" || !u.contractible(mul) || mul.Has(ir.Sat) || mul.Type(0) != in.Type(0) ||
				mul.Has(ir.FTZ) != in.Has(ir.FTZ) || !f.unchanged(mul, d, i) {
				continue
			}
			args := []ir.Operand{in.Args[0], mul.Args[1], mul.Args[2], in.Args[3-k]}
			in.Op, in.Mods, in.Args = "fma", append([]ir.Mod{ir.RN}, in.Mods...), args
			mul.Op = gone
			n++
			break
		}
	}
	u.sweep()
	return n
}

// contractible tells whether PTX leaves the rounding of this mul or add open.
func (u *unit) contractible(in *ir.Instr) bool {
	switch in.Type(0) {
	case ir.F32, ir.F64, ir.F16, ir.F16x2:
		return in.Rounding() == "" && len(in.Args) == 3 && len(in.Mods) <= 3 && in.Type(1) == ir.NoType
	}
	return false
}

// unchanged tells whether the operands of in at d still hold at i what they did: both are in one block and nothing writes
// them between, or they are written but once.
func (f *facts) unchanged(in *ir.Instr, d, i int) bool {
	if f.g.BlockOf(d) != f.g.BlockOf(i) {
		return false
	}
	ok := true
	for j := range in.Args[1:] {
		in.Args[j+1].Regs(func(r ir.Reg) {
			for k := d; k < i; k++ {
				f.g.Writes(k, func(w ir.Reg) { ok = ok && w != r })
			}
		})
	}
	return ok
}
