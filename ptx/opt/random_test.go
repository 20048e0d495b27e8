package opt_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/wavelane/wavelane/ptx/ir"
)

// slots is the number of words that each thread has in each of its arrays.
const slots = 16

// program makes a kernel of random statements over variables that are written again and again: arithmetic, loads and stores,
// branches, loops, guards. Each thread reads and writes its own words, and writes all variables in the end.
type program struct {
	*rand.Rand
	f      *ir.Func
	vars   map[ir.Type][]ir.Reg
	data   ir.Reg // of this thread in global memory
	local  ir.Reg
	labels int
	depth  int
	busy   []ir.Reg // counters of the loops around
}

func op(code string, args ...ir.Operand) ir.Instr {
	o, mods, _ := ir.SplitOpcode(code)
	return ir.Instr{Op: o, Mods: mods, Args: args}
}

func (p *program) emit(code string, args ...ir.Operand) *ir.Instr {
	p.f.Body = append(p.f.Body, op(code, args...))
	in := &p.f.Body[len(p.f.Body)-1]
	in.Pos = ir.Pos{Line: len(p.f.Body)}
	return in
}

var stems = map[ir.Type]string{ir.U16: "%h", ir.U32: "%r", ir.S32: "%s", ir.U64: "%d", ir.F32: "%f",
	ir.F64: "%g", ir.Pred: "%p"}

func (p *program) reg(t ir.Type) ir.Reg {
	p.f.Regs = append(p.f.Regs, ir.RegDecl{Name: stems[t] + strconv.Itoa(len(p.f.Regs)), Type: t})
	return ir.Reg(len(p.f.Regs) - 1)
}

func (p *program) label() string {
	p.labels++
	return fmt.Sprintf("$L%d", p.labels)
}

func (p *program) put(label string) { p.emit(string(ir.OpLabel), ir.LabelOf(label)) }

func (p *program) variable(t ir.Type) ir.Reg { return p.vars[t][p.IntN(len(p.vars[t]))] }

var wholes = []int64{0, 1, -1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 31, 32, 60, 64, 100, 127, 641, 1000, 4096,
	65535, 1 << 31, 6700417, -7}

var fractions = []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, -4, 3, 1e-40, 1e30, math.Inf(1),
	math.NaN(), 0x1p-126, 0x1p100}

func (p *program) literal(t ir.Type) ir.Operand {
	switch t {
	case ir.F32:
		return ir.Operand{Kind: ir.F32Operand, Bits: uint64(math.Float32bits(float32(fractions[p.IntN(len(fractions))])))}
	case ir.F64:
		return ir.Operand{Kind: ir.F64Operand, Bits: math.Float64bits(fractions[p.IntN(len(fractions))])}
	}
	return ir.Int(wholes[p.IntN(len(wholes))])
}

// operand is a variable or, now and then, a literal. U8 stands for a 32-bit one whose literals ptxas wants to be below 256.
func (p *program) operand(t ir.Type) ir.Operand {
	if t == ir.U8 {
		if t = ir.U32; p.IntN(2) == 0 {
			return ir.Int(int64(p.IntN(256)))
		}
		return ir.R(p.variable(t))
	}
	if p.IntN(3) == 0 && t != ir.Pred {
		return p.literal(t)
	}
	return ir.R(p.variable(t))
}

// forms are opcodes with the types of their result and operands; a literal is put in front for a mask that keeps shifts in
// range.
var forms = []struct {
	code string
	args []ir.Type
}{
	{"add.T", []ir.Type{0, 0, 0}}, {"sub.T", []ir.Type{0, 0, 0}}, {"mul.lo.T", []ir.Type{0, 0, 0}},
	{"mul.hi.T", []ir.Type{0, 0, 0}},
	{"mad.lo.T", []ir.Type{0, 0, 0, 0}}, {"div.T", []ir.Type{0, 0, 0}}, {"rem.T", []ir.Type{0, 0, 0}},
	{"min.T", []ir.Type{0, 0, 0}},
	{"max.T", []ir.Type{0, 0, 0}}, {"and.B", []ir.Type{0, 0, 0}}, {"or.B", []ir.Type{0, 0, 0}}, {"xor.B", []ir.Type{0, 0, 0}},
	{"not.B", []ir.Type{0, 0}}, {"shl.B", []ir.Type{0, 0, ir.U32}}, {"shr.T", []ir.Type{0, 0, ir.U32}}, {"mov.T", []ir.Type{0, 0}},
	{"mov.B", []ir.Type{0, 0}}, {"selp.T", []ir.Type{0, 0, 0, ir.Pred}},
}

