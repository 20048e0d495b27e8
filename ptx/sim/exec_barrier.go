package sim

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// barrier is one of the 16 barriers of a block.
type barrier struct {
	used    bool   // somebody has arrived
	arrived int    // threads, as far as they count
	want    int    // that complete it; 0: all that have not exited
	op      ir.Mod // of bar.red: popc, and, or; "" of others
	votes   int    // true predicates
	voters  int
	waiting []atBarrier
}

// atBarrier is lanes that wait at a barrier; dst is where bar.red puts its result.
type atBarrier struct {
	w     *warp
	lanes uint32
	dst   ref
}

// settle completes the barrier if all have arrived.
func (b *barrier) settle(blk *block) {
	want := b.want
	if want == 0 {
		want = blk.live
	}
	if !b.used || b.arrived < want {
		return
	}
	result := b.votes
	switch b.op {
	case "and":
		result = b2i(b.votes == b.voters)
	case "or":
		result = b2i(b.votes > 0)
	}
	waiting := b.waiting
	*b = barrier{waiting: waiting[:0]}
	for _, a := range waiting {
		if a.w.mon != nil {
			a.w.mon.acquire(a.w, a.lanes, b)
		}
		for m := a.lanes; m != 0; m &= m - 1 {
			a.w.set(a.dst, first(m), uint64(result))
		}
		a.w.release(a.lanes)
	}
}

// barrierOp is a compiled bar or barrier instruction.
type barrierOp struct {
	id, count, dst, vote ref
	not                  bool // the vote is negated
	wait, aligned        bool
	op                   ir.Mod
}

var barrierNames = func() (n [16]string) {
	for i := range n {
		n[i] = fmt.Sprintf("barrier %d of its block", i)
	}
	return n
}()

func compileBarrier(c *compiler, in *ir.Instr) (step, error) {
	b := &barrierOp{dst: none, vote: none, count: none}
	b.aligned = strings.HasPrefix(string(in.Op), "bar.") || in.Has(ir.Aligned)
	b.wait = !strings.HasSuffix(string(in.Op), ".arrive")
	args := in.Args
	var err error
	if strings.HasSuffix(string(in.Op), ".red") {
		b.op = in.First("popc", "and", "or")
		if len(args) < 3 || b.op == "" {
			return nil, c.unsupported(in)
		}
		last := &args[len(args)-1]
		b.not = last.Not
		if b.dst, err = c.dst(in, &args[0]); err != nil {
			return nil, err
		}
		if b.vote, err = c.src(in, last, ir.Pred); err != nil {
			return nil, err
		}
		args = args[1 : len(args)-1]
	}
	if len(args) < 1 || len(args) > 2 {
		return nil, c.unsupported(in)
	}
	if b.id, err = c.src(in, &args[0], ir.U32); err != nil {
		return nil, err
	}
	if len(args) == 2 {
		if b.count, err = c.src(in, &args[1], ir.U32); err != nil {
			return nil, err
		}
	}
	c.flow()
	if b.aligned {
		return func(w *warp, m uint32) { w.together(m, w.exists, BarrierDivergence, b.arrive) }, nil
	}
	return b.arrive, nil
}

// arrive lets lanes arrive. Those of an instruction without .aligned may name different barriers.
func (b *barrierOp) arrive(w *warp, m uint32) {
	var touched uint32
	for rest := m; rest != 0; {
		lane := first(rest)
		id, count := w.get(b.id, lane), w.get(b.count, lane)
		same := rest
		for l := rest; l != 0; l &= l - 1 {
			if w.get(b.id, first(l)) != id || w.get(b.count, first(l)) != count {
				same &^= 1 << first(l)
			}
		}
		rest &^= same
		switch {
		case id >= 16:
			w.fault(BadOperand, lane, 0, 0, "barrier %d, there are 0 to 15", id)
		case b.aligned && same != m:
			w.fault(BarrierDivergence, lane, 0, 0, "lanes of a warp name different barriers or counts")
		case count%warpSize != 0 || count > 1024 || b.count.i >= 0 && count == 0:
			w.fault(BadOperand, lane, 0, 0, "barrier for %d threads, want a multiple of 32 up to 1024", count)
		}
		b.add(w, same, &w.block.bars[id], int(count), int(id))
		touched |= 1 << id
	}
	if b.wait {
		w.leave(m)
	} else {
		w.next()
	}
	for ; touched != 0; touched &= touched - 1 {
		w.block.bars[first(touched)].settle(w.block)
	}
}

