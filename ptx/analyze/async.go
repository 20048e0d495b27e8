package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// asyncState is what cp.async has under way.
type asyncState struct {
	groups [][]*access // committed, oldest first
	open   []*access   // not yet committed
}

func (s asyncState) clone() asyncState {
	return asyncState{slices.Clone(s.groups), slices.Clone(s.open)}
}

// mergeAsync is what may be under way where two states meet. Groups are counted from the latest, as cp.async.wait_group counts
// them.
func mergeAsync(a, b *state) asyncState {
	x, y := a.async.possible(a.frames), b.async.possible(b.frames)
	out := asyncState{open: union(x.open, y.open)}
	n := max(len(x.groups), len(y.groups))
	for i := range n {
		var g []*access
		for _, s := range []asyncState{x, y} {
			if k := i - (n - len(s.groups)); k >= 0 {
				g = union(g, s.groups[k])
			}
		}
		out.groups = append(out.groups, g)
	}
	return out
}

func union(a, b []*access) []*access {
	out := slices.Clone(a)
	for _, e := range b {
		if !slices.Contains(a, e) {
			out = append(out, e)
		}
	}
	return out
}

// possible leaves out copies that were made under the opposite of a condition under which the state is.
func (s asyncState) possible(frames []frame) asyncState {
	keep := func(list []*access) (out []*access) {
		for _, a := range list {
			if together(&access{frames: frames}, -1, a, -1) {
				out = append(out, a)
			}
		}
		return out
	}
	out := asyncState{open: keep(s.open)}
	for _, g := range s.groups {
		out.groups = append(out.groups, keep(g))
	}
	return out
}

// asyncEffects walks cp.async and what commits and awaits it. Bulk copies complete through mbarriers or bulk groups and are
// checked by their protocol only.
func (m *machine) asyncEffects(st *state, i int, here []presence, frames []frame) {
	in := &m.f.Body[i]
	switch {
	case in.Op == "cp.async.bulk" && len(in.Args) > 3 && in.Args[3].Kind == ir.AddrOperand:
		m.seen.others[i] = m.addressIn(st, &in.Args[3])
	case bulkStore(in) && len(in.Args) > 1 && in.Args[1].Kind == ir.AddrOperand:
		m.seen.others[i] = m.addressIn(st, &in.Args[1])
	}
	switch in.Op {
	case "cp.async":
		if len(in.Args) < 3 {
			return
		}
		size, _ := m.operand(st, &in.Args[2], ir.U32).scalar()
		from := &access{instr: i, epoch: st.epoch, space: ir.GlobalSpace, size: int(size), addr: m.addressIn(st, &in.Args[1])}
		from.here, from.frames = m.reading(st, in, here, frames)
		m.touch(st, from)
		to := &access{instr: i, here: here, frames: frames, epoch: st.epoch, space: ir.SharedSpace, size: int(size), write: true,
			issued: true, values: []*vec{m.fresh(perThread, true, false)}, addr: m.addressIn(st, &in.Args[0])}
		m.touch(st, to)
		if to.base != nil {
			st.async.open = append(st.async.open, to)
		}
	case "cp.async.commit_group":
		st.async.groups = append(st.async.groups, st.async.open)
		st.async.open = nil
	case "cp.async.wait_group":
		if n, ok := m.operand(st, &in.Args[0], ir.U32).scalar(); ok {
			m.retire(st, int(n))
		} else {
			m.retire(st, 0)
		}
	case "cp.async.wait_all":
		st.async.groups = append(st.async.groups, st.async.open)
		st.async.open = nil
		m.retire(st, 0)
	case "cp.async.mbarrier.arrive": // whoever waits for the mbarrier knows
		st.async = asyncState{}
	}
}

// reading is who reads the source of cp.async: it may say that there is nothing to read, by a size or a predicate.
func (m *machine) reading(st *state, in *ir.Instr, here []presence, frames []frame) ([]presence, []frame) {
	if len(in.Args) < 4 {
		return here, frames
	}
	v := m.operand(st, &in.Args[3], ir.U32)
	switch o := &in.Args[3]; {
	case o.Kind == ir.RegOperand && m.f.Regs[o.Reg].Type.Bits() == 64: // a cache policy
		return here, frames
	case o.Kind == ir.RegOperand && m.f.Regs[o.Reg].Type == ir.Pred: // says what is to be ignored
		v = combine(constant(1), v, 1, -1)
	case v.truth != nil && v.yes != 0 && v.no == 0:
		v = v.truth
	case v.truth != nil && v.yes == 0 && v.no != 0:
		v = combine(constant(1), v.truth, 1, -1)
	}
	if !v.isConst() {
		cond, side := m.condition(v)
		frames = append(slices.Clip(frames), frame{cond: cond, side: side, join: -1})
	}
	return under(v, here), frames
}

// retire lets all but the last n groups arrive: from now on the thread that issued a copy sees it, others after a barrier.
func (m *machine) retire(st *state, n int) {
	for len(st.async.groups) > n {
		for _, a := range st.async.groups[0] {
			landed := *a
			landed.issued, landed.landed, landed.epoch = false, true, st.epoch
			st.log = &entry{a: &landed, prev: st.log}
		}
		st.async.groups = st.async.groups[1:]
	}
}

// checkPending looks for copies under way to what is accessed.
func (m *machine) checkPending(st *state, a *access) {
	if a.issued || a.weak() {
		return
	}
	for _, g := range append(st.async.groups[:len(st.async.groups):len(st.async.groups)], st.async.open) {
		for _, p := range g {
			if p.base == a.base && !p.weak() && m.overlap(p, a) {
				m.seen.hazards[[2]int{a.instr, p.instr}] = true
			}
		}
	}
}

// unitsOf calls f with the cells that thread t touches, of units of n bytes.
func (a *access) unitsOf(t int, n int64, f func(cell)) {
	sig, ok := a.addr.signature(t)
	if !ok {
		return
	}
	off := at(a.addr.c, t)
	for u := floorDiv(off, n); u*n < off+int64(a.size); u++ {
		f(cell{sig, u})
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// overlap tells whether the two touch a common byte.
func (m *machine) overlap(p, a *access) bool {
	if p.cells == nil {
		p.cells = map[cell]struct{}{}
		for t, h := range p.here {
			if h != absent {
				p.unitsOf(t, 4, func(c cell) { p.cells[c] = struct{}{} })
			}
		}
	}
	found := false
	for t, h := range a.here {
		if h == absent {
			continue
		}
		a.unitsOf(t, 4, func(c cell) {
			if _, ok := p.cells[c]; ok {
				found = true
			}
		})
		if found {
			return together(p, -2, a, t)
		}
	}
	return false
}
