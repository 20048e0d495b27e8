package shadow

import (
	"math/bits"
	"slices"
)

// Races: two threads access a byte, at least one of them writes, and neither access happens before the other. Accesses
// that are both strong (atomic, volatile, relaxed, acquire, release), in scopes that include each other's threads, never
// race: PTX ISA, "Memory Consistency Model". What is kept follows FastTrack: for each word the last weak write, and the
// accesses since that a later one might conflict with.

// mode is how an access takes part in races: its lowest bit says that it writes, the rest is its scope: 0 for weak
// accesses.
type mode uint8

const (
	writes     mode = 1
	scopeShift      = 1
)

// Scope is which threads an access or a fence synchronises with. The distance of two threads is that of the smallest scope with both.
type Scope int

// The scopes.
const (
	Weak Scope = iota // an access that does not synchronise
	CTA
	Cluster
	GPU
)

const noBlock = ^uint32(0)

func (m mode) scope() Scope { return Scope(m >> scopeShift) }

// entry is an access of some lanes of a warp. Time 0 stands for none.
type entry struct {
	time  uint64
	warp  uint32
	lanes uint32
	at    int32 // the instruction in the program
	mode  mode
}

// cell is the history of a word of 4 bytes, or of a byte in a word whose bytes have different ones.
type cell struct {
	time   uint64 // of the last weak write
	thread uint32
	at     int32
	first  entry     // one of the reads and strong accesses since: most words have no more
	more   *accesses // the others; nil for none
}

// accesses are the reads and strong accesses of a cell beside the first.
type accesses struct {
	list   []entry
	crowd  *crowd
	latest uint64   // of all times in them
	warps  uint64   // which warps are in the list, by their numbers' last six bits
	alien  bool     // some are of other blocks than the list's first
	writes bool     // some write
	bytes  *[4]cell // or the cells of a word's bytes
	// observer is the thread, plus one, of the last strong access if that was an atomic operation, and observed its time. What it
	// observed precedes all that it does since, and all that follows from that ("Memory Consistency Model", causality order), weak
	// accesses to this word among it. All strong accesses before count as observed.
	observer uint32
	observed uint64
}

// none tells whether there are no accesses.
func (s *accesses) none() bool {
	return s == nil || len(s.list) == 0 && s.crowd == nil && s.bytes == nil
}

// clear forgets them and keeps the memory.
func (s *accesses) clear() {
	if s != nil {
		*s = accesses{list: s.list[:0]}
	}
}

// crowd is what remains of lists that would become too long: the latest access of each block in each mode. The entries'
// warp is a block. Words that the same threads have read share it, so it never changes.
type crowd struct {
	list []entry
	id   uint64
}

// How long lists may become: any word of shared memory may be read by all warps of a block; a crowd may read global memory.
const (
	maxShared = 64
	maxGlobal = 16
)

// Conflict is an earlier access with which one races.
type Conflict struct {
	Thread        uint32 // see Races.Locate
	At            int32  // its instruction
	Write, Strong bool
}

// conflict is the Conflict of a thread's access in a mode.
func conflict(thread uint32, at int32, m mode) Conflict {
	return Conflict{thread, at, m&writes != 0, m.scope() != Weak}
}

// Races finds races of a launch.
type Races struct {
	// Limits are how long the lists of a word's accesses become, in shared and in global memory. Beyond them accesses are known by
	// block only.
	Limits [2]int

	clocks
	cluster uint32 // blocks in a cluster
	crowds  uint64
	memo    [1 << 10]transition
}

// NewRaces returns a Races in which nothing has happened.
func NewRaces() *Races {
	return &Races{Limits: [2]int{maxShared, maxGlobal}, clocks: clocks{now: 1}}
}

// Begin starts a launch of blocks with so many warps, in clusters of so many blocks. All that was before happened before it.
func (d *Races) Begin(warps, blocks int) {
	d.base = d.tick()
	d.per, d.cluster = uint32(warps), uint32(blocks)
}

// Start makes w the warp with an index in the block with a rank in a cluster, of which the lanes in exists exist. It knows what was
// before the launch.
func (d *Races) Start(w *Warp, cluster, rank, index int, exists uint32) {
	block := uint32(cluster)*d.cluster + uint32(rank)
	id := block*d.per + uint32(index)
	*w = Warp{id: id, block: block, lo: block * d.per, epoch: d.tick(), gone: ^exists}
	w.common = &view{block: block, warp: id, all: d.base, mine: d.base}
}

// Locate says which thread of a launch a number stands for: cluster, rank of its block in the cluster and index in the block.
func (d *Races) Locate(thread uint32) (cluster, rank, index int) {
	warp := thread / warpSize
	block := warp / d.per
	return int(block / d.cluster), int(block % d.cluster), int(warp%d.per*warpSize + thread%warpSize)
}

