package analyze

import (
	"strings"

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
			yes, no, apart := ways(guard, st.here)
			info.taken, info.passed, info.split = info.taken || yes, info.passed || no, max(info.split, apart)
			info.plain = (info.plain || info.visits == 1) && len(guard.c) == 1
			if !yes {
				return
			}
		} else {
			info.taken, info.passed, info.plain = true, true, false
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
	if l := max(cond.level(), a.level(), b.level()); l > perBlock {
		da, ba := a.from()
		db, bb := b.from()
		v := m.fresh(l, da || db, ba || bb)
		v.generic = a.generic
		return v
	}
	v := m.opaque("either", cond, a, b)
	v.generic = a.generic
	return v
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
		s.level, s.same, s.data, s.block = l, same, data, block
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
		s.kind = addressSymbol
		if v := m.vars[name]; v != nil {
			s.v, s.space, s.align = v, v.Space, int64(v.Alignment())
		} else {
			s.space = ir.ParamSpace
		}
	})
	return combine(of(s), constant(off), 1, 1)
}

// special is the value of a special register.
func (m *machine) special(name string) *vec {
	base, dim, _ := strings.Cut(name, ".")
	axis := strings.Index("xyz", dim)
	per := func(f func(t int) int64) *vec {
		c := make([]int64, m.threads)
		for t := range c {
			c[t] = f(t)
		}
		return &vec{c: shrink(c)}
	}
	uniform := func(block bool) *vec {
		return of(m.symbol(name, func(s *symbol) { s.kind, s.block = blockSymbol, block }))
	}
	lane := func(f func(lane int) uint32) *vec { return per(func(t int) int64 { return int64(int32(f(t % 32))) }) }
	switch base {
	case "%tid":
		return per(func(t int) int64 {
			return int64([]int{t % m.dims[0], t / m.dims[0] % m.dims[1], t / m.dims[0] / m.dims[1], 0}[axis])
		})
	case "%ntid":
		return constant(int64([]int{m.dims[0], m.dims[1], m.dims[2], 1}[axis]))
	case "%laneid":
		return per(func(t int) int64 { return int64(t % 32) })
	case "%warpid":
		return per(func(t int) int64 { return int64(t / 32) })
	case "%nwarpid":
		return uniform(false)
	case "%nctaid":
		if g := m.o.Grid; g[0] > 0 {
			return constant(int64(max(1, []int{g[0], g[1], g[2], 1}[axis])))
		}
		return uniform(false)
	case "%ctaid":
		if m.o.block != nil {
			return constant(int64([]int{m.o.block[0], m.o.block[1], m.o.block[2], 0}[axis]))
		}
		return uniform(true)
	case "%clusterid", "%cluster_ctaid", "%cluster_ctarank", "%smid":
		return uniform(true)
	case "%lanemask_eq":
		return lane(func(l int) uint32 { return 1 << l })
	case "%lanemask_lt":
		return lane(func(l int) uint32 { return 1<<l - 1 })
	case "%lanemask_le":
		return lane(func(l int) uint32 { return uint32(uint64(2)<<l - 1) })
	case "%lanemask_gt":
		return lane(func(l int) uint32 { return ^uint32(uint64(2)<<l - 1) })
	case "%lanemask_ge":
		return lane(func(l int) uint32 { return ^uint32(1<<l - 1) })
	case "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi":
		return m.fresh(perThread, true, false)
	}
	if strings.HasPrefix(base, "%pm") {
		return m.fresh(perThread, true, false)
	}
	return uniform(false)
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
		return unknown(a.level(), in.Space() != ir.ConstSpace)
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
	name := strings.TrimPrefix(b.name, "&")
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
	if v := m.symbolic(in, t, args); v != nil {
		return v
	}
	v := m.opaque(in.Opcode(), args...)
	m.reduceLanes(v, in, args)
	return v
}

// reduceLanes notes that x ∘ (x from the lane xor m) is the same in both lanes, if ∘ commutes: a butterfly of shuffles over all five
// masks makes a value that is the same in the whole warp.
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
			s.same |= b.symmetric() | p.by
			if s.same == 31 {
				s.level = perWarp
				v.known = false
			}
		}
	}
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

// product is a·b or a·b + c.
func (m *machine) product(in *ir.Instr, a []*vec) *vec {
	if in.Has(ir.Hi) {
		return nil
	}
	var p *vec
	switch {
	case a[1].isConst():
		p = scale(a[0], a[1].c)
	case a[0].isConst():
		p = scale(a[1], a[0].c)
	case a[0].level() == perBlock && a[1].level() == perBlock:
		p = m.opaque("·", a[0], a[1])
	default:
		// (c + s)·(d + r) where only one factor differs from thread to thread: c·(d + r) + s·(d + r), with s·r as a symbol.
		x, y := a[0], a[1]
		if x.level() == perBlock {
			x, y = y, x
		}
		if y.level() > perBlock {
			return nil
		}
		p = scale(y, x.c)
		for _, t := range x.terms {
			if t.sym.level != perBlock {
				return nil
			}
			p = combine(p, scale(m.opaque("·", of(t.sym), y), t.k), 1, 1)
		}
	}
	if len(a) == 3 {
		p = combine(p, a[2], 1, 1)
	}
	return p
}

