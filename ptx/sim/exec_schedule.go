package sim

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/shadow"
)

// How long something runs before something else has its turn, in instructions of warps.
const (
	quantum  = 4096    // of a warp, in the fixed schedule
	spinning = 128     // of a warp that may wait for others by looking at memory
	slice    = 1 << 16 // of a cluster
	resident = 1024    // clusters at most at the same time on one worker
	seeded   = 4       // clusters that take turns under a seed
)

// grid is a launch.
type grid struct {
	ctx       context.Context
	gpu       *GPU
	kernel    *Kernel
	prog      *program
	launch    Launch // with all dimensions set
	params    segment
	shape     Dim3 // clusters in the grid
	next      atomic.Int64
	total     int64 // clusters
	steps     atomic.Uint64
	shared    int // bytes of each block, static and dynamic
	clustered bool
	fences    uint32      // of proxies, executed by warps
	failed    atomic.Bool // a worker has met a fault: the others end
	workspace *segment    // of a cooperative launch, else nil
}

// threadAt is the index of a block's i-th thread.
func (g *grid) threadAt(i int) Dim3 { return g.launch.Block.at(i) }

// worker is a goroutine that runs clusters of blocks.
type worker struct {
	grid   *grid
	active []*cluster
	spare  []*cluster
	order  []int64 // of the clusters, under a seed
	rng    *rand.Rand
	cache  []*segment    // by memOp.slot: where the last access was
	groups shadow.Groups // of the lanes that load, with checks: see warp.reads
	clock  uint64        // instructions executed
	// By instruction: how often executed, and by how many lanes in all.
	count, lanes []uint64
	// The same of stretches, by their first instruction.
	stretches, stretchLanes []uint64
	extra                   []Counts // by instruction; nil without Config.Counters
	ticks                   uint64   // looks at a clock
}

// laneOf chooses one of the lanes.
func (k *worker) laneOf(m uint32) int {
	for n := k.rng.IntN(bits.OnesCount32(m)); n > 0; n-- {
		m &= m - 1
	}
	return first(m)
}

// run executes clusters until there are no more. It panics with a *Fault or, when the context ends, with its error.
func (k *worker) run() {
	limit, idle, most := 1, 0, resident
	if k.grid.launch.Cooperative {
		most = maxCooperative
	}
	if k.rng != nil {
		limit = seeded
	}
	for turn := 0; ; turn++ {
		for len(k.active) < min(limit+idle/2, most) {
			c := k.admit()
			if c == nil {
				break
			}
			k.active = append(k.active, c)
		}
		if len(k.active) == 0 {
			return
		}
		i := turn % len(k.active)
		n := slice
		if k.rng != nil {
			i, n = k.rng.IntN(len(k.active)), 1+k.rng.IntN(64)
		}
		c := k.active[i]
		ran := c.run(n)
		k.spent(c, ran)
		if k.grid.prog.strong {
			idle++ // it may wait for a block that has not begun
		}
		if c.done() {
			k.active = slices.Delete(k.active, i, i+1)
			k.spare = append(k.spare, c)
			idle = 0
		}
	}
}

// spent counts instructions and looks whether the launch has to end.
func (k *worker) spent(c *cluster, n int) {
	if total := k.grid.steps.Add(uint64(n)); total > k.grid.gpu.cfg.MaxSteps {
		w := c.blocks[0].warps[0]
		for _, b := range c.blocks {
			for _, v := range b.warps {
				if v.live != 0 {
					w = v
				}
			}
		}
		w.repick()
		w.pick()
		w.fault(Timeout, first(w.live), 0, 0, "%d instructions of warps, the limit is %d", total, k.grid.gpu.cfg.MaxSteps)
	}
	if err := k.grid.ctx.Err(); err != nil {
		panic(stopped{err})
	}
	if k.grid.failed.Load() {
		panic(stopped{errStopped})
	}
}

// stopped is what a worker panics with when the context ends.
type stopped struct{ err error }

// admit starts the next cluster, nil if all have started.
func (k *worker) admit() *cluster {
	i := k.grid.next.Add(1) - 1
	if i >= k.grid.total {
		return nil
	}
	if k.order != nil {
		i = k.order[i]
	}
	var c *cluster
	if n := len(k.spare); n > 0 {
		c, k.spare = k.spare[n-1], k.spare[:n-1]
	} else {
		c = newCluster(k)
	}
	c.reset(i)
	return c
}

