package sim

import "github.com/wavelane/wavelane/ptx/ir"

// Most accesses in a checked program are plain ones of a whole warp, to memory of one allocation, with nothing to
// complain about. They have ways of their own here; at the first thing that is unusual the general way takes over, which
// repeats and reports.

// checkedLoad is fast, the step of a load without checks, with checks.
func (v *moved) checkedLoad(fast step) step {
	return func(w *warp, m uint32) {
		addr := &w.places[0]
		if s := v.inside(w, m, addr); s != nil && w.reads(m, v.op, s, addr) {
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
		s := v.inside(w, m, addr)
		if s == nil || w.prog.async && !w.wordsOf(s).idle(m, v.op.size, addr) || !w.mon.writes(w, m, v.op, s, addr) {
			v.store(w, m)
			return
		}
		for l := m; w.prog.async && l != 0; l &= l - 1 {
			me := w.fenced(first(l))
			_, list := s.words.at(addr[me.lane&31], v.op.size)
			for i := range list {
				list[i].wrote(me, 15)
			}
		}
		fast(w, m)
	}
}

// reads is [monitor.reads], unless something writes asynchronously what lanes load.
func (w *warp) reads(m uint32, op *memOp, s *segment, addr *[warpSize]uint64) bool {
	g := &w.work.groups
	g.Of(m, addr, op.size)
	if k := s.words; w.prog.async && k != nil && k.grid == w.block.grid {
		settled := g.Each(addr, func(off int) bool {
			p := k.pages[off/(4*pageWords)]
			if p == nil || p.locked == 0 {
				return true
			}
			for i := range op.size / 4 {
				if p.words[off/4%pageWords+i].writer != nil {
					return false
				}
			}
			return true
		})
		if !settled {
			return false
		}
	}
	return w.mon.reads(w, m, op, s, addr)
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
func (d *watch) reads(w *warp, _ uint32, op *memOp, s *segment, addr *[warpSize]uint64) bool {
	sh := s.shadow
	if sh == nil || sh.Bytes() < len(s.data) {
		return false
	}
	g := &w.work.groups
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
