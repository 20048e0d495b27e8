package kernels_test

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// mutant is a kernel with one mistake.
type mutant struct {
	name   string // what was done, and where
	kind   string
	module *ir.Module
}

// mutants are all that one of these mistakes makes of a module's kernel: a barrier left out, an index into shared memory one too
// large, a bounds check that always passes, a wait for asynchronous copies left out.
func mutants(m *ir.Module) []mutant {
	var all []mutant
	f := m.Funcs[0]
	for i := range f.Body {
		in := &f.Body[i]
		add := func(kind string, change func(f *ir.Func, in *ir.Instr)) {
			c := m.Clone()
			change(c.Funcs[0], &c.Funcs[0].Body[i])
			all = append(all, mutant{fmt.Sprintf("%s: %s: %d: %s", f.Name, kind, i, f.InstrString(in)), kind, c})
		}
		leaveOut := func(f *ir.Func, _ *ir.Instr) { f.Body = slices.Delete(f.Body, i, i+1) }
		switch {
		case in.Kind() == ir.Barrier:
			add("barrier", leaveOut)
		case in.Op == "cp.async.wait_group" || in.Op == "cp.async.wait_all":
			add("wait", leaveOut)
		case in.Op == "setp" && in.Has("lt") && !loops(f, i):
			add("bounds", func(_ *ir.Func, in *ir.Instr) {
				in.Mods = []ir.Mod{"eq", "u32"}
				in.Args = []ir.Operand{in.Args[0], ir.Int(0), ir.Int(0)}
			})
		}
		if a, size := sharedAddress(in); a >= 0 {
			add("index", func(_ *ir.Func, in *ir.Instr) { in.Args[a].Off += int64(size) })
		}
	}
	return all
}

// loops tells whether the comparison at i decides on another turn of a loop.
func loops(f *ir.Func, i int) bool {
	p := f.Body[i].Args[0].Reg
	for j := i + 1; j < len(f.Body); j++ {
		in := &f.Body[j]
		if in.Op == "bra" && in.Guard.Reg == p {
			return slices.ContainsFunc(f.Body[:i], func(in ir.Instr) bool {
				return in.Op == ir.OpLabel && in.Args[0].Sym == f.Body[j].Args[0].Sym
			})
		}
	}
	return false
}

// sharedAddress is the argument of an instruction that addresses shared memory, −1 if none does, and the bytes it moves per lane.
func sharedAddress(in *ir.Instr) (arg, bytes int) {
	if !in.Has(ir.Shared) {
		return -1, 0
	}
	arg = slices.IndexFunc(in.Args, func(o ir.Operand) bool { return o.Kind == ir.AddrOperand })
	switch {
	case in.Op == "cp.async":
		return arg, int(in.Args[2].Bits)
	case in.Op == "ldmatrix":
		return arg, 16
	}
	return arg, in.Width() * in.Type(0).Size()
}
