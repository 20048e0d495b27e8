package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// value is the result of a pure instruction with one destination.
func (m *machine) value(st *state, in *ir.Instr) *vec {
	t := in.Type(0)
	from := t
	if in.Op == "cvt" {
		from = in.Type(1)
	}
	args := make([]*vec, 0, 4)
	known := true
	for i := range in.Args[1:] {
		o := &in.Args[1+i]
		if o.Kind == ir.VecOperand {
			v := constant(0)
			for _, e := range o.Elems {
				x := m.operand(st, &e, ir.B32)
				v = m.opaque("pack", v, x)
			}
			args, known = append(args, v), false
			continue
		}
		at := from
		switch {
		case (in.Op == "selp" || in.Op == "setp" || in.Op == "set") && i == 2:
			at = ir.Pred
		case (in.Op == "shl" || in.Op == "shr" || in.Op == "shf" || in.Op == "bfe" || in.Op == "bfi") && i >= 1:
			if in.Op != "bfi" || i >= 2 {
				at = ir.U32
			}
		case in.Has(ir.Wide) && i == 2:
			at = wider(t)
		}
		v := m.operand(st, o, at)
		known = known && v.isConst()
		args = append(args, v)
	}
	if known && in.Op != "cvta" {
		if v := m.evaluate(in, args); v != nil {
			return v
		}
	}
	var v *vec
	if !m.exchange(in, args) {
		v = m.symbolic(in, t, args)
	}
	if v == nil {
		v = m.opaque(in.Opcode(), args...)
		m.reduceLanes(v, in, args)
	}
	return v
}

// exchange tells whether an integer addition is a step of a butterfly of shuffles. As a sum, the result would not show that two lanes have
// the same.
func (m *machine) exchange(in *ir.Instr, args []*vec) bool {
	if in.Op != "add" || len(args) != 2 {
		return false
	}
	for n, a := range args {
		if p := a.only(); p != nil && p.partner != nil && m.equal(p.partner, args[1-n]) {
			return true
		}
	}
	return false
}

// reduceLanes notes that x ∘ (x from the lane xor m) is the same in both lanes, if ∘ commutes: a butterfly of shuffles over all
// five masks makes a value that is the same in the whole warp.
func (m *machine) reduceLanes(v *vec, in *ir.Instr, args []*vec) {
	s := v.only()
	switch in.Op {
	case "add", "min", "max", "mul", "and", "or", "xor":
	default:
		return
	}
	if s == nil || len(args) != 2 || s.level != perThread {
		return
	}
	for n, a := range args {
		b := args[1-n]
		if p := a.only(); p != nil && p.partner != nil && m.equal(p.partner, b) {
			v.agrees(b.symmetric() | p.by)
		}
	}
}

// agrees notes that the value, a symbol, is the same in lanes that differ by these masks.
func (v *vec) agrees(masks uint8) {
	s := v.only()
	if s.same |= masks; s.same == 31 {
		s.level = perWarp
		v.known = false
	}
}

// noteDecision notes that a comparison is of a value with that of another lane.
func (m *machine) noteDecision(v, a, b *vec, equal bool) {
	if len(v.terms) != 1 {
		return
	}
	for _, pair := range [][2]*vec{{a, b}, {b, a}} {
		if p := pair[0].only(); p != nil && p.partner != nil && m.equal(p.partner, pair[1]) {
			s := v.terms[0].sym
			s.decides, s.strict = p.by, !equal
		}
	}
}

// decision tells of a condition that it compares values with those of the lane xor by, and nothing else. Numbers of lanes, too, may be
// such values: then the condition is known, in some threads.
func (m *machine) decision(v *vec) (by uint8, strict bool) {
	for _, t := range v.terms {
		if t.sym.decides == 0 || by != 0 && t.sym.decides != by {
			return 0, false
		}
		if slices.Min(t.k) < 0 && slices.Max(t.k) > 0 { // turned round in some lanes, to sort them
			return 0, false
		}
		by, strict = t.sym.decides, strict || t.sym.strict
	}
	return by, strict
}

// chooseLane notes that a choice is between a value and the same of another lane, decided by comparing the two: as in add, min or max, both
// lanes have the same afterwards.
func (m *machine) chooseLane(v, cond, a, b *vec) {
	s := v.only()
	by, strict := m.decision(cond)
	if by == 0 || s == nil {
		return
	}
	var own *vec
	for _, x := range []*vec{a, b} {
		switch p := x.only(); {
		case p != nil && p.partner != nil && p.by == by:
			own = p.partner
		case p != nil && p.chosen != nil && p.by == by:
			own = p.chosen
		}
	}
	if own == nil && a.isConst() { // numbers of lanes
		own = a
	}
	for _, x := range []*vec{a, b} {
		p := x.only()
		other := p != nil && p.by == by && (p.partner != nil && m.equal(p.partner, own) || p.chosen != nil && m.equal(p.chosen, own))
		if own == nil || !other && !m.equal(x, own) && !m.swapped(x, own, int(by)) {
			return
		}
	}
	s.chosen, s.by = own, by
	if strict {
		v.agrees(own.symmetric() | by)
	}
}

