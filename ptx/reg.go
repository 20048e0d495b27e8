package ptx

import "github.com/wavelane/wavelane/ptx/ir"

// Reg is a value of type T: the result of an instruction, which never changes, or an immediate.
type Reg[T Type] struct{ v *value }

func (r Reg[T]) arg(u *uses) ir.Operand { return u.read(r.v, typeOf[T]()) }

// Imm is the constant v. It takes no instruction, but for types that PTX has no literals for, such as F16.
func Imm[T Type](v T) Reg[T] { return Reg[T]{&value{bits: bitsOf(v)}} }

// ConstIn is the constant v for use in kernel k: an operation on constants alone has to know the kernel.
func ConstIn[T Type](k *Kernel, v T) Reg[T] { return Reg[T]{&value{bits: bitsOf(v), of: k}} }

// constant is the bits of an immediate.
func (r Reg[T]) constant() (bits uint64, ok bool) {
	if r.v == nil || r.v.k != nil {
		return 0, false
	}
	return r.v.bits, true
}

// inRegister is r, moved to a register if it is an immediate: for instructions that take none.
func inRegister[T Type](k *Kernel, r Reg[T]) Reg[T] {
	if bits, ok := r.constant(); ok {
		t := typeOf[T]()
		if t.held {
			return Reg[T]{k.move(&value{bits: bits}, t)}
		}
		return def[T](k, "mov."+moveType(t), r)
	}
	return r
}

// allInRegisters is inRegister for each.
func allInRegisters[T Type](k *Kernel, regs []Reg[T]) []Reg[T] {
	out := make([]Reg[T], len(regs))
	for i, r := range regs {
		out[i] = inRegister(k, r)
	}
	return out
}

// moveType is the type that mov takes for a value: f32 and f64 where the register is one, bits otherwise.
func moveType(t *typeInfo) string {
	if t.reg.IsFloat() {
		return t.reg.String()
	}
	return t.bits.String()
}

// Var is a mutable variable of type T in a register.
//
// What Get returns is valid until the next Set on any path; use after that is an error of Build ([Copy] keeps a value).
// So is a Get that a path without a Set leads to, and a Var that nobody reads.
type Var[T Type] struct {
	k    *Kernel
	reg  ir.Reg
	view int32 // that shows the variable as it is now,
	at   int   // in this region
}

// NewVar is a variable without value as yet.
func NewVar[T Type](k *Kernel) *Var[T] {
	v := &Var[T]{k: k, reg: k.fresh(typeOf[T]()).reg}
	r := &k.regs[v.reg]
	r.mutable, r.what = true, "variable"
	return v
}

// VarOf is a variable that begins as x.
func VarOf[T Type](k *Kernel, x Reg[T]) *Var[T] {
	v := NewVar[T](k)
	v.Set(x)
	return v
}

// Get is the present value. It takes no instruction.
func (v *Var[T]) Get() Reg[T] {
	k := v.k
	if v.view == 0 || v.at != k.region {
		v.show()
		k.body = append(k.body, instr{gens: []int32{v.view}})
	}
	return Reg[T]{v.shown()}
}

// show begins a view.
func (v *Var[T]) show() {
	v.k.views = append(v.k.views, v.reg)
	v.view, v.at = int32(len(v.k.views)-1), v.k.region
}

func (v *Var[T]) shown() *value {
	k := v.k
	return &value{k: k, reg: v.reg, scope: k.scopes[len(k.scopes)-1], view: v.view, def: -1}
}

// Set changes the value to that of a Reg[T] or a constant. It takes no instruction if x is the result of the instruction just before and used nowhere else.
func (v *Var[T]) Set(y any) {
	k := v.k
	x := lift[T](k, y)
	in := k.emit("mov."+moveType(typeOf[T]()), result{&value{k: k, reg: v.reg}}, x)
	if x.v != nil && x.v.k == k && x.v.view == 0 {
		in.assign = x.v
	}
	v.show()
	in.gens = append(in.gens, v.view)
}

// coalesce makes instructions write to the variables to which their results, not used otherwise, are moved right after
// them. body is changed; moves that are left over lose their Op.
func (k *Kernel) coalesce(body []instr) {
	for j := range body {
		x := body[j].assign
		if x == nil || x.def < 0 || x.def >= j || k.regs[x.reg].uses != 1 {
			continue
		}
		straight := true
		for _, between := range body[x.def+1 : j] {
			straight = straight && (between.Op == "" || between.assign != nil && between.assign.def == x.def)
		}
		from, to := &body[x.def], body[j].Args[0].Reg
		if !straight || from.Guard != body[j].Guard || from.writes(to) {
			continue
		}
		replaceReg(from.Args, x.reg, to)
		body[j].Op = ""
	}
}

// writes tells whether r is among the results.
func (in *instr) writes(r ir.Reg) bool {
	found := false
	in.Regs(func(s ir.Reg, role ir.Role) { found = found || s == r && role != ir.Read })
	return found
}

func replaceReg(ops []ir.Operand, from, to ir.Reg) {
	for i := range ops {
		if ops[i].Reg == from {
			ops[i].Reg = to
		}
		replaceReg(ops[i].Elems, from, to)
	}
}

// Copy is x in a register of its own: what was read from a [Var] then outlives its next Set.
func (x Reg[T]) Copy() Reg[T] { return x.op("mov." + moveType(typeOf[T]())) }

// U32 is a constant of type uint32.
func U32(n int) Reg[uint32] { return Imm(uint32(n)) }

// F32 is a constant of type float32.
func F32(x float64) Reg[float32] { return Imm(float32(x)) }