var otherForms = []struct {
	code string
	args []ir.Type
}{
	{"add.rn.f32", []ir.Type{ir.F32, ir.F32, ir.F32}}, {"mul.rn.f32", []ir.Type{ir.F32, ir.F32, ir.F32}},
	{"add.rn.ftz.f32", []ir.Type{ir.F32, ir.F32, ir.F32}}, {"sub.rz.f32", []ir.Type{ir.F32, ir.F32, ir.F32}},
	{"div.rn.f32", []ir.Type{ir.F32, ir.F32, ir.F32}}, {"div.rn.ftz.f32", []ir.Type{ir.F32, ir.F32, ir.F32}},
	{"fma.rn.f32", []ir.Type{ir.F32, ir.F32, ir.F32, ir.F32}}, {"fma.rm.f32", []ir.Type{ir.F32, ir.F32, ir.F32, ir.F32}},
	{"fma.rn.ftz.sat.f32", []ir.Type{ir.F32, ir.F32, ir.F32, ir.F32}}, {"min.f32", []ir.Type{ir.F32, ir.F32, ir.F32}},
	{"max.NaN.f32", []ir.Type{ir.F32, ir.F32, ir.F32}}, {"neg.f32", []ir.Type{ir.F32, ir.F32}},
	{"abs.f32", []ir.Type{ir.F32, ir.F32}},
	{"sqrt.rn.f32", []ir.Type{ir.F32, ir.F32}}, {"mov.f32", []ir.Type{ir.F32, ir.F32}},
	{"add.rn.f64", []ir.Type{ir.F64, ir.F64, ir.F64}}, {"mul.rn.f64", []ir.Type{ir.F64, ir.F64, ir.F64}},
	{"div.rn.f64", []ir.Type{ir.F64, ir.F64, ir.F64}}, {"fma.rn.f64", []ir.Type{ir.F64, ir.F64, ir.F64, ir.F64}},
	{"mov.b32", []ir.Type{ir.F32, ir.U32}}, {"mov.b32", []ir.Type{ir.U32, ir.F32}}, {"mov.b64", []ir.Type{ir.F64, ir.U64}},
	{"mov.u32", []ir.Type{ir.U32, ir.S32}}, {"mul.wide.u32", []ir.Type{ir.U64, ir.U32, ir.U32}},
	{"mad.wide.u32", []ir.Type{ir.U64, ir.U32, ir.U32, ir.U64}}, {"mul.wide.s32", []ir.Type{ir.U64, ir.S32, ir.S32}},
	{"mul.wide.u16", []ir.Type{ir.U32, ir.U16, ir.U16}}, {"cvt.u64.u32", []ir.Type{ir.U64, ir.U32}},
	{"cvt.s64.s32", []ir.Type{ir.U64, ir.S32}}, {"cvt.u32.u64", []ir.Type{ir.U32, ir.U64}},
	{"cvt.u16.u32", []ir.Type{ir.U16, ir.U32}},
	{"cvt.u32.u16", []ir.Type{ir.U32, ir.U16}}, {"cvt.s32.s8", []ir.Type{ir.S32, ir.S32}},
	{"cvt.u32.u32", []ir.Type{ir.U32, ir.U32}},
	{"cvt.rn.f32.s32", []ir.Type{ir.F32, ir.S32}}, {"cvt.rzi.s32.f32", []ir.Type{ir.S32, ir.F32}},
	{"cvt.f64.f32", []ir.Type{ir.F64, ir.F32}}, {"cvt.rn.f32.f64", []ir.Type{ir.F32, ir.F64}},
	{"popc.b32", []ir.Type{ir.U32, ir.U32}},
	{"clz.b64", []ir.Type{ir.U32, ir.U64}}, {"bfe.u32", []ir.Type{ir.U32, ir.U32, ir.U8, ir.U8}},
	{"bfi.b32", []ir.Type{ir.U32, ir.U32, ir.U32, ir.U8, ir.U8}}, {"prmt.b32", []ir.Type{ir.U32, ir.U32, ir.U32, ir.U32}},
	{"shf.l.wrap.b32", []ir.Type{ir.U32, ir.U32, ir.U32, ir.U32}}, {"setp.lt.s32", []ir.Type{ir.Pred, ir.S32, ir.S32}},
	{"setp.ge.u32", []ir.Type{ir.Pred, ir.U32, ir.U32}}, {"setp.eq.u64", []ir.Type{ir.Pred, ir.U64, ir.U64}},
	{"setp.gtu.f32", []ir.Type{ir.Pred, ir.F32, ir.F32}}, {"setp.lt.and.f64", []ir.Type{ir.Pred, ir.F64, ir.F64, ir.Pred}},
	{"setp.ne.u16", []ir.Type{ir.Pred, ir.U16, ir.U16}}, {"and.pred", []ir.Type{ir.Pred, ir.Pred, ir.Pred}},
	{"not.pred", []ir.Type{ir.Pred, ir.Pred}}, {"mov.pred", []ir.Type{ir.Pred, ir.Pred}},
	{"vadd.u32.s32.u32.sat.min", []ir.Type{ir.U32, ir.S32, ir.U32, ir.U32}},
	{"vmad.s32.s32.u32.shr7", []ir.Type{ir.S32, ir.S32, ir.U32, ir.S32}},
	{"vshl.u32.u32.u32.clamp", []ir.Type{ir.U32, ir.U32, ir.U32}},
	{"set.lt.u32.f32", []ir.Type{ir.U32, ir.F32, ir.F32}}, {"slct.u32.s32", []ir.Type{ir.U32, ir.U32, ir.U32, ir.S32}},
}

