package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

func init() {
	register("cp.async", compileCpAsync)
	register("cp.async.commit_group", compileCommit)
	register("cp.async.wait_group cp.async.wait_all", compileWaitGroup)
	register("cp.async.mbarrier.arrive", compileCpAsyncArrive)
}

// flight is an asynchronous operation on memory, from its issue until a thread has made sure that it is complete. Its bytes
// move at any time between; with CheckAsync nobody may touch what it writes, nor change what it reads, while it is in flight.
type flight struct {
	w        *warp
	lane     int
	pc       int32
	dst, src *memOp
	each     func(func(piece)) // the pieces that it moves
	reduce   func(dst, src []byte)
	undef    []uint32 // by piece: bytes of the source without a value; nil if all have one
	tied     bool     // completes on an mbarrier
	moved    bool
	read     bool // the source may be changed again
	landed   bool // the destination may be used
}

// piece is up to 16 neighbouring bytes that an operation moves.
type piece struct {
	dst, src uint64 // addresses in the spaces of the operation
	n        int
	from, to int    // which of the n bytes come from src, the address of byte from; the others are filled
	fill     uint64 // with these bits, again and again
}

// warpAsync is a warp's part in asynchronous operations.
type warpAsync struct {
	lanes    []laneAsync // nil until there is a copy
	fences   []fenced    // nil until somebody asks
	products products
	regs     int  // by setmaxnreg; 0 before it
	landing  bool // accesses are those of an operation that lands: they touch what it has locked
}

// laneAsync is a thread's asynchronous copies: those not yet committed and, oldest first, its groups.
type laneAsync struct {
	copies, bulk struct {
		open   []*flight
		groups [][]*flight
	}
}

func (a *warpAsync) reset() {
	if a.lanes != nil || a.fences != nil || a.regs != 0 || a.products.any() {
		*a = warpAsync{}
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

// sized is op for n bytes at any address.
func sized(op *memOp, n int) *memOp {
	op.size, op.align = n, 1
	return op
}

// issue begins an operation: bounds and what the checks want to know. The addresses' alignment is for the caller to check.
func (w *warp) issue(f *flight) {
	if f.dst != nil {
		d := *f.dst
		d.write = true
		f.dst = &d
	}
	if f.src != nil {
		s := *f.src
		s.write = false
		f.src = &s
	}
	i := 0
	f.each(func(p piece) {
		if p.to > p.from && f.src != nil {
			_, undef := w.bytes(f.lane, sized(f.src, p.to-p.from), p.src, 0)
			if undef != 0 && f.undef == nil {
				f.undef = make([]uint32, i, i+16)
			}
			if f.undef != nil {
				f.undef = append(f.undef, undef<<p.from)
			}
			w.hold(f, f.src, p.src, p.to-p.from)
		} else if f.undef != nil {
			f.undef = append(f.undef, 0)
		}
		if f.dst != nil {
			w.bytes(f.lane, sized(f.dst, p.n), p.dst, 0)
			w.hold(f, f.dst, p.dst, p.n)
			if w.mon != nil && f.reduce == nil { // no value until it has come
				s, off := w.locate(f.lane, f.dst, p.dst)
				w.mon.forget(s, int(off), p.n)
			}
		}
		i++
	})
}

// move moves the bytes, once.
func (f *flight) move() {
	if f.moved {
		return
	}
	f.moved = true
	if f.dst == nil {
		return
	}
	view := func(op *memOp, addr uint64, n int) []byte {
		s, off := f.w.locate(f.lane, op, addr)
		return s.data[off:][:n]
	}
	f.each(func(p piece) {
		dst := view(f.dst, p.dst, p.n)
		if f.reduce != nil {
			defer f.w.atomically(p.dst)()
			var src []byte
			if f.src != nil {
				src = view(f.src, p.src, p.n)
			}
			f.reduce(dst, src)
			return
		}
		for i := range dst[:p.from] {
			dst[i] = byte(p.fill >> (i % 8 * 8))
		}
		if p.to > p.from {
			copy(dst[p.from:p.to], view(f.src, p.src, p.to-p.from))
		}
		for i := max(p.from, p.to); i < p.n; i++ {
			dst[i] = byte(p.fill >> (i % 8 * 8))
		}
	})
}

// atomically excludes other blocks on other goroutines.
func (w *warp) atomically(addr uint64) (unlock func()) {
	if w.mon != nil || w.block.grid.gpu.cfg.Workers == 1 {
		return func() {}
	}
	return w.lock(addr)
}

// free lets the source be changed again: the operation has read it.
func (f *flight) free() {
	f.move()
	if !f.read {
		f.read = true
		if f.src != nil {
			f.unlock(f.src)
		}
	}
}

// land ends an operation: a lane of w has made sure that it is complete, and from here on its bytes count as written by that
// lane.
func (f *flight) land(w *warp, lane int) {
	f.free()
	if f.landed {
		return
	}
	f.landed = true
	if f.dst == nil || f.reduce != nil {
		return
	}
	f.unlock(f.dst)
	if w.mon == nil {
		return
	}
	w.async.landing = true
	defer func() { w.async.landing = false }()
	w.from(f.pc, func() {
		i := 0
		op := *f.dst
		f.each(func(p piece) {
			undef := uint32(0)
			if f.undef != nil {
				undef = f.undef[i]
			}
			i++
			s, off := f.w.locate(f.lane, f.dst, p.dst)
			w.mon.access(w, lane, sized(&op, p.n), s, int(off), undef)
			if !op.async {
				w.guard(lane, &op, s, int(off))
			}
		})
	})
}

// hazard faults because a lane touches what an operation still has to do with.
func (w *warp) hazard(f *flight, lane int, s *segment, off int, what string) {
	fault := w.faultOf(AsyncHazard, lane, s.space, s.base+uint64(off), what)
	fault.Other = f.w.accessAt(f.pc, f.lane)
	panic(fault)
}

// exit is called when lanes have ended: operations that nobody can wait for any more are an error.
func (a *warpAsync) exit(w *warp, m uint32) {
	a.products.exit(w, m)
	checks := w.checksAsync()
	for ; a.lanes != nil && m != 0; m &= m - 1 {
		lane := first(m)
		l := &a.lanes[lane]
		for _, f := range append(flat(l.copies.groups), l.copies.open...) {
			if f.tied {
				continue
			}
			if checks && !f.landed {
				w.neverAwaited(f)
			}
			f.move()
		}
		for _, f := range append(flat(l.bulk.groups), l.bulk.open...) {
			if checks && !f.read { // what it writes to global memory comes in any case
				w.neverAwaited(f)
			}
			f.land(w, lane)
		}
		*l = laneAsync{}
	}
	if checks && w.block.live == 0 {
		for _, f := range w.block.async.flights {
			if !f.landed {
				w.neverAwaited(f)
			}
		}
	}
}

func (w *warp) neverAwaited(f *flight) {
	f.w.from(f.pc, func() {
		f.w.fault(AsyncHazard, f.lane, 0, 0, "the kernel ends and nobody has waited for this operation")
	})
}

func (w *warp) checksAsync() bool { return w.mon != nil && w.block.grid.gpu.cfg.Checks&CheckAsync != 0 }

func flat(groups [][]*flight) (all []*flight) {
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
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
	to, from := c.memOp(in, n, true), c.memOp(in, n, false)
	to.space, from.space = ir.SharedSpace, ir.GlobalSpace
	c.tracks()
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			p := piece{dst: dst.of(w, lane), src: src.of(w, lane), n: n, to: n}
			if size.i >= 0 {
				p.to = int(w.get(size, lane))
				if p.to < 0 || p.to > n {
					w.fault(BadOperand, lane, 0, 0, "src-size %d of a copy of %d bytes", w.get(size, lane), n)
				}
			}
			if ignore.i >= 0 && w.get(ignore, lane)&1 == 1 != not {
				p.to = 0
			}
			w.alignedTo(lane, ir.SharedSpace, p.dst, n)
			if p.to > 0 {
				w.alignedTo(lane, ir.GlobalSpace, p.src, n)
			}
			f := &flight{w: w, lane: lane, pc: w.at, dst: to, src: from, each: func(f func(piece)) { f(p) }}
			w.issue(f)
			l := w.laneAsync(lane)
			l.copies.open = append(l.copies.open, f)
			if rng := w.work.rng; rng != nil && rng.IntN(2) == 0 {
				w.block.cluster.later(rng.Uint64N(300), f.move)
			}
		}
	}, nil
}

