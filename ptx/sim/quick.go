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
	v.addr.all(w, base, addr)
	if s.readOnly || !within(s.data, m, v.op.size, addr) {
		return nil
	}
	return s
}

// reads does what access does for plain loads of lanes, unless something is unusual: then it returns false. Offsets are
// in bounds and multiples of the size, which is one of 4, 8, 16 or 32.
func (d *watch) reads(w *warp, m uint32, op *memOp, s *segment, addr *[warpSize]uint64) bool {
	sh, _ := s.shadow.(*shadow)
	if sh == nil || len(sh.def)*64 < len(s.data) {
		return false
	}
	if d.checks&CheckInit != 0 {
		for l := m; l != 0; l &= l - 1 {
			if sh.undefined(int(addr[first(l)&31]), op.size) != 0 {
				return false
			}
		}
	}
	if d.checks&CheckRace == 0 {
		return true
	}
	c, r, at := &w.watched.clock, d.races, w.at
	v := c.common
	if v == nil {
		return false
	}
	r.fresh(c, m, at)
	from, limit := max(sh.from, r.base), r.limits[b2i(s.space == ir.GlobalSpace)]
	for l := m; l != 0; l &= l - 1 {
		lane := first(l) & 31
		bit, off := uint32(1)<<lane, int(addr[lane])
		me := c.id*warpSize + uint32(lane)
		cells := sh.cells(off, op.size/4)
		for i := range cells {
			cl := &cells[i]
			if t := cl.time; t > from && cl.thread != me && (t > v.all || cl.thread/warpSize-c.lo >= r.per) {
				if cl.more != nil && cl.more.bytes != nil {
					return false
				}
				if _, ok := r.touch(c, lane, v, cl, from, 0, at, limit); !ok {
					return false
				}
				continue
			}
			f, more := &cl.first, cl.more
			same := f.time == c.epoch && f.warp == c.id && f.at == at && f.mode == 0
			switch {
			case more.none():
				if same {
					f.lanes |= bit
					continue
				}
				if f.time <= from || f.time <= v.all && f.warp-c.lo < r.per && f.mode&writes == 0 {
					*f = entry{c.epoch, c.id, bit, at, 0}
					continue
				}
			case more.bytes != nil:
				return false
			case more.writes || f.mode&writes != 0:
			case same:
				f.lanes |= bit
				continue
			default:
				if n := len(more.list); n > 0 {
					if f = &more.list[n-1]; f.time == c.epoch && f.warp == c.id && f.at == at && f.mode == 0 {
						f.lanes |= bit
						continue
					}
				}
			}
			if _, ok := r.touch(c, lane, v, cl, from, 0, at, limit); !ok {
				return false
			}
		}
	}
	return true
}

// writes is the same for plain stores.
func (d *watch) writes(w *warp, m uint32, op *memOp, s *segment, addr *[warpSize]uint64) bool {
	sh, _ := s.shadow.(*shadow)
	if sh == nil || len(sh.def)*64 < len(s.data) || len(sh.marks) > 0 || len(sh.origins) > 0 || w.watched.storing != nil ||
		w.watched.twice != 0 {
		return false
	}
	if d.checks&CheckRace != 0 {
		c, r, at := &w.watched.clock, d.races, w.at
		v := c.common
		if v == nil {
			return false
		}
		r.fresh(c, m, at)
		from := max(sh.from, r.base)
		for l := m; l != 0; l &= l - 1 {
			lane := first(l) & 31
			off := int(addr[lane])
			cells := sh.cells(off, op.size/4)
			for i := range cells {
				cl := &cells[i]
				if cl.more != nil && cl.more.bytes != nil {
					return false
				}
				if _, ok := r.touch(c, lane, v, cl, from, writes, at, 0); !ok {
					return false
				}
			}
		}
	}
	if d.checks&CheckInit != 0 {
		for l := m; l != 0; l &= l - 1 {
			sh.define(int(addr[first(l)&31]), op.size, 0)
		}
	}
	return true
}

// cells are those of n words that do not cross a page.
func (sh *shadow) cells(off, n int) []cell {
	sh.cell(off)
	return sh.pages[off/(4*pageCells)][off/4%pageCells:][:n]
}