var integers = []ir.Type{ir.U32, ir.U32, ir.S32, ir.U64, ir.U16}

// compute emits one pure instruction.
func (p *program) compute() *ir.Instr {
	code, types, t := "", []ir.Type(nil), ir.NoType
	if p.IntN(2) == 0 {
		f := forms[p.IntN(len(forms))]
		t = integers[p.IntN(len(integers))]
		types = f.args
		for _, c := range f.code {
			switch c {
			case 'T':
				code += t.String()
			case 'B':
				code += "b" + strconv.Itoa(t.Bits())
			default:
				code += string(c)
			}
		}
	} else {
		f := otherForms[p.IntN(len(otherForms))]
		code, types = f.code, f.args
	}
	var args []ir.Operand
	for i, a := range types {
		if a == ir.NoType {
			a = t
		}
		if i == 0 {
			args = append(args, ir.R(p.target(a)))
		} else {
			args = append(args, p.operand(a))
		}
	}
	if code[0] == 'v' {
		for i := 1; i <= 2; i++ {
			if o := &args[i]; o.Kind == ir.RegOperand && p.IntN(2) == 0 {
				o.Part = []string{"b0", "b3", "h0", "h1"}[p.IntN(4)]
			}
		}
	}
	return p.emit(code, args...)
}

// target is a variable that may be written.
func (p *program) target(t ir.Type) ir.Reg {
	for {
		r := p.variable(t)
		free := true
		for _, b := range p.busy {
			free = free && b != r
		}
		if free {
			return r
		}
	}
}

var accesses = []ir.Type{ir.U32, ir.S32, ir.F32, ir.U64, ir.F64, ir.U16}

// access emits a load or a store at one of this thread's words: at a constant offset, through sums of constants, or at a
// variable index.
func (p *program) access() {
	t := accesses[p.IntN(len(accesses))]
	space, base := "global", p.data
	if p.IntN(3) == 0 {
		space, base = "local", p.local
	}
	var at ir.Operand
	slot := int64(p.IntN(slots)) * 8
	switch p.IntN(4) {
	case 0:
		at = ir.Addr(base, slot)
	case 1:
		a, b := p.reg(ir.U64), p.reg(ir.U64)
		p.emit("add.u64", ir.R(a), ir.R(base), ir.Int(slot-24))
		p.emit("add.s64", ir.R(b), ir.R(a), ir.Int(16))
		at = ir.Addr(b, 8)
	case 2:
		if space == "local" {
			at = ir.AddrOf("own", slot)
			break
		}
		fallthrough
	default:
		i, wide, a := p.reg(ir.U32), p.reg(ir.U64), p.reg(ir.U64)
		p.emit("and.b32", ir.R(i), ir.R(p.variable(ir.U32)), ir.Int(slots-1))
		p.emit("mul.wide.u32", ir.R(wide), ir.R(i), ir.Int(8))
		p.emit("add.u64", ir.R(a), ir.R(base), ir.R(wide))
		at = ir.Addr(a, 0)
	}
	if p.IntN(2) == 0 {
		code := "ld." + space + "." + t.String()
		if space == "global" && p.IntN(8) == 0 {
			code = "ld.volatile." + space + "." + t.String()
		}
		p.guard(p.emit(code, ir.R(p.target(t)), at))
	} else {
		p.guard(p.emit("st."+space+"."+t.String(), at, p.operand(t)))
	}
}