// transition is a step from crowd to crowd that has been computed before.
type transition struct {
	from, to *crowd
	e        entry
}

// distance is the level of the smallest scope that holds both blocks.
func (d *Races) distance(a, b uint32) Scope {
	switch {
	case a == b:
		return CTA
	case a/d.cluster == b/d.cluster:
		return Cluster
	}
	return GPU
}

// touch notes an access of a lane to a cell. from is the time before which nothing counts. It returns
// false and the access with which it races.
func (d *Races) touch(w *Warp, lane int, v *view, cl *cell, from uint64, m mode, at int32, limit int) (Conflict, bool) {
	me := w.id*warpSize + uint32(lane)
	if t := cl.time; t > from && cl.thread != me && (t > v.all || cl.thread/warpSize-w.lo >= d.per) &&
		!d.before(v, cl.thread/warpSize, 1<<(cl.thread%warpSize), t) {
		return conflict(cl.thread, cl.at, writes), false
	}
	if cl.stale(from) {
		cl.first = entry{}
		cl.more.clear()
	}
	ordered := cl.quiet(w, v, d.per)
	if m == writes { // weak
		if !ordered {
			if c, ok := d.conflicts(w, lane, v, cl, from, m); !ok {
				return c, false
			}
		}
		more := cl.more
		more.clear()
		*cl = cell{time: w.epoch, thread: me, at: at, more: more}
		return Conflict{}, true
	}
	e := entry{w.epoch, w.id, 1 << lane, at, m}
	if ordered && (cl.more.none() || m == 0 && !cl.more.writes) && (cl.first.time == 0 || covers(m, cl.first.mode)) {
		cl.first = e
		cl.more.clear()
		return Conflict{}, true
	}
	if !ordered && (m != 0 || cl.first.mode&writes != 0 || cl.more != nil && cl.more.writes) {
		if c, ok := d.conflicts(w, lane, v, cl, from, m); !ok {
			return c, false
		}
	}
	d.add(w, v, cl, from, e, limit)
	return Conflict{}, true
}

// stale tells whether no access since the last write counts, but for those of bytes.
func (cl *cell) stale(from uint64) bool {
	return cl.first.time <= from && (cl.more == nil || cl.more.latest <= from && cl.more.bytes == nil)
}

// quiet tells quickly whether all accesses since the last write happened before: those of the own block, up to its last
// barrier.
func (cl *cell) quiet(w *Warp, v *view, per uint32) bool {
	f := &cl.first
	return f.time <= v.all && (f.time == 0 || f.warp-w.lo < per) &&
		(cl.more == nil || cl.more.latest <= v.all && !cl.more.alien && (len(cl.more.list) == 0 || cl.more.list[0].warp-w.lo < per))
}

// racing tells whether accesses in these modes conflict, in blocks at a distance.
func racing(a, b mode, distance Scope) bool {
	return (a|b)&writes != 0 && (a.scope() < distance || b.scope() < distance)
}

// conflicts looks for an entry that conflicts with a lane's access.
func (d *Races) conflicts(w *Warp, lane int, v *view, cl *cell, from uint64, m mode) (Conflict, bool) {
	observed := m.scope() == Weak && cl.more != nil && cl.more.observer != 0 && d.follows(w, lane, v, cl.more)
	if !(observed && cl.first.mode.scope() != Weak) {
		if c, ok := d.against(w, lane, v, &cl.first, from, m); !ok {
			return c, false
		}
	}
	if cl.more == nil {
		return Conflict{}, true
	}
	for i := range cl.more.list {
		if observed && cl.more.list[i].mode.scope() != Weak {
			continue
		}
		if c, ok := d.against(w, lane, v, &cl.more.list[i], from, m); !ok {
			return c, false
		}
	}
	if cl.more.crowd != nil {
		for _, e := range cl.more.crowd.list {
			if observed && e.mode.scope() != Weak {
				continue
			}
			if e.time > from && racing(m, e.mode, d.distance(w.block, e.warp)) && e.time > d.knownBlock(v, e.warp) {
				return conflict(e.warp*d.per*warpSize, e.at, e.mode), false
			}
		}
	}
	return Conflict{}, true
}

// observe notes a strong access, after it was added.
func (cl *cell) observe(c *Warp, lane int, atomic bool) {
	if cl.more == nil {
		if cl.first.lanes&(cl.first.lanes-1) == 0 {
			return // there was no other to observe
		}
		cl.more = &accesses{}
	}
	cl.more.observer, cl.more.observed = 0, c.epoch
	if atomic {
		cl.more.observer = c.id*warpSize + uint32(lane) + 1
	}
}

// follows tells whether a lane's access comes after what the observer saw.
func (d *Races) follows(w *Warp, lane int, v *view, s *accesses) bool {
	o := s.observer - 1
	return o == w.id*warpSize+uint32(lane) || d.before(v, o/warpSize, 1<<(o%warpSize), s.observed)
}

