package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// branch takes a branch or leaves.
func (m *machine) branch(b, i int, st *state) {
	in := &m.f.Body[i]
	taken, passed := m.split(b, i, st)
	if taken != nil {
		switch {
		case in.Kind() == ir.Leave:
			m.finish(taken)
		default:
			targets, _ := m.g.Targets(i)
			if len(targets) > 1 {
				m.unknown = m.unknown || m.g.Blocks[b].Loop >= 0
			}
			for k, t := range targets {
				to := taken
				if k > 0 {
					to = taken.clone()
				}
				m.push(m.g.BlockOf(t), to)
			}
		}
	}
	switch {
	case passed == nil:
	case b+1 < len(m.g.Blocks):
		m.push(b+1, passed)
	default:
		m.finish(passed)
	}
}

// split divides a state by the guard of instruction i into the threads for which it holds and the others; nil if there are
// none.
func (m *machine) split(b, i int, st *state) (taken, passed *state) {
	in := &m.f.Body[i]
	info := &m.seen.guards[i]
	info.visits++
	if in.Op == "brx.idx" {
		if v := st.regs[in.Args[0].Reg]; v != nil {
			info.split = max(info.split, v.level())
		}
	}
	if in.Guard.Reg == 0 {
		return st, nil
	}
	p := m.guard(st, in)
	if p.isConst() {
		taken, passed = m.divide(st, p, info)
		return taken, passed
	}
	info.taken = true
	info.plain = false
	cond, side := m.condition(p)
	info.split = max(info.split, cond.level)
	for _, f := range st.frames { // decided before
		if f.cond == cond && f.side != 0 && cond.level == perBlock {
			if f.side == side {
				return st, nil
			}
			return nil, st
		}
	}
	loop := m.g.Blocks[b].Loop
	exits := false
	if loop >= 0 {
		for _, e := range m.g.Edges(b) {
			exits = exits || !m.g.Loops[loop].Has(e.To)
		}
	}
	if exits {
		m.unknown = true
	}
	f := frame{cond: cond, side: side, join: m.g.IPDom[b], again: exits && m.counting > 0, here: st.here}
	passed = st.clone()
	st.here = under(p, st.here)
	passed.here = under(combine(constant(1), p, 1, -1), passed.here)
	st.frames = append(st.frames, f)
	f.side = -side
	passed.frames = append(passed.frames, f)
	return st, passed
}

// under is who is under a condition that is not known for all threads.
func under(p *vec, here []presence) []presence {
	out := slices.Clone(here)
	for t, h := range here {
		known := !slices.ContainsFunc(p.terms, func(e term) bool { return at(e.k, t) != 0 })
		switch {
		case !known:
			out[t] = min(h, may)
		case at(p.c, t) == 0:
			out[t] = absent
		}
	}
	return out
}

// ways tells which ways threads go by a condition that is known, and how far they part.
func ways(p *vec, here []presence) (yes, no bool, apart level) {
	var lanes [2]bool
	for t, h := range here {
		if t%32 == 0 {
			lanes = [2]bool{}
		}
		if h == absent {
			continue
		}
		holds := at(p.c, t) != 0
		yes, no = yes || holds, no || !holds
		lanes[bit(holds)] = true
		if lanes[0] && lanes[1] {
			apart = perThread
		}
	}
	if yes && no {
		apart = max(apart, perWarp)
	}
	return yes, no, apart
}

// divide splits by known numbers.
func (m *machine) divide(st *state, p *vec, info *branchInfo) (taken, passed *state) {
	yes, no, apart := ways(p, st.here)
	info.split = max(info.split, apart)
	if info.visits == 1 {
		info.plain = true
	}
	info.plain = info.plain && len(p.c) == 1
	info.taken = info.taken || yes
	switch {
	case !no:
		return st, nil
	case !yes:
		return nil, st
	}
	passed = st.clone()
	for t := range st.here {
		if at(p.c, t) != 0 {
			passed.here[t] = absent
		} else {
			st.here[t] = absent
		}
	}
	return st, passed
}

// guard is the value of an instruction's guard, 1 where it holds.
func (m *machine) guard(st *state, in *ir.Instr) *vec {
	p := st.regs[in.Guard.Reg]
	if p == nil {
		p = m.fresh(perThread, false, false)
		st.regs[in.Guard.Reg] = p
	}
	if in.Guard.Not {
		return combine(constant(1), p, 1, -1)
	}
	return p
}

// condition is the symbol of a predicate that is not known, and whether it or its opposite is meant.
func (m *machine) condition(p *vec) (*symbol, int8) {
	if s := p.only(); s != nil {
		return s, 1
	}
	n := combine(constant(1), p, 1, -1)
	if n.only() != nil {
		return n.only(), -1
	}
	if n.rare() {
		s, _ := m.condition(n)
		return s, -1
	}
	s := m.opaque("cond", p).only()
	s.few = s.few || p.rare()
	return s, 1
}

// rare tells a condition that may hold for single threads only, in those threads where it is not false anyway.
func (v *vec) rare() bool {
	return len(v.terms) == 1 && v.terms[0].sym.few && isZero(v.c) &&
		!slices.ContainsFunc(v.terms[0].k, func(k int64) bool { return k != 0 && k != 1 })
}
