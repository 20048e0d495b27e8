package sim

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

// order is what synchronises threads beside their programs: barriers, and locations that carry releases.
type order struct {
	meetings map[*barrier]*meeting
	keys     map[any]*post
}

func (o *order) begin() {
	*o = order{meetings: map[*barrier]*meeting{}, keys: map[any]*post{}}
}

// begin starts a launch: all that was before happened before it.
func (d *races) begin(g *grid) {
	d.base = d.tick()
	d.per = uint32((g.launch.Block.count() + warpSize - 1) / warpSize)
	d.cluster = uint32(g.launch.Cluster.count())
}

// start gives a warp its place: blocks of a cluster follow each other.
func (d *races) start(c *warpClock, w *warp) {
	g := w.block.grid
	id := w.block.cluster.id
	cluster := uint32(id.X + g.shape.X*(id.Y+g.shape.Y*id.Z))
	block := cluster*d.cluster + uint32(w.block.rank)
	d.clocks.start(c, block*d.per+uint32(w.index), block, cluster, w.exists)
}

// who describes a thread's access.
func (d *watch) who(thread uint32, at int32, m mode) *Access {
	g := d.grid
	warp, r := thread/warpSize, d.races
	block := warp / r.per
	cluster, rank := g.shape.at(int(block/r.cluster)), g.launch.Cluster.at(int(block%r.cluster))
	in := &g.prog.code[at]
	c := g.launch.Cluster
	return &Access{Instr: in.text(), Pos: in.in.Pos,
		Block:  Dim3{cluster.X*c.X + rank.X, cluster.Y*c.Y + rank.Y, cluster.Z*c.Z + rank.Z},
		Thread: g.threadAt(int(warp%r.per*warpSize + thread%warpSize)),
		Write:  m&writes != 0, Atomic: m.scope() != weakScope}
}

// meeting is the arrivals at a barrier of a block: those of the current turn or, once sealed, of the last one.
type meeting struct {
	v      *view // what all that arrived knew
	lanes  []uint32
	times  []uint64
	open   bool // somebody arrived without waiting, or not all threads are meant
	sealed *view
	after  uint64
}

// post is what has been released to a key other than a block's barrier.
type post struct {
	open, done *view // in the current phase, and in the last one
	phases     bool
}

func (d *watch) complete(key any) {
	if p := d.order.keys[key]; p != nil {
		p.open, p.done, p.phases = nil, p.open, true
	}
}

func (d *watch) release(w *warp, lanes uint32, key any) {
	if d.checks&CheckRace == 0 {
		return
	}
	c, r := &w.watched.clock, d.races
	b, ok := key.(*barrier)
	if !ok {
		p := d.order.keys[key]
		if p == nil {
			p = &post{}
			d.order.keys[key] = p
		}
		p.open = r.join(r.publish(c, lanes), p.open)
		return
	}
	m := d.order.meetings[b]
	if m == nil {
		m = &meeting{lanes: make([]uint32, r.per), times: make([]uint64, r.per), open: b.want != 0}
		d.order.meetings[b] = m
	}
	if m.sealed != nil {
		m.v, m.sealed, m.open = nil, nil, b.want != 0
		clear(m.lanes)
	}
	m.v = r.join(m.v, r.together(c, lanes))
	m.lanes[w.index] |= lanes
	m.times[w.index] = c.epoch
	c.epoch = r.tick()
	switch w.prog.code[w.at].in.Op {
	case "bar.arrive", "barrier.arrive", "bar.cta.arrive", "barrier.cta.arrive":
		m.open = true
	}
}

func (d *watch) acquire(w *warp, lanes uint32, key any) {
	if d.checks&CheckRace == 0 {
		return
	}
	c, r := &w.watched.clock, d.races
	b, ok := key.(*barrier)
	if !ok {
		switch p := d.order.keys[key]; {
		case p == nil:
		case p.phases:
			r.learn(c, lanes, p.done)
		default:
			r.learn(c, lanes, p.open)
		}
		return
	}
	m := d.order.meetings[b]
	if m.sealed == nil {
		m.seal(r, w.block)
	}
	// Those that waited told all that they knew.
	c.set(lanes, m.sealed)
	c.epoch = max(c.epoch, m.after)
}

// seal ends a turn of a barrier: what each of those that waited knows now.
func (m *meeting) seal(r *races, b *block) {
	n := *m.v
	whole := !m.open
	for i, w := range b.warps {
		whole = whole && w.live&^m.lanes[i] == 0
	}
	if whole {
		// Threads that have exited are not asked: what they did is taken for visible.
		n.all = r.now
	} else {
		var warps, threads stamps
		for i, w := range b.warps {
			c := &w.watched.clock
			switch lanes := m.lanes[i]; {
			case lanes == 0:
			case lanes|c.gone == full:
				warps = append(warps, stamp{c.id, m.times[i]})
			default:
				for ; lanes != 0; lanes &= lanes - 1 {
					threads = append(threads, stamp{c.id*warpSize + uint32(bits.TrailingZeros32(lanes)), m.times[i]})
				}
			}
		}
		n.warps, n.threads = n.warps.join(warps), n.threads.join(threads)
	}
	r.prune(&n)
	m.sealed, m.after = &n, r.tick()
}

