package sim

import (
	"math/bits"
	"slices"
)

// Races: two threads access a byte, at least one of them writes, and neither access happens before the other. Accesses that are both
// strong (atomic, volatile, relaxed, acquire, release), in scopes that include each other's threads, never race: PTX ISA, "Memory
// Consistency Model". What is kept follows FastTrack: for each word the last weak write, and the accesses since that a later one might
// conflict with.

// mode is how an access takes part in races: its lowest bit says that it writes, the rest is its scope: 0 for weak accesses.
type mode uint8

const (
	writes     mode = 1
	scopeShift      = 1
)

// The levels of scopes. The distance of two threads is that of the smallest scope with both.
const (
	weakScope = iota
	ctaScope
	clusterScope
	gpuScope
	noBlock = ^uint32(0)
)

func (m mode) scope() int { return int(m >> scopeShift) }

// cell is the history of a word of 4 bytes, or of a byte in a word whose bytes have different ones.
type cell struct {
	time   uint64 // of the last weak write
	thread uint32
	at     int32     // its instruction in the program
	since  *accesses // nil for none
}

// accesses are reads and strong accesses of a cell. They are shared by cells with the same history and never change, but for bytes.
type accesses struct {
	id     uint64
	list   []entry // exact
	crowd  []entry // by block, in the field warp; without lanes: only when the list would become too long
	latest uint64  // of all times
	block  uint32  // of all entries, noBlock if they are of several
	writes bool    // strong ones
	bytes  *[4]cell
}

// entry is an access of some lanes of a warp.
type entry struct {
	time  uint64
	warp  uint32
	lanes uint32
	at    int32
	mode  mode
}

const maxEntries = 48

// conflict is an earlier access with which one races.
type conflict struct {
	thread uint32
	at     int32
	mode   mode
}

// races finds races of a launch.
type races struct {
	clocks
	cluster uint32 // blocks in a cluster
	nextID  uint64
	memo    [1 << 12]transition
}

// transition is a step from accesses to accesses that has been computed before.
type transition struct {
	from, to *accesses
	e        entry
}

// distance is the level of the smallest scope that holds both blocks.
func (d *races) distance(a, b uint32) int {
	switch {
	case a == b:
		return ctaScope
	case a/d.cluster == b/d.cluster:
		return clusterScope
	}
	return gpuScope
}

// touch notes an access of a lane to a cell. from is the time before which nothing counts. ok is false if it races with c.
func (d *races) touch(w *warpClock, lane int, v *view, cl *cell, from uint64, m mode, at int32) (c conflict, ok bool) {
	me := w.id*warpSize + uint32(lane)
	if t := cl.time; t > from && cl.thread != me && (t > v.all || cl.thread/warpSize/d.per != v.block) &&
		!d.before(v, cl.thread/warpSize, 1<<(cl.thread%warpSize), t) {
		return conflict{cl.thread, cl.at, writes}, false
	}
	s := cl.since
	if s != nil && s.latest <= from {
		s = nil
	}
	if m == writes { // weak
		if s != nil && (s.latest > v.all || s.block != v.block) {
			if c, ok := d.conflicts(w, lane, v, s, m); !ok {
				return c, false
			}
		}
		*cl = cell{time: w.epoch, thread: me, at: at}
		return conflict{}, true
	}
	e := entry{w.epoch, w.id, 1 << lane, at, m}
	if s == nil {
		cl.since = d.add(nil, e, w, v)
		return conflict{}, true
	}
	if (m != 0 || s.writes) && (s.latest > v.all || s.block != v.block) {
		if c, ok := d.conflicts(w, lane, v, s, m); !ok {
			return c, false
		}
	}
	cl.since = d.add(s, e, w, v)
	return conflict{}, true
}

// races tells whether accesses in these modes conflict, in blocks at a distance.
func racing(a, b mode, distance int) bool {
	return (a|b)&writes != 0 && (a.scope() < distance || b.scope() < distance)
}

