package opt

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// memory counts what may have changed memory, so that equal counts mean that loads from a space see the same. As with
// registers, each block begins anew.
type memory struct {
	last   int
	spaces map[ir.Space]int
	params map[string]bool // of the kernel: they never change
}

func (u *unit) memory() *memory {
	m := &memory{params: map[string]bool{}}
	if u.f.Entry {
		for i := range u.f.Params {
			m.params[u.f.Params[i].Name] = true
		}
	}
	return m
}

var writable = []ir.Space{ir.NoSpace, ir.GlobalSpace, ir.SharedSpace, ir.SharedClusterSpace, ir.LocalSpace, ir.ParamSpace}

func (m *memory) enter() {
	m.spaces = map[ir.Space]int{}
	m.change(writable...)
}

func (m *memory) change(of ...ir.Space) {
	m.last++
	for _, s := range of {
		m.spaces[s] = m.last
	}
}

// pass goes over an instruction.
func (m *memory) pass(in *ir.Instr) {
	switch in.Kind() {
	case ir.Arithmetic, ir.Move, ir.SetPred, ir.Carry, ir.Branch, ir.Leave, ir.Directive, ir.Fetch:
	case ir.Load:
		if !weak(in) {
			m.change(writable...) // it may order others' writes before what follows
		}
	case ir.Store:
		switch s := in.Space(); {
		case in.Op != "st" || in.First(ir.Release, ir.SC, ir.Volatile, ir.Relaxed) != "" || s == ir.NoSpace:
			m.change(writable...)
		case s == ir.SharedSpace || s == ir.SharedClusterSpace:
			m.change(ir.NoSpace, ir.SharedSpace, ir.SharedClusterSpace)
		default:
			m.change(ir.NoSpace, s)
		}
	default:
		m.change(writable...)
	}
}

// of is what a load depends on besides its operands; ok is false where two equal loads need not see the same.
func (m *memory) of(in *ir.Instr) (count int, ok bool) {
	if !weak(in) || len(in.Args) != 2 {
		return 0, false
	}
	s := in.Space()
	if s == ir.ConstSpace || in.Has(ir.NC) || s == ir.ParamSpace && m.params[in.Args[1].Sym] {
		return 0, true
	}
	return m.spaces[s], true
}

// commutes tells whether the first two sources may change places.
func commutes(in *ir.Instr) bool {
	switch in.Op {
	case "add", "mul", "mad", "and", "or", "xor", "min", "max", "mul24", "mad24":
		return !in.Type(0).IsFloat() // the first NaN among the operands may make the result
	}
	return false
}

// key says what an instruction computes, if that may be found a second time: equal keys mean equal results.
func (u *unit) key(in *ir.Instr, v *versions, mem *memory) (string, bool) {
	if len(in.Args) < 2 || in.Args[0].Kind != ir.RegOperand || u.bits(in.Args[0].Reg) > 64 {
		return "", false
	}
	var b strings.Builder
	b.WriteString(in.Opcode())
	switch {
	case in.Kind() == ir.Load:
		n, ok := mem.of(in)
		if !ok {
			return "", false
		}
		fmt.Fprintf(&b, "@%d", n)
	case !pure(in):
		return "", false
	case in.Op == "mov" && in.Args[1].Kind != ir.SpecialOperand && in.Args[1].Kind != ir.SymOperand:
		return "", false // a literal, or a copy
	}
	args := in.Args[1:]
	if len(args) > 1 && commutes(in) && args[0].Kind == ir.RegOperand && args[1].Kind == ir.RegOperand &&
		args[1].Reg < args[0].Reg {
		args = append([]ir.Operand{args[1], args[0]}, args[2:]...)
	}
	for i := range args {
		b.WriteByte(' ')
		keyOperand(&b, &args[i], v)
	}
	return b.String(), true
}

func keyOperand(b *strings.Builder, o *ir.Operand, v *versions) {
	fmt.Fprintf(b, "%d:%t:%t%s:%x:%s:%d", o.Kind, o.Not, o.Neg, o.Part, o.Bits, o.Sym, o.Off)
	if o.Reg != 0 {
		fmt.Fprintf(b, ":r%d.%d", o.Reg, v.of(o.Reg))
	}
	for i := range o.Elems {
		b.WriteByte('(')
		keyOperand(b, &o.Elems[i], v)
		b.WriteByte(')')
	}
}

// common finds what is computed or loaded a second time. Readers of the second register read the first where both are written
// but once; otherwise the second instruction becomes a copy.
func (u *unit) common() int {
	type result struct {
		reg            ir.Reg
		version, instr int
	}
	f := u.facts()
	v, mem := f.versions(), u.memory()
	table := map[string][]result{}
	subst := map[ir.Reg]ir.Reg{}
	n := 0
	again := func(i int, key string) bool {
		in := &u.f.Body[i]
		d := in.Args[0].Reg
		for k := len(table[key]) - 1; k >= 0; k-- {
			r := table[key][k]
			if v.of(r.reg) != r.version || !f.g.Before(r.instr, i) || u.bits(r.reg) != u.bits(d) {
				continue
			}
			if f.single(d) && f.single(r.reg) && u.stands(r.reg, d) {
				subst[d] = r.reg
				in.Op = gone
			} else {
				in.Op, in.Mods, in.Args = "mov", []ir.Mod{u.copyType(d, r.reg)}, []ir.Operand{ir.R(d), ir.R(r.reg)}
			}
			n++
			return true
		}
		return false
	}
	for _, b := range f.g.RPO {
		v.enter()
		mem.enter()
		for i := f.g.Blocks[b].Start; i < f.g.Blocks[b].End; i++ {
			in := &u.f.Body[i]
			mem.pass(in)
			key, ok := u.key(in, v, mem)
			found := ok && again(i, key)
			v.pass(i)
			if d := in.Args; ok && !found && in.Guard.Reg == 0 {
				table[key] = append(table[key], result{d[0].Reg, v.of(d[0].Reg), i})
			}
		}
	}
	u.sweep()
	u.substitute(subst)
	return n
}

// copyType is the type of a mov between two registers of the same width.
func (u *unit) copyType(to, from ir.Reg) ir.Mod {
	a, b := u.f.Regs[to].Type, u.f.Regs[from].Type
	switch {
	case a == ir.Pred || a == b && !packed(a):
		return a.Mod()
	case a.Bits() == 16:
		return ir.B16.Mod()
	case a.Bits() == 32:
		return ir.B32.Mod()
	}
	return ir.B64.Mod()
}