// quotient is a/n where all symbols' factors are multiples of n.
func (m *machine) quotient(a *vec, n int64) *vec {
	out := &vec{c: zip(a.c, []int64{n}, func(x, n int64) int64 { return (x - ((x%n)+n)%n) / n })}
	for _, t := range a.terms {
		for _, k := range t.k {
			if k%n != 0 {
				return nil
			}
		}
		out.terms = append(out.terms, term{t.sym, zip(t.k, []int64{n}, func(x, n int64) int64 { return x / n })})
	}
	return out
}

// lowBits is a mod n, a power of two, where all symbols' factors are multiples of it.
func lowBits(a *vec, n int64) *vec {
	if a.aligned()%n != 0 {
		return nil
	}
	return &vec{c: zip(a.c, []int64{n - 1}, func(x, y int64) int64 { return x & y })}
}

// bitwise is a bit operation of a sum of symbols and a number whose bits lie below what the symbols are multiples of.
func bitwise(op ir.Op, a, b *vec) *vec {
	if a.isConst() {
		a, b = b, a
	}
	if !b.isConst() {
		return nil
	}
	low := a.aligned() - 1
	if op == "and" {
		keep, ok := b.scalar()
		switch {
		case !ok:
			for _, x := range b.c {
				if x&^low != 0 {
					return nil
				}
			}
			return &vec{c: zip(a.c, b.c, func(x, y int64) int64 { return x & y })}
		case keep >= 0 && keep&^low == 0:
			return &vec{c: zip(a.c, b.c, func(x, y int64) int64 { return x & y })}
		case keep < 0 && ^keep&^low == 0: // clears low bits
			return &vec{terms: a.terms, c: zip(a.c, b.c, func(x, y int64) int64 { return x & y }), generic: a.generic}
		}
		return nil
	}
	for _, x := range b.c {
		if x&^low != 0 {
			return nil
		}
	}
	f := func(x, y int64) int64 { return x ^ y }
	if op == "or" {
		f = func(x, y int64) int64 { return x | y }
	}
	return &vec{terms: a.terms, c: zip(a.c, b.c, f), generic: a.generic}
}

// logic is an operation on predicates.
func (m *machine) logic(in *ir.Instr, a []*vec) *vec {
	if in.Op == "not" && len(a) == 1 {
		return combine(constant(1), a[0], 1, -1)
	}
	if len(a) != 2 {
		return nil
	}
	return m.both(in.Op, a)
}

// both is and, or, xor of two predicates. Where one is known, in some threads, the result is known or the other.
func (m *machine) both(op ir.Op, a []*vec) *vec {
	for n := range 2 {
		if !a[n].isConst() {
			continue
		}
		yes := make([]bool, m.threads)
		for t := range yes {
			yes[t] = at(a[n].c, t) != 0
		}
		switch op {
		case "and":
			return pick(yes, a[1-n], constant(0))
		case "or":
			return pick(yes, constant(1), a[1-n])
		case "xor":
			return pick(yes, combine(constant(1), a[1-n], 1, -1), a[1-n])
		}
	}
	v := m.opaque(string(op), a...)
	for _, x := range a {
		if s := x.only(); s != nil && op == "and" {
			v.only().few = v.only().few || s.few
		}
	}
	v.only().kind = conditionValue
	return v
}

// comparisons are those of setp, as one of three with a sign.
var comparisons = map[ir.Mod]struct {
	name string
	not  bool
}{"lt": {"<", false}, "lo": {"<", false}, "ge": {"<", true}, "hs": {"<", true}, "le": {"<=", false}, "ls": {"<=", false},
	"gt": {"<=", true}, "hi": {"<=", true}, "eq": {"=", false}, "ne": {"=", true}}

// compared is setp of integers, with a third operand or without.
func (m *machine) compared(in *ir.Instr, a []*vec) *vec {
	v := m.compare(in, a[0], a[1])
	if v == nil || len(a) == 2 {
		return v
	}
	return m.both(ir.Op(in.First("and", "or", "xor")), []*vec{v, a[2]})
}

// compare is a comparison of integers.
func (m *machine) compare(in *ir.Instr, a, b *vec) *vec {
	c, ok := comparisons[in.First("lt", "lo", "ge", "hs", "le", "ls", "gt", "hi", "eq", "ne")]
	if !ok {
		return nil
	}
	if in.Type(0).IsFloat() {
		if c.name != "=" {
			return nil
		}
		v := m.opaque("=f", a, b)
		v.only().few = v.level() > perBlock
		if c.not {
			return combine(constant(1), v, 1, -1)
		}
		return v
	}
	d := combine(a, b, 1, -1)
	if d.isConst() {
		test := map[string]func(x, _ int64) int64{
			"<": func(x, _ int64) int64 { return bit(x < 0) }, "<=": func(x, _ int64) int64 { return bit(x <= 0) },
			"=": func(x, _ int64) int64 { return bit(x == 0) }}[c.name]
		v := &vec{c: zip(d.c, zero, test)}
		if c.not {
			return combine(constant(1), v, 1, -1)
		}
		return v
	}
	if in.Op == "setp" && in.Type(0).Class() == ir.Unsigned && c.name == "<" {
		if n, known := b.scalar(); known && n == 0 {
			return constant(bit(c.not)) // nothing is less than 0
		}
	}
	v := m.opaque(c.name, d)
	s := v.only()
	s.kind = conditionValue
	s.few = s.few || c.name == "=" && d.level() > perBlock
	if c.not {
		return combine(constant(1), v, 1, -1)
	}
	return v
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