// guard puts a predicate before an instruction, now and then.
func (p *program) guard(in *ir.Instr) {
	if p.IntN(5) == 0 {
		in.Guard = ir.Guard{Reg: p.variable(ir.Pred), Not: p.IntN(2) == 0}
	}
}

func (p *program) statements(n int) {
	for range n {
		switch k := p.IntN(20); {
		case k < 11:
			p.guard(p.compute())
		case k < 14:
			p.access()
		case k == 14:
			p.emit("mov.u32", ir.R(p.target(ir.U32)), ir.Operand{Kind: ir.SpecialOperand, Sym: "%tid.x"})
		case k == 15:
			p.emit("add.cc.u32", ir.R(p.target(ir.U32)), p.operand(ir.U32), p.operand(ir.U32))
			p.emit("addc.u32", ir.R(p.target(ir.U32)), p.operand(ir.U32), p.operand(ir.U32))
		case k == 16:
			p.emit("ld.param.u32", ir.R(p.target(ir.U32)), ir.AddrOf("n", 0))
		case p.depth >= 3:
			p.guard(p.compute())
		case k < 18:
			p.branch()
		default:
			p.loop()
		}
	}
}

// branch emits an if, with or without an else.
func (p *program) branch() {
	p.depth++
	other, end := p.label(), p.label()
	p.emit("bra", ir.LabelOf(other)).Guard = ir.Guard{Reg: p.variable(ir.Pred), Not: p.IntN(2) == 0}
	p.statements(1 + p.IntN(4))
	if p.IntN(2) == 0 {
		p.emit("bra", ir.LabelOf(end))
		p.put(other)
		p.statements(1 + p.IntN(4))
	} else {
		p.put(other)
	}
	p.put(end)
	p.depth--
}

// loop emits one that counts up or down, tests in front or after, to a constant or a variable, perhaps with a way out in
// between.
func (p *program) loop() {
	p.depth++
	t := []ir.Type{ir.U32, ir.S32, ir.U16, ir.U64}[p.IntN(4)]
	name := t.String()
	i, bound, guard := p.reg(t), p.reg(t), p.reg(ir.Pred)
	head, end := p.label(), p.label()
	step := int64(1 + p.IntN(3))
	iterations := int64(p.IntN(7))
	from, to := int64(p.IntN(5)), int64(0)
	cmp := []string{"lt", "le", "ne", "gt", "ge"}[p.IntN(5)]
	after := p.IntN(2) == 0
	switch cmp {
	case "ne":
		step = 1
		to = from + iterations
		if after {
			to++
		}
	case "lt", "le":
		to = from + iterations*step
	default:
		from += 30
		to = from - iterations*step
		step = -step
	}
	limit := ir.Int(to)
	p.emit("mov."+name, ir.R(i), ir.Int(from))
	if p.IntN(2) == 0 {
		// A bound that the passes cannot know.
		limit = ir.R(bound)
		p.emit("ld.global."+name, ir.R(bound), ir.Addr(p.data, slots*8))
		p.emit("add."+name, ir.R(bound), ir.R(bound), ir.Int(to))
	}
	p.put(head)
	if p.IntN(2) == 0 {
		text := []string{"unroll", "unroll 2", "unroll 3", "unroll 4", "unroll 8", "nounroll"}[p.IntN(6)]
		p.emit(string(ir.OpPragma), ir.Operand{Kind: ir.TextOperand, Sym: text})
	}
	p.busy = append(p.busy, i, bound)
	opposite := map[string]string{"lt": "ge", "le": "gt", "ne": "eq", "gt": "le", "ge": "lt"}[cmp]
	if !after {
		if p.IntN(2) == 0 {
			p.emit("setp."+opposite+"."+name, ir.R(guard), ir.R(i), limit)
			p.emit("bra", ir.LabelOf(end)).Guard = ir.Guard{Reg: guard}
		} else {
			p.emit("setp."+cmp+"."+name, ir.R(guard), ir.R(i), limit)
			p.emit("bra", ir.LabelOf(end)).Guard = ir.Guard{Reg: guard, Not: true}
		}
	}
	p.statements(1 + p.IntN(3))
	p.vars[t] = append(p.vars[t], i) // the body may read the counter
	p.statements(1 + p.IntN(2))
	p.vars[t] = p.vars[t][:len(p.vars[t])-1]
	if p.IntN(4) == 0 {
		p.emit("bra", ir.LabelOf(end)).Guard = ir.Guard{Reg: p.variable(ir.Pred)}
	}
	p.emit("add."+name, ir.R(i), ir.R(i), ir.Int(step))
	if after {
		p.emit("setp."+cmp+"."+name, ir.R(guard), ir.R(i), limit)
		p.emit("bra", ir.LabelOf(head)).Guard = ir.Guard{Reg: guard}
	} else {
		p.emit("bra", ir.LabelOf(head))
	}
	p.put(end)
	p.busy = p.busy[:len(p.busy)-2]
	p.depth--
}

