package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// access is one execution of an instruction that touches memory, by all threads of the block.
type access struct {
	instr  int
	write  bool
	atomic bool // or volatile, relaxed, acquire, release: no race with its like
	issued bool // the beginning of an asynchronous write
	landed bool // its end
	addr   *vec
	base   *symbol
	space  ir.Space
	size   int // bytes per thread
	here   []presence
	frames []frame
	epoch  int
	values []*vec // that are stored
	rows   bool   // of stmatrix: rows that a warp stores to one place are taken for the same, as lanes often have the same values
	cells  map[cell]struct{}
}

// cell is a word or byte of memory, as far as it is known.
type cell struct {
	signature uint64
	unit      int64
}

// entry is a list of accesses, latest first.
type entry struct {
	a    *access
	prev *entry
	// under are conditions under which no barrier has come since, where ways of which some have met one were joined.
	under []frame
}

// pending is the access with the conditions under which no barrier has come since.
func (e *entry) pending() *access {
	if len(e.under) == 0 {
		return e.a
	}
	a := *e.a
	a.frames = append(slices.Clip(a.frames), e.under...)
	return &a
}

// mergeLogs is the union of the logs of two states. What is in one only has come by its way alone.
func mergeLogs(x, y *state) *entry {
	a, b := x.log, y.log
	if a == b {
		return a
	}
	inA, inB := map[*access]*entry{}, map[*access]*entry{}
	for e := a; e != nil; e = e.prev {
		inA[e.a] = e
	}
	tail := b // what both have
	for ; tail != nil && inA[tail.a] != tail; tail = tail.prev {
		inB[tail.a] = tail
	}
	var list []*entry // of b, then of a, without the tail
	for e := b; e != tail; e = e.prev {
		if inA[e.a] == nil {
			list = append(list, &entry{a: e.a, under: alone(e, y, x)})
		}
	}
	mine := len(list)
	var old []*entry
	for e := a; e != tail; e = e.prev {
		n := &entry{a: e.a}
		old = append(old, e)
		if other := inB[e.a]; other == nil {
			n.under = alone(e, x, y)
		} else {
			n.under = common(e.under, other.under)
		}
		list = append(list, n)
	}
	for i, e := range slices.Backward(list) {
		if i >= mine && old[i-mine].prev == tail && len(old[i-mine].under) == len(e.under) {
			tail = old[i-mine]
			continue
		}
		e.prev = tail
		tail = e
	}
	return tail
}

// alone are the conditions of an entry that state of has, and other has not.
func alone(e *entry, of, other *state) []frame {
	under := slices.Clip(e.under)
	for _, f := range of.frames {
		same := func(g frame) bool { return g.cond == f.cond && g.side == f.side }
		if f.side != 0 && !slices.ContainsFunc(other.frames, same) && !slices.ContainsFunc(under, same) &&
			!slices.ContainsFunc(e.a.frames, same) {
			under = append(under, frame{cond: f.cond, side: f.side})
		}
	}
	return under
}

// common are the conditions that are in both lists.
func common(a, b []frame) []frame {
	var both []frame
	for _, f := range a {
		if slices.ContainsFunc(b, func(g frame) bool { return g.cond == f.cond && g.side == f.side }) {
			both = append(both, f)
		}
	}
	return both
}

// address is the first address that an instruction has.
func (m *machine) address(st *state, in *ir.Instr) *vec {
	for i := range in.Args {
		if o := &in.Args[i]; o.Kind == ir.AddrOperand {
			return m.addressIn(st, o)
		}
	}
	return nil
}

func (m *machine) addressIn(st *state, o *ir.Operand) *vec {
	switch {
	case o.Reg != 0:
		v := st.regs[o.Reg]
		if v == nil {
			v = m.fresh(perThread, false, false)
			st.regs[o.Reg] = v
		}
		return combine(v, constant(o.Off), 1, 1)
	case o.Sym != "":
		return m.addressOf(o.Sym, o.Off)
	}
	return constant(o.Off)
}