// meet orders the lanes of a warp at bar.warp.sync. Other instructions with .sync wait for lanes, but do not order memory.
func (d *watch) meet(w *warp, lanes uint32) {
	if d.checks&CheckRace == 0 || w.prog.code[w.at].in.Op != "bar.warp.sync" {
		return
	}
	c := &w.watched.clock
	c.set(lanes, d.races.publish(c, lanes))
}

func (d *watch) exit(w *warp, lanes uint32) { w.watched.clock.gone |= lanes }

// scopeOf is the level of a scope.
func scopeOf(m ir.Mod) int {
	switch m {
	case ir.ScopeCTA:
		return ctaScope
	case ir.ScopeCluster:
		return clusterScope
	}
	return gpuScope // one GPU is the whole system here
}

// location is a place in memory on which releases are handed on.
type location struct {
	thread uint32 // the last one that wrote, without reading before
	parts  []part
}

// part is a release: for threads within scope of the releasing one.
type part struct {
	block uint32 // noBlock: of several
	scope int
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

func (d *watch) fence(w *warp, lanes uint32, sem, scope ir.Mod) {
	if d.checks&CheckRace == 0 {
		return
	}
	c, r := &w.watched.clock, d.races
	r.fresh(c, lanes, w.at)
	if c.fences == nil {
		c.fences = new([warpSize]fences)
	}
	level := scopeOf(scope)
	for m := lanes; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		f := &c.fences[lane]
		if sem != ir.Release {
			for i := range level {
				if f.pending[i] != nil {
					r.learn(c, 1<<lane, f.pending[i])
					f.pending[i] = nil
				}
			}
		}
	}
	if sem != ir.Acquire {
		for m := lanes; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			for i := range level {
				c.fences[lane].released[i] = snapshot{c.view(lane), c.epoch}
			}
		}
		c.epoch = r.tick()
	}
}

// strong is what a strong access does for order: it takes part in releases and acquires.
func (d *watch) strong(w *warp, lane int, op *memOp, sh *shadow, off int) {
	c, r := &w.watched.clock, d.races
	scope := scopeOf(op.scope)
	l := sh.marks[off]
	if (!op.write || op.atomic) && l != nil {
		for _, p := range l.parts {
			distance := gpuScope
			if p.block != noBlock {
				distance = r.distance(p.block, c.block)
			}
			if p.scope < distance || scope < distance {
				continue
			}
			switch op.sem {
			case ir.Acquire, ir.AcqRel, ir.SC:
				r.learn(c, 1<<lane, p.v)
			default:
				if c.fences == nil {
					c.fences = new([warpSize]fences)
				}
				f := &c.fences[lane].pending[distance-1]
				*f = r.join(*f, p.v)
			}
		}
	}
	if !op.write {
		return
	}
	thread := c.id*warpSize + uint32(lane)
	var parts []part
	if c.fences != nil {
		var last snapshot
		for i := gpuScope - 1; i >= 0; i-- { // from the widest: narrower ones may know more
			if s := c.fences[lane].released[i]; s.v != nil && s != last {
				parts = append(parts, part{c.block, min(i+1, scope), r.view(s, thread)})
				last = s
			}
		}
	}
	switch op.sem {
	case ir.Release, ir.AcqRel, ir.SC:
		parts = append(parts, part{c.block, scope, r.publishOne(c, lane, w.at)})
	}
	switch {
	case l == nil && parts == nil:
		return
	case l == nil:
		if sh.marks == nil {
			sh.marks = map[int]*location{}
		}
		l = &location{}
		sh.marks[off] = l
	case !op.atomic && l.thread != thread:
		l.parts = l.parts[:0]
	}
	if !op.atomic {
		l.thread = thread
	}
	for _, p := range parts {
		l.add(r, p)
	}
}

// add joins a release with those before in the same scope.
func (l *location) add(r *races, p part) {
	for i := range l.parts {
		q := &l.parts[i]
		switch {
		case q.scope != p.scope:
		case q.block == p.block:
			q.v = r.join(p.v, q.v)
			return
		case p.scope == gpuScope:
			q.v, q.block = r.join(p.v, q.v), noBlock
			return
		case p.scope == clusterScope && q.block != noBlock && r.distance(p.block, q.block) <= clusterScope:
			q.v = r.join(p.v, q.v)
			return
		}
	}
	l.parts = append(l.parts, p)
}
