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
	value  level // of what is stored
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
}

// mergeLogs is the union of two logs.
func mergeLogs(a, b *entry) *entry {
	if a == b || b == nil {
		return a
	}
	if a == nil {
		return b
	}
	seen := map[*access]bool{}
	at := map[*entry]bool{}
	for e := a; e != nil; e = e.prev {
		seen[e.a] = true
		at[e] = true
	}
	var extra []*access
	for e := b; e != nil && !at[e]; e = e.prev {
		if !seen[e.a] {
			extra = append(extra, e.a)
		}
	}
	for _, x := range slices.Backward(extra) {
		a = &entry{x, a}
	}
	return a
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
		a.value = m.stored(st, in)
	case ir.Atomic:
		if in.Op != "atom" && in.Op != "red" {
			return
		}
		a.write, a.atomic = true, true
	case ir.Matrix:
		if in.Op != "ldmatrix" && in.Op != "stmatrix" {
			return
		}
		a.write, a.size, a.space, a.value = in.Op == "stmatrix", 16, ir.SharedSpace, perThread
		a.here = slices.Clone(here)
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
		a.size, a.space, a.value = 8, ir.SharedSpace, perThread
		a.write = in.Op == "mbarrier.init" || in.Op == "mbarrier.inval"
		a.atomic = !a.write
		a.addr = m.address(st, in)
		m.touch(st, a)
		if in.Op == "mbarrier.test_wait" || in.Op == "mbarrier.try_wait" {
			m.synchronise(st)
		}
		return
	case ir.Call:
		st.local = nil
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

// stored is among which threads the value is the same that a store writes.
func (m *machine) stored(st *state, in *ir.Instr) level {
	l := perBlock
	in.Args[len(in.Args)-1].Regs(func(r ir.Reg) {
		if v := st.regs[r]; v != nil {
			l = max(l, v.level())
		} else {
			l = perThread
		}
	})
	return l
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
	st.log = &entry{a, st.log}
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
