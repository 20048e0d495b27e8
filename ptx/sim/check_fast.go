package sim

import "github.com/wavelane/wavelane/ptx/ir"

// Most accesses in a checked program are plain ones of a whole warp, to memory of one allocation, with nothing to
// complain about. They have ways of their own here; at the first thing that is unusual the general way takes over, which
// repeats and reports.

// checkedLoad is fast, the step of a load without checks, with checks.
func (v *moved) checkedLoad(fast step) step {
	return func(w *warp, m uint32) {
		addr := &w.places[0]
		if s := v.inside(w, m, addr); s != nil && w.settled(m, v.op, s, addr) && w.mon.reads(w, m, v.op, s, addr) {
			fast(w, m)
			return
		}
		v.load(w, m)
	}
}

// checkedStore is fast, the step of a store without checks, with checks.
func (v *moved) checkedStore(fast step) step {
	return func(w *warp, m uint32) {
		addr := &w.places[0]
		if s := v.inside(w, m, addr); s != nil {
			for l := m; w.prog.async && l != 0; l &= l - 1 {
				w.guard(first(l), v.op, s, int(addr[first(l)]))
			}
			if w.mon.writes(w, m, v.op, s, addr) {
				fast(w, m)
				return
			}
		}
		v.store(w, m)
	}
}

// settled tells whether nothing writes asynchronously what lanes load.
func (w *warp) settled(m uint32, op *memOp, s *segment, addr *[warpSize]uint64) bool {
	if m == 0 || !w.prog.async || s.words == nil || s.words.grid != w.block.grid {
		return true
	}
	for ; m != 0; m &= m - 1 {
		at := addr[first(m)&31] / 4
		for i := at; i < at+uint64(op.size/4); i++ {
			if page := s.words.pages[i/pageWords]; page != nil && page[i%pageWords].writer != nil {
				return false
			}
		}
	}
	return true
}

// inside finds the segment in which the accesses of all lanes lie, aligned, and their offsets in it; nil if there is none.
func (v *moved) inside(w *warp, m uint32, addr *[warpSize]uint64) *segment {
	s, base := &w.block.shared, uint64(0)
	if v.op.space == ir.GlobalSpace {
		if s = w.global(v.op, v.addr.of(w, first(m))); s == nil {
			return nil
		}
		base = s.base
	}
	if within := v.addr.offsets(w, m, base, s.data, v.op.size, addr); s.readOnly || !within {
		return nil
	}
	return s
}

// reads does what access does for plain loads of lanes, unless something is unusual: then it returns false. Offsets are
// in bounds and multiples of the size, which is one of 4, 8, 16 or 32.
func (d *watch) reads(w *warp, m uint32, op *memOp, s *segment, addr *[warpSize]uint64) bool {
	sh := s.shadow
	if sh == nil || sh.Bytes() < len(s.data) {
		return false
	}
	g := &d.groups
	g.Of(m, addr, op.size)
	if d.checks&CheckInit != 0 && !g.Each(addr, func(off int) bool { return sh.Undefined(off, op.size) == 0 }) {
		return false
	}
	return d.checks&CheckRace == 0 ||
		d.races.Reads(&w.watched.clock, g, &sh.history, addr, op.size, w.at, s.space == ir.GlobalSpace)
}

// writes is the same for plain stores.
func (d *watch) writes(w *warp, m uint32, op *memOp, s *segment, addr *[warpSize]uint64) bool {
	sh := s.shadow
	if sh == nil || sh.Bytes() < len(s.data) || sh.history.Released() || len(sh.origins) > 0 || w.watched.storing != nil ||
		w.watched.twice != 0 {
		return false
	}
	if d.checks&CheckRace != 0 && !d.races.Writes(&w.watched.clock, m, &sh.history, addr, op.size, w.at) {
		return false
	}
	if d.checks&CheckInit != 0 {
		for l := m; l != 0; l &= l - 1 {
			sh.Define(int(addr[first(l)&31]), op.size, 0)
		}
	}
	return true
}
