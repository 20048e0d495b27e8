package shadow

import (
	"math/bits"
	"slices"
)

// History is the accesses to a piece of memory: an allocation, or the shared memory of a block. The zero value has none.
type History struct {
	size   int
	pages  [][]cell          // of pageCells words each, nil while nothing in them has been accessed
	from   uint64            // the time before which accesses do not count
	marks  map[int]*location // where something was released, since the launch that began at
	launch uint64
}

const pageCells = 1 << 10

// Resize makes the history one of n bytes, a multiple of 4 and no fewer than before.
func (h *History) Resize(n int) {
	h.size = n
	if n := (n + 4*pageCells - 1) / (4 * pageCells); len(h.pages) < n {
		h.pages = append(h.pages, make([][]cell, n-len(h.pages))...)
	}
}

// Forget makes what was accessed so far not count any more.
func (d *Races) Forget(h *History) { h.from, h.marks = d.tick(), nil }

// Released tells whether something was released through the memory.
func (h *History) Released() bool { return len(h.marks) > 0 }

// cell is that of the word at an offset that is a multiple of 4.
func (h *History) cell(off int) *cell {
	p := &h.pages[off/(4*pageCells)]
	if *p == nil {
		*p = make([]cell, min(pageCells, h.size/4-off/(4*pageCells)*pageCells))
	}
	return &(*p)[off/4%pageCells]
}

// cells are those of n words that do not cross a page.
func (h *History) cells(off, n int) []cell {
	h.cell(off)
	return h.pages[off/(4*pageCells)][off/4%pageCells:][:n]
}

// Access is how a lane accesses memory.
type Access struct {
	Size             int   // bytes
	At               int32 // the instruction
	Scope            Scope
	Write            bool
	Atomic           bool // reads and writes
	Acquire, Release bool // of strong accesses
	Global           bool // in global memory, not in a block's shared memory
	Alike            bool // another lane of the warp writes the same value to the same place
	Repeats          bool // what is written is there already
}

// Access notes an access of a lane at an offset. It returns false if the access races, with the offset at which it does and the earlier
// access.
func (d *Races) Access(w *Warp, lane int, h *History, off int, a *Access) (other Conflict, at int, ok bool) {
	d.fresh(w, 1<<lane, a.At)
	v, m := w.view(lane), mode(a.Scope)<<scopeShift
	if a.Write {
		m |= writes
	}
	from, limit := max(h.from, d.base), d.limit(a.Global)
	for at := off &^ 3; at < off+a.Size; at += 4 {
		cl := h.cell(at)
		first, last := max(at, off), min(at+4, off+a.Size)
		if last-first == 4 && (cl.more == nil || cl.more.bytes == nil) {
			if other, ok := d.note(w, lane, v, cl, from, m, limit, a); !ok {
				return other, at, false
			}
			continue
		}
		if cl.more == nil || cl.more.bytes == nil {
			cl.split()
		}
		bytes := cl.more.bytes
		for i := first; i < last; i++ {
			if other, ok := d.note(w, lane, v, &bytes[i-at], from, m, d.Limits[1], a); !ok {
				return other, i, false
			}
		}
		if last-first == 4 && m == writes {
			*cl = bytes[0]
		}
	}
	if h.launch != d.base {
		h.marks, h.launch = nil, d.base
	}
	switch {
	case a.Scope != Weak:
		d.synchronise(w, lane, h, off, a)
	case a.Write && len(h.marks) > 0: // what is written weakly hands nothing on
		for at := off; at < off+a.Size; at += 4 {
			delete(h.marks, at)
		}
	}
	return Conflict{}, 0, true
}

// limit is how long the list of a word's accesses may become.
func (d *Races) limit(global bool) int {
	if global {
		return d.Limits[1]
	}
	return d.Limits[0]
}

// split gives each byte of a word a history of its own.
func (cl *cell) split() {
	bytes := &[4]cell{*cl, *cl, *cl, *cl}
	if cl.more != nil {
		for i := range bytes {
			own := *cl.more
			own.list = slices.Clone(own.list)
			bytes[i].more = &own
		}
	}
	*cl = cell{more: &accesses{bytes: bytes}}
}

// note notes an access in a cell.
func (d *Races) note(w *Warp, lane int, v *view, cl *cell, from uint64, m mode, limit int, a *Access) (Conflict, bool) {
	other, ok := d.touch(w, lane, v, cl, from, m, a.At, limit)
	if !ok {
		// Lanes of one instruction that write the same value do not race.
		if m == writes && a.Alike && other.Write && !other.Strong && other.At == a.At && other.Thread/warpSize == w.id &&
			cl.time == w.epoch && cl.first.time == 0 && cl.more.none() {
			cl.thread = w.id*warpSize + uint32(lane)
			return Conflict{}, true
		}
		// Nor do other threads in which the instruction writes it: they change nothing. They are not noted.
		return other, m == writes && a.Repeats && other.Write && !other.Strong && other.At == a.At
	}
	if a.Scope != Weak {
		cl.observe(w, lane, a.Atomic)
	}
	return Conflict{}, true
}

// Groups are lanes of a warp by where they access memory: those at one offset are one group.
type Groups struct {
	n     int
	first [warpSize]uint8 // lane of each group
	lanes [warpSize]uint32
}

