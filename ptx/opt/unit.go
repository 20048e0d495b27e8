package opt

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// gone marks an instruction for sweep.
const gone ir.Op = ""

// sweep deletes what is marked and returns how many that were.
func (u *unit) sweep() int {
	n := len(u.f.Body)
	u.f.Body = slices.DeleteFunc(u.f.Body, func(in ir.Instr) bool { return in.Op == gone })
	return n - len(u.f.Body)
}

// bits is the width of a register, 0 for what is none.
func (u *unit) bits(r ir.Reg) int {
	if r <= 0 || int(r) >= len(u.f.Regs) || u.f.Regs[r].Type.String() == "none" {
		return 0
	}
	return u.f.Regs[r].Type.Bits()
}

func (u *unit) takeNames() {
	if u.names != nil {
		return
	}
	u.names, u.next = map[string]bool{}, map[string]int{}
	for _, r := range u.f.Regs {
		u.names[r.Name] = true
		if stem, n, ok := splitNumber(r.Name); ok {
			u.next[stem] = max(u.next[stem], n+1)
		}
	}
	for i := range u.f.Body {
		for j := range u.f.Body[i].Args {
			u.names[u.f.Body[i].Args[j].Sym] = true
		}
	}
	for _, list := range [][]ir.Var{u.f.Params, u.f.Rets, u.f.Vars} {
		for i := range list {
			u.names[list[i].Name] = true
		}
	}
}

func splitNumber(name string) (stem string, n int, ok bool) {
	stem = strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(stem):])
	return stem, n, err == nil && n < 1<<19
}

// newReg makes a register of type t, named after like if that is given: %r12 after %r3, %i_0 after %i.
func (u *unit) newReg(t ir.Type, like ir.Reg) ir.Reg {
	u.takeNames()
	stem := "%" + t.String() + "_"
	if like != 0 {
		var numbered bool
		if stem, _, numbered = splitNumber(u.f.Regs[like].Name); !numbered {
			stem = u.f.Regs[like].Name + "_"
		}
	}
	name := stem + strconv.Itoa(u.next[stem])
	for _, special := ir.Special(name); special || u.names[name]; _, special = ir.Special(name) {
		u.next[stem]++
		name = stem + strconv.Itoa(u.next[stem])
	}
	u.next[stem]++
	u.names[name] = true
	u.f.Regs = append(u.f.Regs, ir.RegDecl{Name: name, Type: t})
	return ir.Reg(len(u.f.Regs) - 1)
}

// newLabel makes a label that begins with the given name.
func (u *unit) newLabel(like string) string {
	u.takeNames()
	for n := 1; ; n++ {
		if name := like + "_" + strconv.Itoa(n); !u.names[name] {
			u.names[name] = true
			return name
		}
	}
}

// pure tells whether the instruction does nothing but compute its results from its operands.
func pure(in *ir.Instr) bool {
	switch in.Kind() {
	case ir.Arithmetic, ir.SetPred:
		return true
	case ir.Move:
		return !slices.ContainsFunc(in.Args, func(o ir.Operand) bool {
			return o.Kind == ir.SpecialOperand && !constantSpecial(o.Sym)
		})
	}
	return false
}

// constantSpecial tells whether a special register keeps its value while the thread runs. Not the clocks and counters, and
// not those that may change when the thread is moved.
func constantSpecial(name string) bool {
	base, _, _ := strings.Cut(strings.TrimPrefix(name, "%"), ".")
	switch base {
	case "tid", "ntid", "ctaid", "nctaid", "laneid", "gridid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge",
		"lanemask_gt", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", "cluster_ctarank", "cluster_nctarank",
		"is_explicit_cluster", "total_smem_size", "aggr_smem_size", "dynamic_smem_size":
		return true
	}
	return false
}

// weak tells whether a load is an ordinary one: not volatile, not ordered with others.
func weak(in *ir.Instr) bool {
	return (in.Op == "ld" || in.Op == "ldu") &&
		in.First(ir.Volatile, ir.Relaxed, ir.Acquire, ir.SC, "mmio", "sys") == ""
}