// cluster is blocks that run together: those of a cluster, or a single one.
type cluster struct {
	grid   *grid
	work   *worker
	id     Dim3
	blocks []*block
	warps  []*warp // of all blocks
	turn   int
	live   int // threads
	now    uint64
	events []event
	async  clusterAsync
}

// event is something that happens later, in order of due.
type event struct {
	due uint64
	do  func()
}

// later calls f when the cluster has executed about delay more instructions, or earlier when none of its warps can run.
func (c *cluster) later(delay uint64, f func()) {
	e := event{c.now + delay, f}
	i := len(c.events)
	for i > 0 && c.events[i-1].due > e.due {
		i--
	}
	c.events = slices.Insert(c.events, i, e)
}

// due lets the events happen whose time has come, or the earliest one if force is set. It tells whether any did.
func (c *cluster) due(force bool) bool {
	any := false
	for len(c.events) > 0 && (c.events[0].due <= c.now || force) {
		e := c.events[0]
		c.events = slices.Delete(c.events, 0, 1)
		e.do()
		any, force = true, false
	}
	return any
}

func (c *cluster) done() bool { return c.live == 0 && len(c.events) == 0 }

// run executes about n instructions of the cluster's warps, and tells how many.
func (c *cluster) run(n int) int {
	ran := 0
	for ran < n && !c.done() {
		progress := 0
		if c.work.rng != nil {
			progress = c.runAny()
		} else {
			n := quantum
			if c.grid.prog.strong {
				n = spinning
			}
			for range c.warps {
				progress += c.runWarp(c.warps[c.turn], n)
				c.turn = (c.turn + 1) % len(c.warps)
			}
		}
		ran += progress
		if !c.due(false) && progress == 0 && !c.due(true) && c.live > 0 && !c.pollAll() {
			c.deadlock()
		}
	}
	return ran
}

func (c *cluster) pollAll() bool {
	for _, w := range c.warps {
		if w.live != 0 && w.poll() {
			return true
		}
	}
	return false
}

// runWarp runs a warp if it can run.
func (c *cluster) runWarp(w *warp, n int) int {
	if w.live == 0 || !w.poll() {
		return 0
	}
	ran := w.run(n)
	if ran == n && w.act != w.live&^w.blocked {
		w.stale = true
	}
	c.now += uint64(ran)
	c.work.clock += uint64(ran)
	return ran
}

// runAny runs a warp that the seed chooses for as long as the seed says.
func (c *cluster) runAny() int {
	at := c.work.rng.IntN(len(c.warps))
	for i := range c.warps {
		if ran := c.runWarp(c.warps[(at+i)%len(c.warps)], 1+c.work.rng.IntN(48)); ran > 0 {
			return ran
		}
	}
	return 0
}

// deadlock faults with a list of all that wait.
func (c *cluster) deadlock() {
	var b strings.Builder
	var at *warp
	kind, worst := Deadlock, waiter{}
	exited := 0
	for _, w := range c.warps {
		exited += bits.OnesCount32(w.exists &^ w.live)
		if w.live == 0 {
			continue
		}
		b.WriteString("\n" + strings.TrimSuffix(w.waiting(), "\n"))
		for _, p := range w.waiters {
			if at == nil || p.strict != 0 {
				at, worst = w, p
			}
		}
	}
	switch {
	case worst.strict != 0:
		kind = worst.strict
	case worst.named != 0:
		kind = WarpSync
	case exited > 0 && c.allAtBarriers():
		kind = BarrierDivergence
	}
	at.at = worst.pc
	detail := fmt.Sprintf("no warp of block %s can run", at.block.id)
	if exited > 0 {
		detail += fmt.Sprintf("; %d threads have exited", exited)
	}
	at.fault(kind, first(worst.lanes), 0, 0, "%s:%s", detail, b.String())
}

func (c *cluster) allAtBarriers() bool {
	for _, w := range c.warps {
		for _, p := range w.waiters {
			if w.prog.code[p.pc].in.Kind() != ir.Barrier {
				return false
			}
		}
	}
	return true
}

// waiting lists what the warp's lanes wait for, a line each.
func (w *warp) waiting() string {
	var b strings.Builder
	for _, p := range w.waiters {
		in := &w.prog.code[p.pc]
		fmt.Fprintf(&b, "  block %s warp %d lanes %#08x at %s: %s (waits for %s)\n",
			w.block.id, w.index, p.lanes, where(in.in.Pos, w.prog.module.ir.Source(in.in.Pos)), in.text(), p.why)
	}
	return b.String()
}
