package analyze

import (
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// step walks one instruction that neither branches nor leaves.
func (m *machine) step(st *state, i int) {
	in := &m.f.Body[i]
	here, frames := st.here, st.frames
	var guard *vec
	if in.Guard.Reg != 0 {
		guard = m.guard(st, in)
		info := &m.seen.guards[i]
		info.visits++
		if guard.isConst() {
			here = under(guard, st.here)
			yes, _, apart := ways(guard, st.here)
			info.taken, info.split = info.taken || yes, max(info.split, apart)
			info.plain = (info.plain || info.visits == 1) && len(guard.c) == 1
			if !yes {
				return
			}
		} else {
			info.taken, info.plain = true, false
			cond, side := m.condition(guard)
			info.split = max(info.split, cond.level)
			for _, f := range frames {
				if f.cond == cond && f.side == -side && cond.level == perBlock {
					return
				}
			}
			frames = append(frames[:len(frames):len(frames)], frame{cond: cond, side: side, join: -1})
			here = under(guard, st.here)
		}
	}
	m.count(i, here)
	m.effects(st, i, here, frames)
	m.keep(st, in, guard)
	m.results(st, i, guard)
}

// set writes a register.
func (m *machine) set(st *state, r ir.Reg, v, guard *vec) {
	old := st.regs[r]
	if guard != nil && old != nil {
		v = m.guarded(guard, v, old)
	}
	st.regs[r] = v
}

// guarded is v where the guard holds and old elsewhere.
func (m *machine) guarded(guard, v, old *vec) *vec {
	if !guard.isConst() {
		return m.either(guard, v, old)
	}
	yes := make([]bool, m.threads)
	for t := range yes {
		yes[t] = at(guard.c, t) != 0
	}
	return pick(yes, v, old)
}

// either is one of two values by a condition that is not known.
func (m *machine) either(cond, a, b *vec) *vec {
	same := true
	for t := range m.threads {
		same = same && equalAt(a, b, t)
	}
	if same {
		return a
	}
	v := m.oneOf(cond, a, b)
	v.generic = a.generic
	yes, known1 := a.scalar()
	no, known2 := b.scalar()
	if known1 && known2 {
		v.truth, v.yes, v.no = cond, yes, no
	}
	return v
}

// oneOf is one of two values that differ.
func (m *machine) oneOf(cond, a, b *vec) *vec {
	if l := max(cond.level(), a.level(), b.level()); l > perBlock {
		da, ba := a.from()
		db, bb := b.from()
		v := m.fresh(l, da || db, ba || bb)
		v.only().args = []*vec{cond, a, b}
		m.chooseLane(v, cond, a, b)
		return v
	}
	return m.opaque("either", cond, a, b)
}

// opaque is a function of values about which nothing is known but that equal values give an equal one.
func (m *machine) opaque(op string, args ...*vec) *vec {
	l, same, data, block := perBlock, uint8(31), false, false
	key := append([]byte(op), '(')
	for _, a := range args {
		l = max(l, a.level())
		same &= a.symmetric()
		d, b := a.from()
		data, block = data || d, block || b
		key = append(a.key(key), ',')
	}
	return of(m.symbol(string(key), func(s *symbol) {
		s.level, s.same, s.data, s.block, s.args = l, same, data, block, args
		if same == 31 && l == perThread {
			s.level = perWarp
		}
	}))
}

// operand is the value of a source operand, for an instruction of a type.
func (m *machine) operand(st *state, o *ir.Operand, t ir.Type) *vec {
	switch o.Kind {
	case ir.RegOperand:
		v := st.regs[o.Reg]
		if v == nil {
			v = m.fresh(perThread, false, false)
			st.regs[o.Reg] = v
		}
		if o.Not {
			return combine(constant(1), v, 1, -1)
		}
		return v
	case ir.IntOperand, ir.F32Operand, ir.F64Operand:
		if o.Kind == ir.IntOperand && !t.IsFloat() {
			return constant(signExtend(o.Bits, t.Bits()))
		}
		return constant(signExtend(eval.Immediate(*o, t), t.Bits()))
	case ir.SpecialOperand:
		return m.special(o.Sym)
	case ir.SymOperand:
		return m.addressOf(o.Sym, o.Off)
	}
	return m.fresh(perThread, true, false)
}

// signExtend gives bits of a width as a number; 0 stands for 64.
func signExtend(b uint64, width int) int64 {
	if width <= 1 && width > 0 {
		return int64(b & 1)
	}
	if width == 0 || width >= 64 {
		return int64(b)
	}
	return int64(b<<(64-width)) >> (64 - width)
}

func (m *machine) addressOf(name string, off int64) *vec {
	s := m.symbol("&"+name, func(s *symbol) {
		s.kind, s.name = addressSymbol, name
		if v := m.vars[name]; v != nil {
			s.v, s.space, s.align = v, v.Space, int64(v.Alignment())
		} else {
			s.space = ir.ParamSpace
		}
	})
	return combine(of(s), constant(off), 1, 1)
}

// pure tells instructions whose results depend on their operands alone.
func pure(k ir.Kind) bool { return k == ir.Arithmetic || k == ir.Move || k == ir.SetPred }

// results writes what an instruction leaves in registers.
func (m *machine) results(st *state, i int, guard *vec) {
	in := &m.f.Body[i]
	k := in.Kind()
	if pure(k) && len(in.Args) > 1 {
		m.pure(st, in, guard)
		return
	}
	var outs []*ir.Operand
	for a := range in.Args {
		if in.Role(a) != ir.Read && in.Args[a].Kind != ir.AddrOperand {
			outs = append(outs, &in.Args[a])
		}
	}
	if len(outs) == 0 {
		return
	}
	value := m.loaded(st, in, k)
	for _, o := range outs {
		part := 0
		o.Regs(func(r ir.Reg) { m.set(st, r, value(part), guard); part++ })
	}
}

// loaded tells what comes out of an instruction that is not pure, for each of its results.
func (m *machine) loaded(st *state, in *ir.Instr, k ir.Kind) func(part int) *vec {
	unknown := func(l level, data bool) func(int) *vec {
		return func(int) *vec { return m.fresh(l, data, false) }
	}
	switch k {
	case ir.Load:
		a := m.address(st, in)
		if a == nil {
			return unknown(perThread, true)
		}
		if b := a.base(); b != nil && b.space == ir.ParamSpace || in.Space() == ir.ParamSpace {
			return func(part int) *vec { return m.param(combine(a, constant(int64(part*in.Type(0).Size())), 1, 1)) }
		}
		if _, local, _ := localPlace(a); local {
			return func(part int) *vec {
				if v := m.recall(st, in, a, part); v != nil {
					return v
				}
				return m.fresh(perThread, true, false)
			}
		}
		return func(int) *vec { // from one place comes one value
			v := m.fresh(a.level(), in.Space() != ir.ConstSpace, false)
			v.only().args = []*vec{a}
			return v
		}
	case ir.WarpSync:
		return m.exchanged(st, in)
	case ir.Carry, ir.Matrix, ir.Mbarrier:
		l := perThread
		if in.Op == "mbarrier.test_wait" || in.Op == "mbarrier.try_wait" {
			l = m.addressLevel(st, in)
		}
		return unknown(l, k != ir.Carry)
	case ir.Barrier: // bar.red
		return unknown(perBlock, true)
	case ir.Fetch: // a policy
		return unknown(perBlock, false)
	}
	return unknown(perThread, true)
}

func (m *machine) addressLevel(st *state, in *ir.Instr) level {
	if a := m.address(st, in); a != nil {
		return a.level()
	}
	return perThread
}

// param is the value of a parameter, by its address.
func (m *machine) param(a *vec) *vec {
	b := a.base()
	if b == nil {
		return m.fresh(a.level(), false, false)
	}
	off, ok := a.offset(b, 0)
	if !ok || len(a.c) > 1 {
		return m.fresh(a.level(), false, false)
	}
	name := b.name
	var v *ir.Var
	for i := range m.f.Params {
		if m.f.Params[i].Name == name {
			v = &m.f.Params[i]
		}
	}
	if v == nil {
		return m.fresh(perThread, true, false) // of a call
	}
	if n, given := m.o.Params[name]; given && off == 0 && v.Dims == nil {
		return constant(signExtend(n, v.Type.Bits()))
	}
	key := name
	if off != 0 {
		key += "+" + itoa(off)
	}
	return of(m.symbol(key, func(s *symbol) {
		s.kind, s.v = paramSymbol, v
		if v.Ptr || v.Type.Bits() == 64 && !v.Type.IsFloat() && m.pointers()[name] {
			s.align = max(256, int64(v.PtrAlign)) // as allocators give it
		}
	}))
}

// exchanged tells what lanes get from each other.
func (m *machine) exchanged(st *state, in *ir.Instr) func(int) *vec {
	warp := func(int) *vec { return m.fresh(perWarp, true, false) }
	thread := func(int) *vec { return m.fresh(perThread, true, false) }
	switch in.Op {
	case "vote", "vote.sync", "redux.sync", "activemask", "match.all.sync":
		return warp
	case "elect.sync":
		return func(part int) *vec {
			if part == 0 && in.Args[0].Kind == ir.PairOperand && len(in.Args[0].Elems) == 2 && in.Args[0].Elems[0].Reg != 0 {
				return m.fresh(perWarp, true, false)
			}
			v := m.fresh(perThread, false, false)
			v.only().few = true
			return v
		}
	case "shfl", "shfl.sync":
		if len(in.Args) < 3 {
			return thread
		}
		x := m.operand(st, &in.Args[1], ir.B32)
		if x.level() < perThread {
			return func(part int) *vec {
				if part == 0 {
					return x
				}
				return m.fresh(perThread, false, false)
			}
		}
		lane := m.operand(st, &in.Args[2], ir.U32)
		by, known := lane.scalar()
		data, block := x.from()
		switch {
		case in.Has("bfly") && known:
			return func(part int) *vec {
				if part > 0 {
					return m.fresh(perThread, false, false)
				}
				if v := m.moved(x, func(l int) int { return l ^ int(by) }); v != nil {
					return v
				}
				return of(m.symbol("", func(s *symbol) {
					s.level, s.data, s.block, s.partner, s.by, s.same = perThread, data, block, x, uint8(by&31), x.symmetric()
				}))
			}
		case in.Has("idx") && lane.level() < perThread && wholeWarp(in):
			return func(part int) *vec {
				if v := m.moved(x, func(int) int { return int(by) & 31 }); v != nil && known && part == 0 {
					return v
				}
				return m.fresh(perWarp, data, block)
			}
		}
	}
	return thread
}

// wholeWarp tells whether a shuffle's segments are whole warps: the clamp operand says so.
func wholeWarp(in *ir.Instr) bool {
	return len(in.Args) > 3 && in.Args[3].Kind == ir.IntOperand && in.Args[3].Bits&0x1f00 == 0
}

// moved is a known value that each lane takes from another; nil if the value is not known.
func (m *machine) moved(x *vec, from func(lane int) int) *vec {
	if !x.isConst() {
		return nil
	}
	c := make([]int64, m.threads)
	for t := range c {
		c[t] = at(x.c, min(m.threads-1, t&^31|from(t&31)&31))
	}
	return &vec{c: shrink(c)}
}

// pure walks an instruction that only computes.
func (m *machine) pure(st *state, in *ir.Instr, guard *vec) {
	dst := &in.Args[0]
	if dst.Kind == ir.VecOperand { // mov.b64 {a, b}, c
		v := m.operand(st, &in.Args[1], in.Type(0))
		width := in.Type(0).Bits() / max(1, len(dst.Elems))
		for n, e := range dst.Elems {
			if e.Kind != ir.RegOperand {
				continue
			}
			part := m.opaque("part"+itoa(int64(n)), v)
			if v.isConst() {
				part = &vec{c: zip(v.c, zero, func(x, _ int64) int64 { return signExtend(uint64(x)>>(n*width), width) })}
			}
			m.set(st, e.Reg, part, guard)
		}
		return
	}
	if dst.Kind == ir.PairOperand {
		a, b := m.pair(st, in)
		for n, v := range []*vec{a, b} {
			if n < len(dst.Elems) && dst.Elems[n].Kind == ir.RegOperand {
				m.set(st, dst.Elems[n].Reg, v, guard)
			}
		}
		return
	}
	if dst.Kind != ir.RegOperand {
		return
	}
	m.set(st, dst.Reg, m.value(st, in), guard)
}

// pair is the result of setp with two destinations.
func (m *machine) pair(st *state, in *ir.Instr) (a, b *vec) {
	one := *in
	one.Args = append([]ir.Operand{in.Args[0].Elems[0]}, in.Args[1:]...)
	a = m.value(st, &one)
	if len(in.Args) == 3 {
		return a, combine(constant(1), a, 1, -1)
	}
	return a, m.opaque("second", a)
}

func itoa(n int64) string {
	if n < 0 {
		return "-" + itoa(-n)
	}
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}