// alignedTo faults at addresses that are no multiples of n.
func (w *warp) alignedTo(lane int, space ir.Space, addr uint64, n int) {
	if addr%uint64(n) != 0 {
		w.fault(Misaligned, lane, space, addr, "the address has to be a multiple of %d", n)
	}
}

// compileCommit makes a group of the copies that a thread has issued since its last one.
func compileCommit(c *compiler, in *ir.Instr) (step, error) {
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			q := &w.laneAsync(first(m)).copies
			q.groups = append(q.groups, q.open)
			q.open = nil
		}
	}, nil
}

// compileWaitGroup waits until at most n of a thread's groups are in flight; wait_all for all copies, committed or not.
func compileWaitGroup(c *compiler, in *ir.Instr) (step, error) {
	n, err := groupCount(c, in, in.Op == "cp.async.wait_all")
	all := in.Op == "cp.async.wait_all"
	return func(w *warp, m uint32) {
		for ; m != 0 && w.async.lanes != nil; m &= m - 1 {
			lane := first(m)
			q := &w.laneAsync(lane).copies
			for len(q.groups) > n {
				landAll(q.groups[0], w, lane)
				q.groups = q.groups[1:]
			}
			if all {
				landAll(q.open, w, lane)
				q.open = nil
			}
		}
	}, err
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

func landAll(q []*flight, w *warp, lane int) {
	for _, f := range q {
		f.land(w, lane)
	}
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
				if o.pending++; o.pending > maxArrivals {
					w.fault(BadOperand, lane, ir.SharedSpace, o.off, "more than %d arrivals pending", maxArrivals)
				}
				o.write()
			}
			q := &w.laneAsync(lane).copies
			list := append(flat(q.groups), q.open...)
			w.async.tie(w, list)
			pc := w.at
			w.block.cluster.later(w.block.cluster.delay(), func() {
				for _, f := range list {
					f.move()
				}
				w.from(pc, func() { o.complete(w, lane, list, func() (bool, error) { return o.arrive(1, false) }) })
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
