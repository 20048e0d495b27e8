package sim

import (
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/shadow"
)

func (d *watch) complete(key any) {
	if p := d.posts[key]; p != nil {
		p.Complete()
	}
}

func (d *watch) release(w *warp, lanes uint32, key any) {
	if d.checks&CheckRace == 0 {
		return
	}
	c := &w.watched.clock
	b, ok := key.(*barrier)
	if !ok {
		d.races.Release(d.post(key), c, lanes)
		return
	}
	m := d.barriers[b]
	if m == nil {
		m = &shadow.Barrier{}
		d.barriers[b] = m
	}
	open := b.want != 0
	switch w.prog.code[w.at].in.Op {
	case "bar.arrive", "barrier.arrive", "bar.cta.arrive", "barrier.cta.arrive":
		open = true
	}
	d.races.Arrive(m, c, w.index, lanes, open)
}

func (d *watch) post(key any) *shadow.Post {
	p := d.posts[key]
	if p == nil {
		p = &shadow.Post{}
		d.posts[key] = p
	}
	return p
}

func (d *watch) releaseFenced(w *warp, lanes uint32, key any) {
	if d.checks&CheckRace != 0 {
		d.races.ReleaseFenced(d.post(key), &w.watched.clock, lanes)
	}
}

func (d *watch) acquire(w *warp, lanes uint32, key any) {
	if d.checks&CheckRace == 0 {
		return
	}
	c := &w.watched.clock
	if b, ok := key.(*barrier); ok {
		d.races.Pass(d.barriers[b], c, lanes, func(i int) *shadow.Warp { return &w.block.warps[i].watched.clock })
	} else if p := d.posts[key]; p != nil {
		d.races.Acquire(p, c, lanes)
	}
}

// meet orders the lanes of a warp at bar.warp.sync. Other instructions with .sync wait for lanes, but do not order memory.
func (d *watch) meet(w *warp, lanes uint32) {
	if d.checks&CheckRace != 0 && w.prog.code[w.at].in.Op == "bar.warp.sync" {
		d.races.Meet(&w.watched.clock, lanes)
	}
}

func (d *watch) exit(w *warp, lanes uint32) { w.watched.clock.Exit(lanes) }

func (d *watch) fence(w *warp, lanes uint32, sem, scope ir.Mod) {
	if d.checks&CheckRace != 0 {
		d.races.Fence(&w.watched.clock, lanes, w.at, scopeOf(scope), sem != ir.Release, sem != ir.Acquire)
	}
}

// scopeOf is a scope of PTX. One GPU is the whole system here.
func scopeOf(m ir.Mod) shadow.Scope {
	switch m {
	case ir.ScopeCTA:
		return shadow.CTA
	case ir.ScopeCluster:
		return shadow.Cluster
	}
	return shadow.GPU
}
