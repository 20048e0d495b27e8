package shadow

import (
	"math/bits"
)

// Barrier is the arrivals at a barrier of a block: those of the current turn or, once sealed, of the last one. The zero value is one at
// which nobody has arrived.
type Barrier struct {
	v      *view // what all that arrived knew
	lanes  []uint32
	times  []uint64
	open   bool // somebody arrived without waiting, or not all threads are meant
	sealed *view
	after  uint64
}

// Arrive notes that lanes of the warp with an index in its block arrive. open says that not all threads of the block wait for each other:
// the barrier is for some, or these lanes do not wait.
func (d *Races) Arrive(b *Barrier, w *Warp, index int, lanes uint32, open bool) {
	if b.lanes == nil {
		b.lanes, b.times = make([]uint32, d.per), make([]uint64, d.per)
	}
	if b.sealed != nil {
		b.v, b.sealed, b.open = nil, nil, false
		clear(b.lanes)
	}
	b.v = d.join(b.v, d.together(w, lanes))
	b.lanes[index] |= lanes
	b.times[index] = w.epoch
	b.open = b.open || open
	w.epoch = d.tick()
}

// Pass notes that lanes go on after a barrier that is complete: they know what all knew that arrived. block returns the warps of the
// block.
func (d *Races) Pass(b *Barrier, w *Warp, lanes uint32, block func(index int) *Warp) {
	if b.sealed == nil {
		d.seal(b, block)
	}
	// Those that waited told all that they knew.
	w.set(lanes, b.sealed)
	w.epoch = max(w.epoch, b.after)
}

// seal ends a turn of a barrier: what each of those that waited knows now.
func (d *Races) seal(b *Barrier, block func(index int) *Warp) {
	n := *b.v
	whole := !b.open
	for i, arrived := range b.lanes {
		whole = whole && arrived|block(i).gone == full
	}
	if whole {
		// Threads that have exited are not asked: what they did is taken for visible.
		n.all = d.now
	} else {
		var warps, threads stamps
		for i, lanes := range b.lanes {
			w := block(i)
			switch {
			case lanes == 0:
			case lanes|w.gone == full:
				warps = append(warps, stamp{w.id, b.times[i]})
			default:
				for ; lanes != 0; lanes &= lanes - 1 {
					threads = append(threads, stamp{w.id*warpSize + uint32(bits.TrailingZeros32(lanes)), b.times[i]})
				}
			}
		}
		n.warps, n.threads = n.warps.join(warps), n.threads.join(threads)
	}
	d.prune(&n)
	b.sealed, b.after = &n, d.tick()
}

// Post is what has been released to something that threads acquire from: a cluster's barrier, an mbarrier.
type Post struct {
	open, done *view // in the current phase, and in the last one
	phases     bool
}

// Release hands what lanes know, and did, to those who acquire from p afterwards.
func (d *Races) Release(p *Post, w *Warp, lanes uint32) { p.open = d.join(d.publish(w, lanes), p.open) }

// ReleaseFenced hands what lanes knew, and did, before their last fence for their cluster or more: those who hand it arrive relaxed.
func (d *Races) ReleaseFenced(p *Post, w *Warp, lanes uint32) {
	for ; lanes != 0 && w.fences != nil; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		if s := w.fences[lane].released[Cluster-1]; s.v != nil {
			p.open = d.join(d.view(s, w.id*warpSize+uint32(lane)), p.open)
		}
	}
}

// Acquire lets lanes know what has been released: in the last complete phase if there was one, else all.
func (d *Races) Acquire(p *Post, w *Warp, lanes uint32) {
	if p.phases {
		d.learn(w, lanes, p.done)
	} else {
		d.learn(w, lanes, p.open)
	}
}

// Complete ends a phase.
func (p *Post) Complete() { p.open, p.done, p.phases = nil, p.open, true }

// Meet orders lanes of a warp with each other.
func (d *Races) Meet(w *Warp, lanes uint32) { w.set(lanes, d.publish(w, lanes)) }

// Exit notes that lanes have ended.
func (w *Warp) Exit(lanes uint32) { w.gone |= lanes }

// Fence notes a fence of lanes at an instruction, which acquires, releases or both.
func (d *Races) Fence(w *Warp, lanes uint32, at int32, scope Scope, acquire, release bool) {
	d.fresh(w, lanes, at)
	if w.fences == nil {
		w.fences = new([warpSize]fences)
	}
	if acquire {
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			pending := w.fences[lane].pending[:scope]
			for i, v := range pending {
				if v != nil {
					d.learn(w, 1<<lane, v)
					pending[i] = nil
				}
			}
		}
	}
	if release {
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			for i := range scope {
				w.fences[lane].released[i] = snapshot{w.view(lane), w.epoch}
			}
		}
		w.epoch = d.tick()
	}
}

// location is a place in memory on which releases are handed on.
type location struct {
	thread uint32 // the last one that wrote, without reading before
	parts  []part
}

// part is a release: for threads within scope of the releasing one.
type part struct {
	block uint32 // noBlock: of several
	scope Scope
	v     *view
}

// snapshot is what a fence published: what the thread knew, and its own accesses up to a time.
type snapshot struct {
	v *view
	t uint64
}

func (k *clocks) view(s snapshot, thread uint32) *view {
	n := *s.v
	n.threads = n.threads.with(thread, s.t)
	k.prune(&n)
	return &n
}

// synchronise is what a strong access of a lane does for order: it takes part in releases and acquires.
func (d *Races) synchronise(w *Warp, lane int, h *History, off int, a *Access) {
	l := h.marks[off]
	if (!a.Write || a.Atomic) && l != nil {
		for _, p := range l.parts {
			distance := GPU
			if p.block != noBlock {
				distance = d.distance(p.block, w.block)
			}
			if p.scope < distance || a.Scope < distance {
				continue
			}
			if a.Acquire {
				d.learn(w, 1<<lane, p.v)
				continue
			}
			if w.fences == nil {
				w.fences = new([warpSize]fences)
			}
			f := &w.fences[lane].pending[distance-1]
			*f = d.join(*f, p.v)
		}
	}
	if !a.Write {
		return
	}
	thread := w.id*warpSize + uint32(lane)
	var parts []part
	if w.fences != nil {
		var last snapshot
		for i := GPU - 1; i >= 0; i-- { // from the widest: narrower ones may know more
			if s := w.fences[lane].released[i]; s.v != nil && s != last {
				parts = append(parts, part{w.block, min(i+1, a.Scope), d.view(s, thread)})
				last = s
			}
		}
	}
	if a.Release {
		parts = append(parts, part{w.block, a.Scope, d.publishOne(w, lane, a.At)})
	}
	switch {
	case l == nil && parts == nil:
		return
	case l == nil:
		if h.marks == nil {
			h.marks = map[int]*location{}
		}
		l = &location{}
		h.marks[off] = l
	case !a.Atomic && l.thread != thread:
		l.parts = l.parts[:0]
	}
	if !a.Atomic {
		l.thread = thread
	}
	for _, p := range parts {
		l.add(d, p)
	}
}

// add joins a release with those before in the same scope.
func (l *location) add(r *Races, p part) {
	for i := range l.parts {
		q := &l.parts[i]
		switch {
		case q.scope != p.scope:
		case q.block == p.block:
			q.v = r.join(p.v, q.v)
			return
		case p.scope == GPU:
			q.v, q.block = r.join(p.v, q.v), noBlock
			return
		case p.scope == Cluster && q.block != noBlock && r.distance(p.block, q.block) <= Cluster:
			q.v = r.join(p.v, q.v)
			return
		}
	}
	l.parts = append(l.parts, p)
}
