package flow

import "github.com/wavelane/wavelane/ptx/ir"

// Renumber orders the registers of f as the parser does: in the order in which the body first mentions them, after those the
// return values and then the parameters that are registers and not mentioned. Registers that nothing mentions go. Names stay.
func Renumber(f *ir.Func) {
	if f.Body == nil || len(f.Regs) == 0 {
		return
	}
	number := make([]ir.Reg, len(f.Regs))
	regs := f.Regs[:1:1]
	mention := func(r ir.Reg) {
		if r > 0 && int(r) < len(number) && number[r] == 0 {
			number[r] = ir.Reg(len(regs))
			regs = append(regs, f.Regs[r])
		}
	}
	for i := range f.Body {
		mention(f.Body[i].Guard.Reg)
		for j := range f.Body[i].Args {
			f.Body[i].Args[j].Regs(mention)
		}
	}
	for _, list := range [][]ir.Var{f.Rets, f.Params} {
		for _, r := range registersOf(f, list) {
			mention(r)
		}
	}
	f.Regs = regs
	to := func(r ir.Reg) ir.Reg {
		if r > 0 && int(r) < len(number) {
			return number[r]
		}
		return r
	}
	for i := range f.Body {
		f.Body[i].Guard.Reg = to(f.Body[i].Guard.Reg)
		MapRegs(&f.Body[i], to)
	}
}

// MapRegs replaces the registers in the arguments of an instruction, not that of its guard.
func MapRegs(in *ir.Instr, to func(ir.Reg) ir.Reg) {
	for i := range in.Args {
		mapOperand(&in.Args[i], to)
	}
}

func mapOperand(o *ir.Operand, to func(ir.Reg) ir.Reg) {
	if o.Reg != 0 {
		o.Reg = to(o.Reg)
	}
	for i := range o.Elems {
		mapOperand(&o.Elems[i], to)
	}
}
