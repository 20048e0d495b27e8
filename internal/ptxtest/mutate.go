package ptxtest

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Mutation is a mistake that somebody could have made in a kernel.
type Mutation struct {
	Kernel string
	Kind   string // see Mutations
	Instr  string // what it is made of
	At     int    // its place in the body
	change func(in *ir.Instr)
}

func (m *Mutation) String() string {
	return fmt.Sprintf("%s: %s: %d: %s", m.Kernel, m.Kind, m.At, m.Instr)
}

// Apply is a module with the mutation, a copy. Other kernels are the same.
func (m *Mutation) Apply(module *ir.Module) *ir.Module {
	c := *module
	c.Funcs = slices.Clone(module.Funcs)
	i := slices.IndexFunc(c.Funcs, func(f *ir.Func) bool { return f.Entry && f.Name == m.Kernel })
	c.Funcs[i] = c.Funcs[i].Clone()
	f := c.Funcs[i]
	if m.change == nil {
		f.Body = slices.Delete(f.Body, m.At, m.At+1)
		return &c
	}
	m.change(&f.Body[m.At])
	return &c
}

// Mutations are all that can be done to a kernel of a module, each in one place:
//
//	barrier    a barrier left out
//	fence      a fence left out
//	wait       a wait for something asynchronous left out
//	count      a wait that leaves one more group pending
//	commit     copies that are not put into a group
//	bounds     a comparison of integers that always lets through what it should stop
//	iteration       a loop that takes one iteration more
//	predicate  an instruction that ignores its guard, but for results that are read under that guard alone
//	index      an address in shared memory that is one access too large
//	address    the same in global memory
//	shuffle    lanes that keep their own value in place of another lane's
func Mutations(f *ir.Func) (all []Mutation) {
	for i := range f.Body {
		in := &f.Body[i]
		add := func(kind string, change func(in *ir.Instr)) {
			all = append(all, Mutation{f.Name, kind, f.InstrString(in), i, change})
		}
		switch kind := in.Kind(); {
		case kind == ir.Directive:
			continue
		case kind == ir.Barrier, in.Op == "bar.warp.sync":
			add("barrier", nil)
		case kind == ir.Fence, in.Op == "wgmma.fence":
			add("fence", nil)
		case slices.Contains(waits, in.Op):
			add("wait", nil)
			if len(in.Args) > 0 && in.Args[0].Kind == ir.IntOperand {
				add("count", func(in *ir.Instr) { in.Args[0].Bits++ })
			}
		case slices.Contains(commits, in.Op):
			add("commit", nil)
		case in.Op == "mbarrier.try_wait" || in.Op == "mbarrier.test_wait":
			add("wait", func(in *ir.Instr) {
				done := []ir.Operand{in.Args[0], ir.Int(0), ir.Int(0)}
				*in = ir.Instr{Pos: in.Pos, Guard: in.Guard, Op: "setp", Mods: []ir.Mod{"eq", "u32"}, Args: done}
			})
		case (in.Op == "shfl" || in.Op == "shfl.sync") && in.Args[0].Kind == ir.RegOperand:
			add("shuffle", func(in *ir.Instr) {
				*in = ir.Instr{Pos: in.Pos, Guard: in.Guard, Op: "mov", Mods: []ir.Mod{"b32"}, Args: in.Args[:2]}
			})
		case in.Op == "setp" && in.Args[0].Kind == ir.RegOperand && !in.Type(0).IsFloat():
			compare(f, i, add)
		}
		if in.Guard.Reg != 0 && in.Kind() != ir.Branch && in.Kind() != ir.Leave && !idle(f, in) {
			add("predicate", func(in *ir.Instr) { in.Guard = ir.Guard{} })
		}
		if a, size := accessed(in); a >= 0 && size > 0 {
			kind := map[bool]string{true: "index", false: "address"}[in.Has(ir.Shared)]
			add(kind, func(in *ir.Instr) { in.Args[a].Off += int64(size) })
		}
	}
	return all
}

var (
	waits = []ir.Op{"cp.async.wait_group", "cp.async.wait_all", "cp.async.bulk.wait_group",
		"wgmma.wait_group"}
	commits = []ir.Op{"cp.async.commit_group", "cp.async.bulk.commit_group", "wgmma.commit_group"}
)

// compare adds what can be done to a comparison of integers.
func compare(f *ir.Func, i int, add func(kind string, change func(in *ir.Instr))) {
	in := &f.Body[i]
	become := func(from, to ir.Mod) func(in *ir.Instr) {
		return func(in *ir.Instr) { in.Mods[slices.Index(in.Mods, from)] = to }
	}
	always := func(from, to ir.Mod) func(in *ir.Instr) {
		return func(in *ir.Instr) {
			become(from, to)(in)
			in.Mods[slices.Index(in.Mods, ir.Mod(in.Type(0).String()))] = "u32"
			in.Args[1], in.Args[2] = ir.Int(0), ir.Int(0)
		}
	}
	again := iterations(f, i)
	switch {
	case again && in.Has("lt"):
		add("iteration", become("lt", "le"))
	case again && in.Has("gt"):
		add("iteration", become("gt", "ge"))
	case again:
	case in.Has("lt"):
		add("bounds", always("lt", "eq"))
	case in.Has("le"):
		add("bounds", always("le", "eq"))
	case in.Has("ge"):
		add("bounds", always("ge", "ne"))
	case in.Has("gt"):
		add("bounds", always("gt", "ne"))
	}
}

// idle tells whether a guarded instruction could do without its guard: what it computes is read under the same guard alone.
func idle(f *ir.Func, in *ir.Instr) bool {
	if !slices.Contains([]ir.Kind{ir.Arithmetic, ir.Move, ir.SetPred}, in.Kind()) {
		return false
	}
	var out []ir.Reg
	in.Regs(func(r ir.Reg, role ir.Role) {
		if role == ir.Write {
			out = append(out, r)
		}
	})
	for i := range f.Body {
		read := false
		f.Body[i].Regs(func(r ir.Reg, role ir.Role) { read = read || role != ir.Write && slices.Contains(out, r) })
		if read && f.Body[i].Guard != in.Guard {
			return false
		}
	}
	return true
}

// iterations tells whether the comparison at i decides on another iteration of a loop.
func iterations(f *ir.Func, i int) bool {
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

// accessed is the argument of an instruction that addresses shared or global memory, −1 if none does, and the bytes it moves
// per lane.
func accessed(in *ir.Instr) (arg, bytes int) {
	if !in.Has(ir.Shared) && !in.Has(ir.Global) {
		return -1, 0
	}
	arg = slices.IndexFunc(in.Args, func(o ir.Operand) bool { return o.Kind == ir.AddrOperand })
	switch {
	case in.Kind() == ir.Mbarrier, in.Kind() == ir.Fetch:
		return -1, 0
	case in.Op == "cp.async":
		return arg, int(in.Args[2].Bits)
	case in.Op == "ldmatrix", in.Op == "stmatrix":
		return arg, 16
	}
	return arg, in.Width() * in.Type(0).Size()
}
