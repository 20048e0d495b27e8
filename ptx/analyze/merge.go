package analyze

import "slices"

// merge joins two states.
func (m *machine) merge(a, b *state) *state {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	out := &state{regs: make([]*vec, len(a.regs)), here: make([]presence, len(a.here)), epoch: max(a.epoch, b.epoch)}
	onlyA := make([]bool, len(a.here))
	for t := range out.here {
		out.here[t] = max(a.here[t], b.here[t])
		onlyA[t] = b.here[t] == absent
	}
	split := splitOf(a.frames, b.frames)
	for r := range out.regs {
		out.regs[r] = m.joined(a, b, a.regs[r], b.regs[r], onlyA, split)
	}
	out.frames = mergeFrames(a.frames, b.frames)
	out.local = m.mergeLocal(a, b, onlyA, split)
	out.log = mergeLogs(a, b)
	out.async = mergeAsync(a, b)
	out.maxreg = slices.Clone(a.maxreg)
	for w, r := range b.maxreg {
		out.maxreg[w] = max(out.maxreg[w], r)
	}
	return out
}

// joined is what x in one state and y in the other are where the states meet.
func (m *machine) joined(a, b *state, x, y *vec, onlyA []bool, split level) *vec {
	switch {
	case x == y || y == nil:
		return x
	case x == nil:
		return y
	}
	differs := false
	for t := range onlyA {
		if a.here[t] != absent && b.here[t] != absent && !equalAt(x, y, t) {
			differs = true
			break
		}
	}
	if !differs {
		return pick(onlyA, x, y)
	}
	dx, bx := x.from()
	dy, by := y.from()
	v := m.fresh(max(split, x.level(), y.level()), dx || dy, bx || by)
	v.generic = x.generic
	return v
}

// splitOf is how far the threads may have come together on different ways: the largest split of the unknown conditions in which
// two states differ.
func splitOf(a, b []frame) level {
	l := perBlock
	side := map[*symbol]int8{}
	for _, f := range a {
		side[f.cond] = f.side
	}
	for _, f := range b {
		if s, ok := side[f.cond]; !ok || s != f.side || s == 0 {
			l = max(l, f.cond.level)
		}
		delete(side, f.cond)
	}
	for s := range side {
		l = max(l, s.level)
	}
	return l
}

// mergeFrames joins the conditions of two states in the order in which they were met.
func mergeFrames(a, b []frame) []frame {
	var out []frame
	index := map[*symbol]int{}
	for _, f := range a {
		index[f.cond] = len(out)
		out = append(out, f)
	}
	seen := map[*symbol]bool{}
	for _, f := range b {
		seen[f.cond] = true
		if i, ok := index[f.cond]; ok {
			if out[i].side != f.side {
				out[i].side = 0
			}
			continue
		}
		f.side = 0
		out = append(out, f)
	}
	for i := range out {
		if !seen[out[i].cond] {
			out[i].side = 0
		}
	}
	slices.SortStableFunc(out, func(x, y frame) int { return x.cond.id - y.cond.id })
	return out
}
