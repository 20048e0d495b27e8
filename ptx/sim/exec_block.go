package sim

import (
	"github.com/wavelane/wavelane/ptx/ir"
)

// block is a thread block while it runs. Blocks are used again for later ones of the same launch.
type block struct {
	grid    *grid
	cluster *cluster
	rank    int // in the cluster
	id      Dim3
	shared  segment
	warps   []*warp
	live    int // threads
	bars    [16]barrier
	async   blockAsync
	tensor  tensorMemory
}

// newCluster makes the state of a cluster of the worker's launch.
func newCluster(k *worker) *cluster {
	g := k.grid
	c := &cluster{grid: g, work: k}
	size := g.launch.Cluster.count()
	for rank := range size {
		b := &block{grid: g, cluster: c, rank: rank}
		b.shared = segment{space: ir.SharedSpace, name: "the block's shared memory", data: make([]byte, g.shared), size: g.shared}
		for first := 0; first < g.launch.Block.count(); first += warpSize {
			w := newWarp(g, b, first/warpSize)
			w.work = k
			b.warps = append(b.warps, w)
			c.warps = append(c.warps, w)
		}
		c.blocks = append(c.blocks, b)
	}
	return c
}

func newWarp(g *grid, b *block, index int) *warp {
	p := g.prog
	w := &warp{block: b, prog: p, index: index, mon: g.gpu.mon,
		r32: make([][warpSize]uint32, p.slots[bank32]), r64: make([][warpSize]uint64, p.slots[bank64]),
		p: make([]uint32, p.slots[bankP])}
	w.exists = uint32(1<<min(warpSize, g.launch.Block.count()-index*warpSize) - 1)
	if g.gpu.mon != nil && g.gpu.cfg.Checks&CheckInit != 0 {
		w.def = new([3][]uint32)
		for i := range w.def {
			w.def[i] = make([]uint32, p.slots[i])
		}
	}
	return w
}

// reset makes the cluster the i-th of its launch, with nothing executed.
func (c *cluster) reset(i int64) {
	g := c.grid
	c.id = g.shape.at(int(i))
	c.live, c.now, c.turn, c.events = 0, 0, 0, c.events[:0]
	c.async.reset()
	for rank, b := range c.blocks {
		in := g.launch.Cluster.at(rank)
		b.id = Dim3{c.id.X*g.launch.Cluster.X + in.X, c.id.Y*g.launch.Cluster.Y + in.Y, c.id.Z*g.launch.Cluster.Z + in.Z}
		b.live = g.launch.Block.count()
		c.live += b.live
		b.bars = [16]barrier{}
		b.async.reset()
		b.tensor.reset()
		clear(b.shared.data)
		if g.gpu.mon != nil {
			g.gpu.mon.forget(&b.shared, 0, len(b.shared.data))
		}
		for _, w := range b.warps {
			w.reset()
		}
	}
}

// reset makes the warp begin the kernel.
func (w *warp) reset() {
	w.resetRegisters()
	w.stale, w.idle = false, false
	w.cc, w.blocked, w.waiters, w.sync = 0, 0, w.waiters[:0], clusterBarrier{}
	w.live, w.act = w.exists, 0
	w.place(w.exists, w.prog.funcs[len(w.prog.funcs)-1].entry)
	w.async.reset()
	if w.prog.local {
		w.resetFrames()
	}
	if w.mon != nil {
		w.mon.started(w)
	}
	w.repick()
}

// resetRegisters makes registers zero and undefined. Constants and the special registers that no block changes are written
// for the first block alone.
func (w *warp) resetRegisters() {
	for _, r := range w.prog.variable[bank32] {
		clear(w.r32[r[0]:r[1]])
	}
	for _, r := range w.prog.variable[bank64] {
		clear(w.r64[r[0]:r[1]])
	}
	for bank, runs := range w.prog.variable {
		for _, r := range runs {
			if bank == bankP {
				clear(w.p[r[0]:r[1]])
			}
			if w.def != nil {
				clear(w.def[bank][r[0]:r[1]])
			}
		}
	}
	for _, s := range w.prog.perBlock {
		v := s.read(w, 0)
		r := &w.r32[s.slot]
		for lane := range r {
			r[lane] = uint32(v)
		}
	}
	if w.preset {
		return
	}
	w.preset = true
	set := func(r ref, v func(lane int) uint64) {
		for lane := range warpSize {
			w.set(r, lane, v(lane))
		}
		if w.def != nil {
			w.def[r.bank][r.i] = full
		}
	}
	for _, k := range w.prog.consts {
		set(k.ref, func(int) uint64 { return k.v })
	}
	for name, r := range w.prog.special {
		read := specials()[name].read
		set(r, func(lane int) uint64 { return read(w, lane) })
	}
}

// exited notes that n threads of the block have ended, which may complete barriers.
func (b *block) exited(n int) {
	b.live -= n
	b.cluster.live -= n
	for i := range b.bars {
		b.bars[i].settle(b)
	}
	b.cluster.settle()
}

// linear is the block's index in the grid, x first.
func (b *block) linear() int {
	g := b.grid.launch.Grid
	return b.id.X + g.X*(b.id.Y+g.Y*b.id.Z)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