// randomModule is a module with one such kernel, k(data, n). A thread's data are slots+1+8 words of 64 bits: slots to load
// and store, a zero, and its variables in the end.
func randomModule(rng *rand.Rand) *ir.Module {
	f := &ir.Func{Name: "k", Entry: true, Linkage: ir.Visible, Regs: []ir.RegDecl{{}},
		Params: []ir.Var{{Name: "data", Space: ir.ParamSpace, Type: ir.U64}, {Name: "n", Space: ir.ParamSpace, Type: ir.U32}},
		Vars:   []ir.Var{{Name: "own", Space: ir.LocalSpace, Type: ir.B64, Dims: []int{slots}, Align: 8}}}
	p := &program{Rand: rng, f: f, vars: map[ir.Type][]ir.Reg{}}
	tid, off := p.reg(ir.U32), p.reg(ir.U64)
	p.data, p.local = p.reg(ir.U64), p.reg(ir.U64)
	p.emit("ld.param.u64", ir.R(p.data), ir.AddrOf("data", 0))
	p.emit("mov.u32", ir.R(tid), ir.Operand{Kind: ir.SpecialOperand, Sym: "%tid.x"})
	p.emit("mul.wide.u32", ir.R(off), ir.R(tid), ir.Int(stride))
	p.emit("add.u64", ir.R(p.data), ir.R(p.data), ir.R(off))
	p.emit("mov.u64", ir.R(p.local), ir.Operand{Kind: ir.SymOperand, Sym: "own"})
	for i := range int64(slots) {
		p.emit("st.local.u64", ir.AddrOf("own", i*8), ir.Int(i*7))
	}
	for _, t := range []ir.Type{ir.U32, ir.S32, ir.U16, ir.U64, ir.F32, ir.F64} {
		for i := range 3 {
			r := p.reg(t)
			p.vars[t] = append(p.vars[t], r)
			if i == 0 {
				p.emit("mov."+t.String(), ir.R(r), p.literal(t))
			} else {
				p.emit("ld.global."+t.String(), ir.R(r), ir.Addr(p.data, int64(p.IntN(slots))*8))
			}
		}
	}
	for i := range 3 {
		r := p.reg(ir.Pred)
		p.vars[ir.Pred] = append(p.vars[ir.Pred], r)
		p.emit("setp.lt.u32", ir.R(r), ir.R(p.variable(ir.U32)), ir.Int(int64(i*1000)))
	}
	p.statements(8 + p.IntN(25))
	for i, t := range []ir.Type{ir.U32, ir.S32, ir.U16, ir.U64, ir.F32, ir.F64} {
		for _, r := range p.vars[t] {
			p.emit("st.global."+t.String(), ir.Addr(p.data, int64(slots+1+i)*8), ir.R(r))
			if p.IntN(2) == 0 {
				break
			}
		}
	}
	p.emit("ret")
	return &ir.Module{Version: ir.Version{Major: 7, Minor: 0}, Target: ir.Target{SM: 80}, AddressSize: 64, Funcs: []*ir.Func{f}}
}

// stride is the number of bytes of each thread.
const stride = (slots + 1 + 7) * 8