// conflicts looks for an entry that conflicts with a lane's access.
func (d *races) conflicts(w *warpClock, lane int, v *view, s *accesses, m mode) (conflict, bool) {
	for i := range s.list {
		e := &s.list[i]
		lanes := e.lanes
		if e.warp == w.id {
			lanes &^= 1 << lane
		}
		if lanes != 0 && racing(m, e.mode, d.distance(w.block, e.warp/d.per)) && !d.before(v, e.warp, lanes, e.time) {
			for ; ; lanes &= lanes - 1 {
				one := lanes & -lanes
				if !d.before(v, e.warp, one, e.time) {
					return conflict{e.warp*warpSize + uint32(bits.TrailingZeros32(one)), e.at, e.mode}, false
				}
			}
		}
	}
	for i := range s.crowd {
		e := &s.crowd[i]
		if racing(m, e.mode, d.distance(w.block, e.warp)) && e.time > d.knownBlock(v, e.warp) {
			return conflict{e.warp * d.per * warpSize, e.at, e.mode}, false
		}
	}
	return conflict{}, true
}

// add is s with an entry of one lane. Entries that e makes superfluous go: those that happened before it and conflict with nothing with
// which e does not conflict.
func (d *races) add(s *accesses, e entry, w *warpClock, v *view) *accesses {
	id := uint64(0)
	if s != nil {
		if l := &s.list[len(s.list)-1]; l.time == e.time && l.warp == e.warp && l.mode == e.mode && l.lanes&e.lanes != 0 {
			return s
		}
		id = s.id
	}
	h := (id*0x9e3779b97f4a7c15 ^ (uint64(e.warp)<<32|uint64(e.lanes))*0xd6e8feb86659fd93 ^ e.time*0xff51afd7ed558ccd) >> 7
	h ^= h >> 29
	t := &d.memo[(h^uint64(e.at))%uint64(len(d.memo))]
	if t.from == s && t.e == e && t.to != nil {
		return t.to
	}
	*t = transition{s, d.extend(s, e, w, v), e}
	return t.to
}

func (d *races) extend(s *accesses, e entry, w *warpClock, v *view) *accesses {
	n := &accesses{block: w.block}
	d.nextID++
	n.id = d.nextID
	if s != nil {
		for _, o := range s.list {
			if o.warp == e.warp && o.time == e.time && o.mode == e.mode && o.lanes&e.lanes != 0 {
				return s
			}
		}
		n.list = make([]entry, 0, len(s.list)+1)
		merged := false
		for _, o := range s.list {
			if covers(e.mode, o.mode) {
				if o.warp == e.warp {
					o.lanes &^= e.lanes
				}
				if o.lanes == 0 || !(o.warp == e.warp && o.time == e.time) && d.before(v, o.warp, o.lanes, o.time) {
					continue
				}
			}
			if o.warp == e.warp && o.time == e.time && o.at == e.at && o.mode == e.mode {
				o.lanes |= e.lanes
				merged = true
			}
			n.list = append(n.list, o)
		}
		n.crowd = slices.Clone(s.crowd)
		n.crowd = slices.DeleteFunc(n.crowd, func(o entry) bool {
			return covers(e.mode, o.mode) && o.time <= d.knownBlock(v, o.warp)
		})
		if !merged {
			n.list = append(n.list, e)
		}
		if len(n.list) > maxEntries {
			d.fold(n)
			n.list = append(n.list, e)
		}
	} else {
		n.list = []entry{e}
	}
	for i := range n.list {
		n.count(&n.list[i], n.list[i].warp/d.per)
	}
	for i := range n.crowd {
		n.count(&n.crowd[i], n.crowd[i].warp)
	}
	return n
}

func (n *accesses) count(e *entry, block uint32) {
	n.latest = max(n.latest, e.time)
	n.writes = n.writes || e.mode&writes != 0
	if block != n.block {
		n.block = noBlock
	}
}

// covers tells whether all that conflicts with an access in mode o conflicts with a later one in mode e too.
func covers(e, o mode) bool {
	switch {
	case e == 0:
		return o&writes == 0
	case e&writes != 0:
		return o.scope() >= e.scope() && o.scope() > weakScope
	}
	return o&writes == 0 && o.scope() >= e.scope()
}

// fold gives up lanes and warps in favour of blocks, with the latest time of each. Kernels that order such a word's accesses by less than
// whole blocks are then taken for racy; none of the usual ones does.
func (d *races) fold(n *accesses) {
next:
	for _, e := range n.list {
		e.warp, e.lanes = e.warp/d.per, 0
		for i := range n.crowd {
			if c := &n.crowd[i]; c.warp == e.warp && c.mode == e.mode {
				if e.time > c.time {
					*c = e
				}
				continue next
			}
		}
		n.crowd = append(n.crowd, e)
	}
	n.list = n.list[:0]
}