// facts are what the passes ask about the registers of a function as it is now.
type facts struct {
	u *unit
	g *flow.Graph
	// def is the one instruction that writes a register that behaves as in SSA form: written once, without a guard, before
	// every read. -1 for all others.
	def []int
	// counts of reads, guards and addresses among them
	reads []int
}

// facts collects them. Registers that wgmma uses, and those that are parameters or return values, are never single.
func (u *unit) facts() *facts {
	f := &facts{u: u, g: flow.New(u.f), def: make([]int, len(u.f.Regs)), reads: make([]int, len(u.f.Regs))}
	for r := range f.def {
		f.def[r] = -1
	}
	many := u.pinned()
	for i := range u.f.Body {
		in := &u.f.Body[i]
		f.g.Writes(i, func(r ir.Reg) {
			if f.def[r] >= 0 || in.Guard.Reg != 0 || !f.g.Reachable(f.g.BlockOf(i)) {
				many[r] = true
			}
			f.def[r] = i
		})
	}
	for i := range u.f.Body {
		f.g.Reads(i, func(r ir.Reg) {
			f.reads[r]++
			if d := f.def[r]; d >= 0 && f.g.Reachable(f.g.BlockOf(i)) && !f.g.Before(d, i) {
				many[r] = true
			}
		})
	}
	for r := range f.def {
		if many[r] {
			f.def[r] = -1
		}
	}
	return f
}

// pinned marks the registers that are not to be renamed or replaced.
func (u *unit) pinned() []bool {
	pin := make([]bool, len(u.f.Regs))
	for i := range u.f.Body {
		if in := &u.f.Body[i]; in.Kind() == ir.Wgmma {
			in.Regs(func(r ir.Reg, _ ir.Role) { pin[r] = true })
		}
	}
	for _, list := range [][]ir.Var{u.f.Params, u.f.Rets} {
		for i := range list {
			for r := 1; r < len(u.f.Regs); r++ {
				if list[i].Space == ir.RegSpace && u.f.Regs[r].Name == list[i].Name {
					pin[r] = true
				}
			}
		}
	}
	return pin
}

// single tells whether the register behaves as in SSA form.
func (f *facts) single(r ir.Reg) bool { return f.def[r] >= 0 }

// stands tells whether reads of register d may read s instead, as far as types go: both hold the same number of bits, and s is
// accepted wherever d is.
func (u *unit) stands(s, d ir.Reg) bool {
	a, b := u.f.Regs[s].Type, u.f.Regs[d].Type
	integer := func(t ir.Type) bool { return t.Class() == ir.Unsigned || t.Class() == ir.Signed }
	return a == b || u.bits(s) == u.bits(d) && (a.Class() == ir.Bits || integer(a) && integer(b))
}

// versions tells values of registers apart while a pass goes through the blocks in reverse post-order: equal versions of a
// register mean the same value. A single register has version 0; others get a new one at each write and at the start of each
// block.
type versions struct {
	f     *facts
	block int // of those not written in the block
	last  int
	now   map[ir.Reg]int
}

func (f *facts) versions() *versions { return &versions{f: f} }

func (v *versions) enter() {
	v.last++
	v.block = v.last
	v.now = map[ir.Reg]int{}
}

func (v *versions) of(r ir.Reg) int {
	if v.f.single(r) {
		return 0
	}
	if n, ok := v.now[r]; ok {
		return n
	}
	return v.block
}

// pass goes over instruction i.
func (v *versions) pass(i int) {
	v.f.g.Writes(i, func(r ir.Reg) {
		v.last++
		v.now[r] = v.last
	})
}

// substitute lets all readers of a key of to read its value instead, which may be a key itself.
func (u *unit) substitute(to map[ir.Reg]ir.Reg) {
	if len(to) == 0 {
		return
	}
	find := func(r ir.Reg) ir.Reg {
		for to[r] != 0 {
			r = to[r]
		}
		return r
	}
	for i := range u.f.Body {
		in := &u.f.Body[i]
		in.Guard.Reg = find(in.Guard.Reg)
		flow.MapRegs(in, find)
	}
}