// effects walks what an instruction does to memory and to other threads.
func (m *machine) effects(st *state, i int, here []presence, frames []frame) {
	in := &m.f.Body[i]
	a := &access{instr: i, here: here, frames: frames, epoch: st.epoch, space: in.Space(), size: in.Type(0).Size() * in.Width()}
	strong := in.First(ir.Volatile, ir.Relaxed, ir.Acquire, ir.Release) != "" || in.Has("mmio")
	switch in.Kind() {
	case ir.Load:
		if in.Op != "ld" || a.space == ir.ParamSpace {
			return
		}
		a.atomic = strong
	case ir.Store:
		if in.Op != "st" || a.space == ir.ParamSpace {
			return
		}
		a.write, a.atomic = true, strong
		a.values = m.stored(st, in)
	case ir.Atomic:
		if in.Op != "atom" && in.Op != "red" {
			return
		}
		a.write, a.atomic = true, true
	case ir.Matrix:
		if in.Op != "ldmatrix" && in.Op != "stmatrix" {
			return
		}
		a.write, a.size, a.space, a.values = in.Op == "stmatrix", 16, ir.SharedSpace, []*vec{m.fresh(perThread, true, false)}
		a.here = slices.Clone(here)
		a.rows = a.write
		lanes := map[ir.Mod]int{ir.X1: 8, ir.X2: 16, ir.X4: 32}[in.First(ir.X1, ir.X2, ir.X4)]
		for t := range a.here {
			if t%32 >= lanes {
				a.here[t] = absent
			}
		}
	case ir.Async:
		m.asyncEffects(st, i, here, frames)
		return
	case ir.Barrier:
		m.barrier(st, i)
		return
	case ir.WarpSync:
		if in.Op == "bar.warp.sync" {
			st.epoch++
		}
		return
	case ir.Mbarrier: // made by a plain write, used by atomic operations
		a.size, a.space, a.values = 8, ir.SharedSpace, []*vec{m.fresh(perThread, true, false)}
		a.write = in.Op == "mbarrier.init" || in.Op == "mbarrier.inval"
		a.atomic = !a.write
		a.addr = m.address(st, in)
		m.touch(st, a)
		if in.Op == "mbarrier.test_wait" || in.Op == "mbarrier.try_wait" {
			m.synchronise(st)
		}
		return
	case ir.Call:
		if m.localEscapes() {
			st.local = nil
		}
		m.synchronise(st)
		return
	case ir.System:
		if in.Op == "setmaxnreg" && len(in.Args) == 1 {
			for t, h := range here {
				if h != absent {
					st.maxreg[t/32] = int(in.Args[0].Bits)
				}
			}
		}
		return
	default:
		return
	}
	a.addr = m.address(st, in)
	m.touch(st, a)
}

// stored are the values that a store writes, those in registers.
func (m *machine) stored(st *state, in *ir.Instr) (values []*vec) {
	in.Args[len(in.Args)-1].Regs(func(r ir.Reg) {
		if st.regs[r] == nil {
			st.regs[r] = m.fresh(perThread, false, false)
		}
		values = append(values, st.regs[r])
	})
	return values
}

// agree tells whether two threads that execute one instruction store the same values, as far as can be seen.
func agree(a *access, t int, b *access, u int) bool {
	if a.rows {
		return a == b && t/32 == u/32
	}
	for i, v := range a.values {
		work := 256
		if (v.level() > perBlock || b.values[i].level() > perBlock) && (a != b || !v.same(t, u, &work)) {
			return false
		}
	}
	return true
}