func (d *Races) against(w *Warp, lane int, v *view, e *entry, from uint64, m mode) (Conflict, bool) {
	lanes := e.lanes
	if e.warp == w.id {
		lanes &^= 1 << lane
	}
	if lanes == 0 || e.time <= from || !racing(m, e.mode, d.distance(w.block, e.warp/d.per)) ||
		d.before(v, e.warp, lanes, e.time) {
		return Conflict{}, true
	}
	for ; ; lanes &= lanes - 1 {
		if one := lanes & -lanes; !d.before(v, e.warp, one, e.time) {
			return conflict(e.warp*warpSize+uint32(bits.TrailingZeros32(one)), e.at, e.mode), false
		}
	}
}

// add notes an access of lanes, which conflicts with nothing.
func (d *Races) add(w *Warp, v *view, cl *cell, from uint64, e entry, limit int) {
	same := func(o *entry) bool {
		if o.warp != e.warp || o.time != e.time || o.mode != e.mode {
			return false
		}
		if o.at == e.at {
			o.lanes |= e.lanes
		}
		return o.lanes&e.lanes == e.lanes
	}
	if same(&cl.first) {
		return
	}
	if cl.first.time == 0 {
		cl.first = e
		return
	}
	s := cl.more
	if s == nil {
		s = &accesses{}
		cl.more = s
	}
	for i := len(s.list) - 1; i >= 0 && s.warps>>(e.warp&63)&1 != 0; i-- {
		if same(&s.list[i]) {
			return
		}
	}
	s.append(e, d.per)
	if len(s.list)&7 == 0 {
		// Entries go that happened before e and conflict with nothing with which e does not conflict.
		gone := func(o entry) bool {
			return covers(e.mode, o.mode) && o.time != e.time && (o.time <= from || d.before(v, o.warp, o.lanes, o.time))
		}
		s.list = slices.DeleteFunc(s.list, gone)
		if len(s.list) > limit {
			d.fold(w, s, limit)
		}
		s.summary()
	}
}

// append adds an entry. per is the warps of a block.
func (s *accesses) append(e entry, per uint32) {
	s.list = append(s.list, e)
	s.include(&e)
	s.alien = s.alien || e.warp/per != s.list[0].warp/per
}

func (s *accesses) include(e *entry) {
	s.latest = max(s.latest, e.time)
	s.warps |= 1 << (e.warp & 63)
	s.writes = s.writes || e.mode&writes != 0
}

// summary computes anew what quick looks need.
func (s *accesses) summary() {
	s.latest, s.warps, s.writes, s.alien = 0, 0, false, true
	for i := range s.list {
		s.include(&s.list[i])
	}
	if s.crowd != nil {
		for i := range s.crowd.list {
			s.include(&s.crowd.list[i])
		}
	}
}

// covers tells whether all that conflicts with an access in mode o conflicts with a later one in mode e too.
func covers(e, o mode) bool {
	switch {
	case e == 0:
		return o&writes == 0
	case e&writes != 0:
		return o.scope() >= e.scope() && o.scope() > Weak
	}
	return o&writes == 0 && o.scope() >= e.scope()
}

// fold gives up lanes and warps in favour of blocks, first of other blocks than the warp's. Kernels that order such a
// word's accesses by less than whole blocks are then taken for racy; none of the usual ones does.
func (d *Races) fold(w *Warp, s *accesses, limit int) {
	for _, own := range []bool{false, true} {
		s.list = slices.DeleteFunc(s.list, func(e entry) bool {
			if block := e.warp / d.per; own || block != w.block {
				s.crowd = d.joinCrowd(s.crowd, entry{time: e.time, warp: block, at: e.at, mode: e.mode})
				return true
			}
			return false
		})
		if len(s.list) <= limit {
			return
		}
	}
}

// joinCrowd is a crowd with one more block.
func (d *Races) joinCrowd(c *crowd, e entry) *crowd {
	id := uint64(0)
	if c != nil {
		id = c.id
	}
	h := (id*0x9e3779b97f4a7c15 ^ uint64(e.warp)*0xd6e8feb86659fd93 ^ e.time*0xff51afd7ed558ccd) >> 20
	t := &d.memo[h%uint64(len(d.memo))]
	if t.from == c && t.to != nil && t.e.time == e.time && t.e.warp == e.warp && t.e.mode == e.mode {
		return t.to
	}
	n := &crowd{}
	d.crowds++
	n.id = d.crowds
	if c != nil {
		n.list = slices.DeleteFunc(slices.Clone(c.list), func(o entry) bool {
			return o.time <= d.base || o.warp == e.warp && o.mode == e.mode && o.time <= e.time
		})
	}
	n.list = append(n.list, e)
	*t = transition{c, n, e}
	return n
}