// swapped tells whether a known value is another one, taken from the lane xor by.
func (m *machine) swapped(a, b *vec, by int) bool {
	moved := m.moved(b, func(l int) int { return l ^ by })
	return moved != nil && m.equal(a, moved)
}

func (m *machine) equal(a, b *vec) bool {
	for t := range m.threads {
		if !equalAt(a, b, t) {
			return false
		}
	}
	return true
}

func wider(t ir.Type) ir.Type {
	switch t {
	case ir.U16:
		return ir.U32
	case ir.S16:
		return ir.S32
	case ir.U32:
		return ir.U64
	}
	return ir.S64
}

// resultType is that of an instruction's destination.
func resultType(in *ir.Instr) ir.Type {
	t := in.Type(0)
	switch {
	case in.Op == "setp" || in.Op == "testp":
		return ir.Pred
	case in.Has(ir.Wide):
		return wider(t)
	case in.Op == "popc" || in.Op == "clz" || in.Op == "bfind":
		return ir.U32
	}
	return t
}

// evaluate computes with numbers that are known; nil if package eval does not have the instruction.
func (m *machine) evaluate(in *ir.Instr, args []*vec) *vec {
	f, err := eval.Of(in)
	if err != nil || len(args) > 4 {
		if in.Op == "mov" && len(args) == 1 {
			return args[0]
		}
		return nil
	}
	n := 1
	for _, a := range args {
		n = max(n, len(a.c))
	}
	width := resultType(in).Bits()
	widths := [4]int{}
	for i := range args {
		widths[i] = 64
		if o := &in.Args[1+i]; o.Kind == ir.RegOperand {
			widths[i] = m.f.Regs[o.Reg].Type.Bits()
		}
	}
	c := make([]int64, n)
	for t := range c {
		var a [4]uint64
		for i, v := range args {
			a[i] = uint64(at(v.c, t))
			if widths[i] < 64 {
				a[i] &= 1<<widths[i] - 1
			}
		}
		c[t] = signExtend(f(a[0], a[1], a[2], a[3]), width)
	}
	return &vec{c: shrink(c)}
}

// symbolic computes with sums of symbols; nil if the result is none. Sums are taken not to overflow: they are indices.
func (m *machine) symbolic(in *ir.Instr, t ir.Type, a []*vec) *vec {
	if in.Op == "mov" && len(a) == 1 {
		return a[0]
	}
	if in.Op == "setp" {
		return m.compared(in, a)
	}
	if in.Op == "selp" && len(a) == 3 {
		if a[2].isConst() {
			yes := make([]bool, m.threads)
			for t := range yes {
				yes[t] = at(a[2].c, t) != 0
			}
			return pick(yes, a[0], a[1])
		}
		return m.either(a[2], a[0], a[1])
	}
	if t == ir.Pred {
		return m.logic(in, a)
	}
	if t.IsFloat() || t.Bits() < 32 && in.Op != "cvt" {
		return nil
	}
	switch in.Op {
	case "cvta":
		v := *a[0]
		if in.Has(ir.To) {
			v.generic = ir.NoSpace
		} else {
			v.generic = in.Space()
		}
		return &v
	case "cvt":
		if s := in.Type(1); t.Bits() >= 32 && s.Bits() >= 32 && !s.IsFloat() && s != ir.NoType && !in.Has(ir.Sat) {
			return a[0]
		}
	case "neg":
		return combine(constant(0), a[0], 1, -1)
	case "not":
		return combine(constant(-1), a[0], 1, -1)
	case "add":
		return combine(a[0], a[1], 1, 1)
	case "sub":
		return combine(a[0], a[1], 1, -1)
	case "mul", "mad", "mul24", "mad24":
		return m.product(in, a)
	case "shl":
		if n, ok := a[1].scalar(); ok && n >= 0 && n < 64 {
			return scale(a[0], []int64{1 << n})
		}
	case "shr":
		if n, ok := a[1].scalar(); ok && n >= 0 && n < 63 {
			return m.quotient(a[0], 1<<n)
		}
	case "div":
		if n, ok := a[1].scalar(); ok && n > 0 {
			return m.quotient(a[0], n)
		}
	case "rem":
		if n, ok := a[1].scalar(); ok && n > 0 && n&(n-1) == 0 {
			return lowBits(a[0], n)
		}
	case "and", "or", "xor":
		return bitwise(in.Op, a[0], a[1])
	}
	return nil
}