// same tells whether the value is certainly the same in threads t and u. It looks at so much work.
func (v *vec) same(t, u int, work *int) bool {
	if *work--; *work < 0 || at(v.c, t) != at(v.c, u) {
		return false
	}
	for _, e := range v.terms {
		s := e.sym
		switch {
		case at(e.k, t) != at(e.k, u):
			return false
		case at(e.k, t) == 0 || s.level == perBlock || t/32 == u/32 && (s.level == perWarp || uint8(t^u)&^s.same == 0):
		case s.partner != nil:
			if !s.partner.same(t^int(s.by), u^int(s.by), work) {
				return false
			}
		case s.args == nil:
			return false
		default:
			for _, a := range s.args {
				if !a.same(t, u, work) {
					return false
				}
			}
		}
	}
	return true
}

// touch notes an access.
func (m *machine) touch(st *state, a *access) {
	if a.addr == nil {
		return
	}
	m.seen.addresses[a.instr] = a.addr
	a.base = a.addr.base()
	if a.space == ir.NoSpace && a.base != nil {
		switch {
		case a.base.kind == addressSymbol:
			a.space = a.base.space
		case a.base.kind == paramSymbol:
			a.space = ir.GlobalSpace
		}
	}
	m.measure(a)
	if a.base == nil || a.space != ir.SharedSpace && a.space != ir.GlobalSpace {
		return
	}
	if a.space == ir.SharedSpace {
		m.checkPending(st, a)
		m.noteWritten(a)
	}
	st.log = &entry{a: a, prev: st.log}
}

// barrier walks a barrier of the block or of the cluster.
func (m *machine) barrier(st *state, i int) {
	in := &m.f.Body[i]
	switch in.Op {
	case "bar.arrive", "barrier.arrive", "bar.cta.arrive", "barrier.cta.arrive", "barrier.cluster.arrive":
		return
	case "barrier.cluster.wait":
		m.synchronise(st)
		return
	}
	if n, ok := m.barrierCount(st, in); !ok || n < m.threads {
		m.seen.partial[i] = true
		m.synchronise(st) // of some threads: which accesses it orders is not followed
		return
	}
	m.checkRaces(st)
	st.log, st.epoch = nil, 0
}

// barrierCount is the number of threads that a barrier waits for; it is not ok if the kernel computes it.
func (m *machine) barrierCount(st *state, in *ir.Instr) (int, bool) {
	count, least := 1, 2 // barrier, count
	switch in.Op {
	case "bar.red", "barrier.red", "bar.cta.red", "barrier.cta.red":
		count, least = 2, 4 // result, barrier, count, predicate
	}
	if len(in.Args) < least {
		return m.threads, true
	}
	n, ok := m.operand(st, &in.Args[count], ir.U32).scalar()
	return int(n), ok
}

// synchronise forgets accesses that something orders which is not followed here, such as an mbarrier.
func (m *machine) synchronise(st *state) {
	m.checkRaces(st)
	st.log, st.epoch = nil, 0
	st.async = asyncState{}
}

// weak tells whether an access happens under a condition that may hold for single threads only: what it may clash with, then,
// cannot be said.
func (a *access) weak() bool {
	for _, f := range a.frames {
		if f.cond.level > perBlock && f.cond.few && f.side == 1 {
			return true
		}
	}
	return false
}

// firm tells whether an access certainly happens in some launch by all threads that are named at once.
func (a *access) firm() bool {
	for _, f := range a.frames {
		if f.again || f.cond.level > perBlock && (f.cond.data || !f.cond.block) {
			return false
		}
	}
	return true
}

// together tells whether threads t of a and u of b may both run, as far as the conditions above them say. A negative t stands
// for any.
func together(a *access, t int, b *access, u int) bool {
	for _, f := range a.frames {
		if f.side == 0 {
			continue
		}
		for _, g := range b.frames {
			if g.cond == f.cond && g.side == -f.side &&
				(f.cond.level == perBlock || t >= 0 && f.cond.level == perWarp && t/32 == u/32 || t >= 0 && t == u) {
				return false
			}
		}
	}
	return true
}
