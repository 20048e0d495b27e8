package opt

import (
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// constant is what is known of a register's value at the place where it was written.
type constant struct {
	state byte // unknown yet, known, or varying
	bits  uint64
}

const (
	untold byte = iota
	known
	varying
)

func (c constant) meet(d constant) constant {
	switch {
	case c.state == untold:
		return d
	case d.state == untold || c == d:
		return c
	}
	return constant{state: varying}
}

// constants finds what each write leaves in its register, beginning with the assumption that nothing is known to vary: so it
// sees through loops that do not change a value. A read sees what all writes that may reach it agree on. What was never
// written varies.
type constants struct {
	u     *unit
	g     *flow.Graph
	reach *flow.Reaching
	value map[flow.Use]constant // by the writing instruction and register
}

func (u *unit) constants() *constants {
	g := flow.New(u.f)
	c := &constants{u: u, g: g, reach: g.Reaching(), value: map[flow.Use]constant{}}
	waiting := make([]bool, len(u.f.Body))
	var work []int
	push := func(i int) {
		if !waiting[i] && g.Reachable(g.BlockOf(i)) {
			waiting[i] = true
			work = append(work, i)
		}
	}
	for i := len(u.f.Body) - 1; i >= 0; i-- {
		push(i)
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		waiting[i] = false
		result := c.compute(i)
		g.Writes(i, func(r ir.Reg) {
			d := flow.Use{Instr: i, Reg: r}
			old := c.value[d]
			v := old.meet(result)
			if v == old {
				return
			}
			c.value[d] = v
			for _, use := range c.reach.Uses(i, r) {
				push(use.Instr)
			}
		})
	}
	return c
}

// at is what register r holds where instruction i reads it.
func (c *constants) at(i int, r ir.Reg) constant {
	var v constant
	for _, d := range c.reach.Defs(i, r) {
		if d == flow.Entry {
			return constant{state: varying}
		}
		v = v.meet(c.value[flow.Use{Instr: d, Reg: r}])
	}
	return v
}

// compute is what instruction i writes into its register.
func (c *constants) compute(i int) constant {
	in := &c.u.f.Body[i]
	vary := constant{state: varying}
	if !exact(in) || len(in.Args) < 2 || len(in.Args) > 5 || in.Args[0].Kind != ir.RegOperand {
		return vary
	}
	w := c.u.bits(in.Args[0].Reg)
	if w != 1 && w != 16 && w != 32 && w != 64 {
		return vary
	}
	var args [4]uint64
	missing := false
	for j := range in.Args[1:] {
		o := &in.Args[j+1]
		switch o.Kind {
		case ir.RegOperand:
			v := c.at(i, o.Reg)
			if v.state == varying {
				return vary
			}
			missing = missing || v.state == untold
			args[j] = v.bits
			if o.Not {
				args[j] ^= 1
			}
		case ir.IntOperand, ir.F32Operand, ir.F64Operand:
			args[j] = eval.Immediate(*o, eval.ArgType(in, j+1))
		default:
			return vary
		}
	}
	if missing {
		return constant{}
	}
	f, err := eval.Of(in)
	if err != nil {
		return vary
	}
	return constant{known, f(args[0], args[1], args[2], args[3]) & (^uint64(0) >> (64 - w))}
}

// exact tells whether the instruction is pure and has one right result. Where PTX leaves a choice, as in approximations, the
// machine is to make it.
func exact(in *ir.Instr) bool {
	if !pure(in) || in.Has(ir.Approx) || in.Has(ir.Full) {
		return false
	}
	switch in.Op {
	case "sin", "cos", "lg2", "ex2", "tanh", "rsqrt":
		return false
	case "rcp", "sqrt", "div":
		return !in.Type(0).IsFloat() || in.Rounding() != ""
	}
	return true
}

// literal is a constant as operand of type t.
func literal(bits uint64, t ir.Type) ir.Operand {
	switch {
	case t == ir.F32:
		return ir.Operand{Kind: ir.F32Operand, Bits: bits}
	case t == ir.F64:
		return ir.Operand{Kind: ir.F64Operand, Bits: bits}
	case t.IsSigned() && t.Bits() < 64:
		unused := 64 - t.Bits()
		bits = uint64(int64(bits<<unused) >> unused)
	}
	return ir.Operand{Kind: ir.IntOperand, Bits: bits}
}

// movOf is the type and the operand of the mov that puts a constant into register r.
func (u *unit) movOf(r ir.Reg, bits uint64) (ir.Mod, ir.Operand) {
	t := u.f.Regs[r].Type
	if packed(t) {
		t = map[int]ir.Type{16: ir.B16, 32: ir.B32, 64: ir.B64}[t.Bits()]
	}
	return t.Mod(), literal(bits, t)
}

// takesLiteral tells whether the i-th argument of the instruction may be a literal instead of a register of type t.
func takesLiteral(in *ir.Instr, i int, t ir.Type) bool {
	if i == 0 || in.Role(i) != ir.Read || t == ir.Pred {
		return false
	}
	want := operandType(in, i)
	switch in.Kind() {
	case ir.Move:
		if in.Op != "mov" && in.Op != "selp" && in.Op != "slct" {
			return false
		}
	case ir.Store: // scalar: st.u32 [a], 5
		if in.Op != "st" || i != 1 || in.Width() != 1 {
			return false
		}
	case ir.Arithmetic, ir.SetPred, ir.Carry:
		if in.Op == "szext" || in.Op == "bmsk" || in.Op == "fns" {
			return false
		}
	default:
		return false
	}
	w := want.Bits()
	return w == t.Bits() && (w == 16 || w == 32 || w == 64) && !packed(want) && !video(in)
}

// video tells the instructions on parts of words, whose operands have types and selectors of their own.
func video(in *ir.Instr) bool { return in.Op[0] == 'v' }

// packed tells types that have no literals: halves, packed and alternate formats.
func packed(t ir.Type) bool {
	switch t.Class() {
	case ir.Float:
		return t != ir.F32 && t != ir.F64
	}
	return t == ir.U16x2 || t == ir.S16x2 || t == ir.U8x4 || t == ir.S8x4
}

// fold replaces what computes a constant by a mov, registers that hold one by literals, and decides guards.
func (u *unit) fold() int {
	c := u.constants()
	n := 0
	for i := range u.f.Body {
		in := &u.f.Body[i]
		if !c.g.Reachable(c.g.BlockOf(i)) {
			continue
		}
		if g := in.Guard; g.Reg != 0 && in.Kind() != ir.Branch {
			if v := c.at(i, g.Reg); v.state == known {
				n++
				if v.bits&1 != 0 == g.Not {
					in.Op = gone
					continue
				}
				in.Guard = ir.Guard{}
			}
		}
		if pure(in) && len(in.Args) > 1 && in.Args[0].Kind == ir.RegOperand {
			r := in.Args[0].Reg
			v := c.value[flow.Use{Instr: i, Reg: r}]
			if v.state == known {
				mod, o := u.movOf(r, v.bits)
				if in.Op != "mov" || in.Args[1].Kind == ir.RegOperand {
					n++
					in.Op, in.Mods, in.Args = "mov", []ir.Mod{mod}, []ir.Operand{ir.R(r), o}
				}
				continue
			}
		}
		for j := range in.Args {
			o := &in.Args[j]
			if o.Kind != ir.RegOperand || o.Reg == 0 {
				continue
			}
			if t := u.f.Regs[o.Reg].Type; takesLiteral(in, j, t) {
				if v := c.at(i, o.Reg); v.state == known {
					n++
					bits := v.bits
					if eval.IsField(in, j) {
						bits &= 0xff // no other bits are read, and ptxas takes no larger literals
					}
					*o = literal(bits, operandType(in, j))
				}
			}
		}
	}
	u.sweep()
	return n
}

// operandType is the type of a literal in the place of the i-th argument.
func operandType(in *ir.Instr, i int) ir.Type {
	if in.Kind() == ir.Store {
		return in.Type(0)
	}
	return eval.ArgType(in, i)
}