// Of makes the groups of accesses of a size, a power of two. Lanes of one offset may be in several groups.
func (g *Groups) Of(lanes uint32, off *[warpSize]uint64, size int) {
	g.n = 0
	first := off[bits.TrailingZeros32(lanes)&31]
	if lanes != full || first != off[1] && first != off[2] && first != off[4] && first != off[8] && first != off[16] { // as a rule, all differ
		for ; lanes != 0; lanes &= lanes - 1 {
			lane := bits.TrailingZeros32(lanes)
			g.first[g.n&31], g.lanes[g.n&31] = uint8(lane), 1<<lane
			g.n++
		}
		return
	}
	var latest [64]uint8 // group at an offset, plus one
	shift := bits.TrailingZeros(uint(size))
	for lane := range off {
		at := &latest[off[lane]>>shift&63]
		if i := *at - 1; *at != 0 && off[g.first[i&31]&31] == off[lane] {
			g.lanes[i&31] |= 1 << lane
			continue
		}
		g.first[g.n&31], g.lanes[g.n&31] = uint8(lane), 1<<lane
		g.n++
		*at = uint8(g.n)
	}
}

// Each calls f with an offset of each group until it returns false, and tells whether it never did.
func (g *Groups) Each(off *[warpSize]uint64, f func(off int) bool) bool {
	for _, lane := range g.first[:g.n] {
		if !f(int(off[lane&31])) {
			return false
		}
	}
	return true
}

// Reads is Access for plain loads of lanes at once. It returns false if something is unusual; then Access has to be called for each
// lane. Offsets are multiples of the size, which is one of 4, 8, 16 or 32.
func (d *Races) Reads(w *Warp, g *Groups, h *History, off *[warpSize]uint64, size int, at int32, global bool) bool {
	v := w.common
	if v == nil {
		return false
	}
	from, limit := max(h.from, d.base), d.limit(global)
	for i := range g.n {
		lane, lanes := int(g.first[i&31]&31), g.lanes[i&31]
		d.fresh(w, lanes, at)
		me := w.id*warpSize + uint32(lane)
		alone := lanes&(lanes-1) == 0
		cells := h.cells(int(off[lane]), size/4)
		for i := range cells {
			cl := &cells[i]
			if cl.time <= from && cl.first.time <= from && cl.more == nil {
				cl.first = entry{w.epoch, w.id, lanes, at, 0}
				continue
			}
			if t := cl.time; t > from && !(alone && cl.thread == me) && (t > v.all || cl.thread/warpSize-w.lo >= d.per) {
				if !d.readBy(w, lanes, v, cl, from, at, limit) {
					return false
				}
				continue
			}
			f, more := &cl.first, cl.more
			known := f.time == w.epoch && f.warp == w.id && f.mode == 0 && (f.at == at || f.lanes&lanes == lanes)
			switch {
			case more.none():
				if known {
					f.lanes |= lanes
					continue
				}
				if f.time <= from || f.time <= v.all && f.warp-w.lo < d.per && f.mode&writes == 0 {
					*f = entry{w.epoch, w.id, lanes, at, 0}
					continue
				}
			case more.bytes != nil:
				return false
			case more.writes || f.mode&writes != 0:
			case known:
				f.lanes |= lanes
				continue
			default:
				if n := len(more.list); n > 0 && more.warps>>(w.id&63)&1 != 0 {
					f = &more.list[n-1]
					if f.time == w.epoch && f.warp == w.id && f.mode == 0 && (f.at == at || f.lanes&lanes == lanes) {
						f.lanes |= lanes
						continue
					}
				}
			}
			// As a rule other warps have read it since the last barrier.
			if more != nil && !more.writes && f.mode&writes == 0 && f.time > max(from, v.all) &&
				more.warps>>(w.id&63)&1 == 0 && len(more.list)&7 != 7 {
				more.append(entry{w.epoch, w.id, lanes, at, 0}, d.per)
				continue
			}
			if !d.readBy(w, lanes, v, cl, from, at, limit) {
				return false
			}
		}
	}
	return true
}

// readBy notes that lanes read a cell. It returns false if something is unusual.
func (d *Races) readBy(w *Warp, lanes uint32, v *view, cl *cell, from uint64, at int32, limit int) bool {
	if cl.more != nil && cl.more.bytes != nil {
		return false
	}
	t, writer := cl.time, cl.thread
	if (t <= from || t <= v.all && writer/warpSize-w.lo < d.per || d.before(v, writer/warpSize, 1<<(writer%warpSize), t)) &&
		cl.first.mode&writes == 0 && (cl.more == nil || !cl.more.writes) {
		// They have seen the last write, and reads do not race with reads.
		e := entry{w.epoch, w.id, lanes, at, 0}
		if cl.stale(from) || cl.quiet(w, v, d.per) {
			cl.first = e
			cl.more.clear()
			return true
		}
		d.add(w, v, cl, from, e, limit)
		return true
	}
	for ; lanes != 0; lanes &= lanes - 1 {
		if _, ok := d.touch(w, bits.TrailingZeros32(lanes), v, cl, from, 0, at, limit); !ok {
			return false
		}
	}
	return true
}

// Writes is the same for plain stores, where nothing was released through the memory.
func (d *Races) Writes(w *Warp, lanes uint32, h *History, off *[warpSize]uint64, size int, at int32) bool {
	v := w.common
	if v == nil {
		return false
	}
	d.fresh(w, lanes, at)
	from := max(h.from, d.base)
	for ; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes) & 31
		cells := h.cells(int(off[lane]), size/4)
		for i := range cells {
			cl := &cells[i]
			if cl.more != nil && cl.more.bytes != nil {
				return false
			}
			me := w.id*warpSize + uint32(lane)
			if t := cl.time; (t <= from || cl.thread == me || t <= v.all && cl.thread/warpSize-w.lo < d.per) && cl.quiet(w, v, d.per) {
				cl.time, cl.thread, cl.at, cl.first = w.epoch, me, at, entry{}
				if cl.more != nil && (cl.more.latest != 0 || cl.more.observer != 0) {
					cl.more.clear()
				}
				continue
			}
			if _, ok := d.touch(w, lane, v, cl, from, writes, at, 0); !ok {
				return false
			}
		}
	}
	return true
}