// add counts lanes at a barrier.
func (b *barrierOp) add(w *warp, m uint32, bar *barrier, count, id int) {
	if bar.used && (bar.want != count || bar.op != b.op) {
		w.fault(BadOperand, first(m), 0, 0, "barrier %d is in use for %s, and here for %s",
			id, bar.purpose(), (&barrier{want: count, op: b.op}).purpose())
	}
	bar.used, bar.want, bar.op = true, count, b.op
	n := bits.OnesCount32(m)
	bar.voters += n
	if b.aligned && count != 0 {
		n = warpSize // a warp counts as a whole, also the last one
	}
	bar.arrived += n
	if count != 0 && bar.arrived > count {
		w.fault(BadOperand, first(m), 0, 0, "%d threads have arrived at barrier %d, which is for %d", bar.arrived, id, count)
	}
	for l := m; b.op != "" && l != 0; l &= l - 1 {
		bar.votes += b2i(w.get(b.vote, first(l))&1 == 1 != b.not)
	}
	if w.mon != nil {
		w.mon.release(w, m, bar)
	}
	if b.wait {
		w.enlist(waiter{lanes: m, why: barrierNames[id]})
		bar.waiting = append(bar.waiting, atBarrier{w, m, b.dst})
	}
}

func (b *barrier) purpose() string {
	what := "synchronisation"
	if b.op != "" {
		what = "red." + string(b.op)
	}
	if b.want == 0 {
		return what + " of all threads"
	}
	return fmt.Sprintf("%s of %d threads", what, b.want)
}

// clusterBarrier is the state of a warp in barrier.cluster: lanes that have arrived in the phase that is not complete, and
// lanes whose phase is complete and that have not waited for it.
type clusterBarrier struct{ arrived, complete uint32 }

func compileClusterBarrier(c *compiler, in *ir.Instr) (step, error) {
	c.flow()
	do := waitCluster
	if strings.HasSuffix(string(in.Op), ".arrive") {
		relaxed := in.Has(ir.Relaxed)
		do = func(w *warp, m uint32) { arriveCluster(w, m, relaxed) }
	}
	if in.Has(ir.Aligned) {
		return func(w *warp, m uint32) { w.together(m, w.exists, BarrierDivergence, do) }, nil
	}
	return func(w *warp, m uint32) {
		if m == 0 {
			w.next()
			return
		}
		do(w, m)
	}, nil
}

func arriveCluster(w *warp, m uint32, relaxed bool) {
	if bad := m & (w.sync.arrived | w.sync.complete); bad != 0 {
		w.fault(BadOperand, first(bad), 0, 0, "the thread has arrived before and not waited since")
	}
	switch {
	case w.mon == nil:
	case relaxed:
		w.mon.releaseFenced(w, m, w.block.cluster)
	default:
		w.mon.release(w, m, w.block.cluster)
	}
	w.sync.arrived |= m
	w.next()
	w.block.cluster.settle()
}

func waitCluster(w *warp, m uint32) {
	if bad := m &^ (w.sync.arrived | w.sync.complete); bad != 0 {
		w.fault(BadOperand, first(bad), 0, 0, "the thread waits and has not arrived")
	}
	w.wait(m, "the barrier of its cluster", func() bool { return w.sync.complete&m == m }, func(m uint32) {
		w.sync.complete &^= m
		if w.mon != nil {
			w.mon.acquire(w, m, w.block.cluster)
		}
	})
}

// settle completes the cluster's barrier if all threads that have not exited have arrived.
func (c *cluster) settle() {
	for _, w := range c.warps {
		if w.live&^w.sync.arrived != 0 {
			return
		}
	}
	for _, w := range c.warps {
		w.sync.complete |= w.sync.arrived
		w.sync.arrived = 0
	}
	if mon := c.grid.gpu.mon; mon != nil {
		mon.complete(c)
	}
}
