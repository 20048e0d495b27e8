package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// warpAsync is a warp's part in asynchronous operations.
type warpAsync struct {
	copies   copyQueue
	lanes    []laneAsync // nil until there is a bulk copy
	fences   []fenced    // nil until somebody asks
	products products
	regs     int  // by setmaxnreg; 0 before it
	landing  bool // accesses are those of an operation that lands: they touch what it has locked
}

// laneAsync is a thread's bulk copies: those not yet committed and, oldest first, its groups.
type laneAsync struct {
	bulk struct {
		open   []*flight
		groups [][]*flight
	}
}

func (a *warpAsync) reset() {
	a.copies.reset()
	if a.lanes != nil || a.fences != nil || a.regs != 0 || a.products.any() {
		*a = warpAsync{copies: a.copies}
	}
}

// blockAsync is a block's part, clusterAsync that of a cluster.
type blockAsync struct{ flights []*flight } // that complete on an mbarrier

func (a *blockAsync) reset() { a.flights = nil }

type clusterAsync struct{ mbarriers map[place]*mbarrierObject }

func (a *clusterAsync) reset() { clear(a.mbarriers) }

// place is a place in shared memory.
type place struct {
	s   *segment
	off uint64
}

func (w *warp) laneAsync(lane int) *laneAsync {
	if w.async.lanes == nil {
		w.async.lanes = make([]laneAsync, warpSize)
	}
	return &w.async.lanes[lane]
}

// delay is how long an operation takes, in instructions of the cluster.
func (c *cluster) delay() uint64 {
	if c.work.rng != nil {
		return c.work.rng.Uint64N(600)
	}
	return 64
}

// compileCpAsync compiles cp.async: 4, 8 or 16 bytes from global to shared memory, per thread. Bytes beyond src-size are
// zero; with ignore-src all are.
func compileCpAsync(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 3 || in.Args[2].Kind != ir.IntOperand || in.First("ca", "cg") == "" || !in.Has(ir.Global) {
		return nil, c.unsupported(in)
	}
	n := int(in.Args[2].Bits)
	if n != 16 && (n != 4 && n != 8 || in.Has("cg")) {
		return nil, c.errorf(in, compute.ErrArgument, "copy of %d bytes, want 16, or with .ca 4, 8 or 16", n)
	}
	dst, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	src, err := c.addr(in, &in.Args[1])
	if err != nil {
		return nil, err
	}
	size, ignore, not := none, none, false
	if len(in.Args) > 3 && !in.Has("L2::cache_hint") || len(in.Args) > 4 {
		o := &in.Args[3]
		r, err := c.src(in, o, ir.U32)
		switch {
		case err != nil:
			return nil, err
		case r.bank == bankP:
			ignore, not = r, o.Not
		default:
			size = r
		}
	}
	x := &cpAsync{dst: dst, src: src, n: n, size: size, ignore: ignore, not: not}
	x.to, x.from = c.memOp(in, n, true), c.memOp(in, n, false)
	x.to.space, x.from.space = ir.SharedSpace, ir.GlobalSpace
	c.tracks()
	return x.run, nil
}

// alignedTo faults at addresses that are no multiples of n.
func (w *warp) alignedTo(lane int, space ir.Space, addr uint64, n int) {
	if addr%uint64(n) != 0 {
		w.fault(Misaligned, lane, space, addr, "the address has to be a multiple of %d", n)
	}
}

// compileCommit makes a group of the copies that a thread has issued since its last one.
func compileCommit(c *compiler, in *ir.Instr) (step, error) {
	return func(w *warp, m uint32) { w.async.copies.commit(m) }, nil
}

// compileWaitGroup waits until at most n of a thread's groups are in flight; wait_all for all copies, committed or not.
func compileWaitGroup(c *compiler, in *ir.Instr) (step, error) {
	all := in.Op == "cp.async.wait_all"
	n, err := groupCount(c, in, all)
	return func(w *warp, m uint32) { w.async.copies.wait(w, m, uint32(n), all) }, err
}

// groupCount is the number that a wait_group gives.
func groupCount(c *compiler, in *ir.Instr, zero bool) (int, error) {
	if zero {
		return 0, nil
	}
	if len(in.Args) != 1 || in.Args[0].Kind != ir.IntOperand || int64(in.Args[0].Bits) < 0 {
		return 0, c.errorf(in, compute.ErrArgument, "the number of groups is no constant")
	}
	return int(min(in.Args[0].Bits, 1<<30)), nil
}

// compileCpAsyncArrive makes an mbarrier count an arrival when all copies that the thread has issued are complete. Without
// .noinc the arrival is one more than those that the mbarrier waits for anyway.
func compileCpAsyncArrive(c *compiler, in *ir.Instr) (step, error) {
	b, err := c.mbarrierOperand(in, 0)
	noinc := in.Has("noinc")
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			o := b.find(w, lane)
			if !noinc {
				o.check(w, lane, o.Add())
				o.write()
			}
			list := w.async.copies.of(lane)
			w.async.tie(w, list)
			pc := w.at
			w.block.cluster.later(w.block.cluster.delay(), func() {
				for _, f := range list {
					f.move()
				}
				w.from(pc, func() { o.complete(w, lane, list, func() (bool, error) { return o.Arrive(1, false) }) })
			})
		}
	}, err
}

// tie notes that operations complete on an mbarrier.
func (a *warpAsync) tie(w *warp, list []*flight) {
	for _, f := range list {
		if !f.tied {
			f.tied = true
			w.block.async.flights = append(w.block.async.flights, f)
		}
	}
}
