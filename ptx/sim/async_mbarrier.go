package sim

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/mbarrier"
)

// compilePendingCount compiles mbarrier.pending_count.
func compilePendingCount(c *compiler, in *ir.Instr) (step, error) {
	d, err := c.dst(in, &in.Args[0])
	if err != nil || len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	a, err := c.src(in, &in.Args[1], ir.B64)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			w.set(d, first(m), mbarrier.PendingOf(w.get(a, first(m))))
		}
	}, err
}

// mbarrierObject is an mbarrier in shared memory. Its state is kept here; the bytes in memory mirror it, so that a kernel
// that writes over them is found out. For the order of accesses the object itself is the key.
type mbarrierObject struct {
	mbarrier.State
	s       *segment
	off     uint64
	by      *fenced // who initialised it, if proxies are checked
	fences  uint32
	pc      int32
	current []*flight // that completed in the current phase
	done    []*flight // and in those before, not yet landed
}

// write mirrors the state in memory.
func (o *mbarrierObject) write() { store(o.s.data[o.off:], 8, o.Bits()) }

// mbarrierOperand is the address of an mbarrier in an instruction.
type mbarrierOperand struct {
	addr address
	op   *memOp
}

// mbarrierOperand is the i-th argument.
func (c *compiler) mbarrierOperand(in *ir.Instr, i int) (*mbarrierOperand, error) {
	if i >= len(in.Args) {
		return nil, c.unsupported(in)
	}
	a, err := c.addr(in, &in.Args[i])
	op := c.memOp(in, 8, true)
	op.atomic, op.sem, op.scope, op.align = true, ir.Relaxed, ir.ScopeCluster, 8
	switch {
	case in.Has(ir.SharedCluster):
		op.space = ir.SharedClusterSpace
	case in.Has(ir.Shared) || in.Has(ir.SharedCTA):
		op.space = ir.SharedSpace
	}
	c.tracks()
	return &mbarrierOperand{a, op}, err
}

// place is where a lane's mbarrier lies.
func (b *mbarrierOperand) place(w *warp, lane int) place {
	addr := b.addr.of(w, lane)
	w.inShared(lane, b.op.space, addr)
	s, off := w.locate(lane, b.op, addr)
	return place{s, off}
}

// find is the lane's mbarrier. One that is not there is a fault.
func (b *mbarrierOperand) find(w *warp, lane int) *mbarrierObject {
	return w.mbarrier(lane, b.op, b.addr.of(w, lane), b.place(w, lane))
}

func (w *warp) mbarrier(lane int, op *memOp, addr uint64, p place) *mbarrierObject {
	if p.s == nil || p.off+8 > uint64(len(p.s.data)) || p.off%8 != 0 {
		w.bytes(lane, op, addr, 0)
	}
	o := w.block.cluster.async.mbarriers[p]
	switch {
	case o == nil:
		w.fault(BadOperand, lane, ir.SharedSpace, p.off,
			"there is no mbarrier at shared address %#x: it has not been initialised", p.off)
	case load(p.s.data[p.off:], 8) != o.Bits():
		w.fault(BadOperand, lane, ir.SharedSpace, p.off, "the mbarrier at shared address %#x has been written over", p.off)
	}
	w.bytes(lane, op, addr, 0)
	return o
}

// check faults if an operation on the mbarrier failed.
func (o *mbarrierObject) check(w *warp, lane int, err error) {
	if err != nil {
		w.fault(BadOperand, lane, ir.SharedSpace, o.off, "mbarrier at shared address %#x: %v", o.off, err)
	}
}

// complete executes an operation of a lane on the mbarrier, together with which operations on memory complete. What the lane
// did before is visible to those who wait.
func (o *mbarrierObject) complete(w *warp, lane int, list []*flight, do func() (bool, error)) {
	o.current = append(o.current, list...)
	done, err := do()
	o.check(w, lane, err)
	if w.mon != nil {
		w.mon.release(w, 1<<lane, o)
	}
	if done {
		o.done = append(o.done, o.current...)
		o.current = nil
		if w.mon != nil {
			w.mon.complete(o)
		}
	}
	o.write()
}

// seen says that lanes know of the end of a phase: what completed in it is there for them. The first one to know stands for the
// operations as the writer of what they wrote; it hands that on to those that ask later.
func (o *mbarrierObject) seen(w *warp, m uint32) {
	if w.mon == nil {
		for _, f := range o.done {
			f.landed = true
		}
		o.done = nil
		return
	}
	handed := &o.State // another key: what is handed on belongs to a phase that is over
	w.mon.acquire(w, m, o)
	if len(o.done) > 0 {
		for _, f := range o.done {
			f.land(w, first(m))
		}
		o.done = nil
		w.mon.release(w, 1<<first(m), handed)
	}
	w.mon.acquire(w, m, handed)
}

func compileMbarrierInit(c *compiler, in *ir.Instr) (step, error) {
	b, err := c.mbarrierOperand(in, 0)
	if err != nil {
		return nil, err
	}
	b.op.atomic, b.op.sem = false, ""
	if in.Op == "mbarrier.inval" {
		return func(w *warp, m uint32) {
			for ; m != 0; m &= m - 1 {
				lane := first(m)
				o := b.find(w, lane)
				if w.mon != nil {
					w.bytes(lane, b.op, b.addr.of(w, lane), 0xff)
				}
				delete(w.block.cluster.async.mbarriers, place{o.s, o.off})
			}
		}, nil
	}
	count, err := c.arg(in, 1, ir.U32)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			p := b.place(w, lane)
			w.bytes(lane, b.op, b.addr.of(w, lane), 0)
			all := &w.block.cluster.async.mbarriers
			if o := (*all)[p]; o != nil && load(p.s.data[p.off:], 8) == o.Bits() {
				w.fault(BadOperand, lane, ir.SharedSpace, p.off,
					"there is an mbarrier at shared address %#x already, %v: mbarrier.inval it first", p.off, &o.State)
			}
			state, err := mbarrier.New(uint32(w.get(count, lane)))
			o := &mbarrierObject{State: state, s: p.s, off: p.off, pc: w.at}
			o.check(w, lane, err)
			if w.prog.async {
				o.by, o.fences = w.fenced(lane), w.block.grid.fences
			}
			if *all == nil {
				*all = map[place]*mbarrierObject{}
			}
			(*all)[p] = o
			o.write()
		}
	}, err
}

// compileArrive compiles arrivals: {state | _,} [addr] {, count}, or with .expect_tx the number of bytes.
func compileArrive(c *compiler, in *ir.Instr) (step, error) {
	args, dst := in.Args, none
	var err error
	if len(args) > 0 && args[0].Kind != ir.AddrOperand {
		if dst, err = c.dst(in, &args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	b, err := c.mbarrierOperand(in, len(in.Args)-len(args))
	if err != nil {
		return nil, err
	}
	expect, drop, keeps := in.Has("expect_tx"), in.Op == "mbarrier.arrive_drop", in.Has("noComplete")
	count := c.constant(ir.U32, 1)
	if len(args) > 1 {
		if count, err = c.src(in, &args[1], ir.U32); err != nil {
			return nil, err
		}
	} else if expect {
		return nil, c.errorf(in, compute.ErrArgument, "the number of bytes is missing")
	}
	if dst.i >= 0 && b.op.space == ir.SharedClusterSpace {
		return nil, c.errorf(in, compute.ErrArgument, "the state of an mbarrier of another block cannot be had: write _ for it")
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			o := b.find(w, lane)
			n := uint32(w.get(count, lane))
			token := o.Token()
			if keeps && int(n) >= o.Pending() {
				w.fault(BadOperand, lane, ir.SharedSpace, o.off, "%d arrivals would end the phase, which .noComplete rules out: %v", n,
					&o.State)
			}
			o.complete(w, lane, nil, func() (bool, error) {
				if !expect {
					return o.Arrive(n, drop)
				}
				if _, err := o.Expect(n); err != nil {
					return false, err
				}
				return o.Arrive(1, drop)
			})
			w.set(dst, lane, token)
		}
	}, nil
}

// compileTx compiles expect_tx and complete_tx alone.
func compileTx(c *compiler, in *ir.Instr) (step, error) {
	b, err := c.mbarrierOperand(in, 0)
	if err != nil || len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	count, err := c.arg(in, 1, ir.U32)
	expect := in.Op == "mbarrier.expect_tx"
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			o := b.find(w, lane)
			n := uint32(w.get(count, lane))
			o.complete(w, lane, nil, func() (bool, error) {
				if expect {
					return o.Expect(n)
				}
				return o.State.Complete(n)
			})
		}
	}, err
}

// compileMbarrierWait compiles test_wait and try_wait: p, [addr], state or parity. try_wait suspends lanes until the phase of
// one of them is over; then it says for each whether its own is. Under a seed its time is now and then up at once; otherwise
// what waits for ever is a deadlock.
func compileMbarrierWait(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 3 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	b, err := c.mbarrierOperand(in, 1)
	if err != nil {
		return nil, err
	}
	b.op.write, b.op.atomic = false, false
	parity, relaxed := in.Has("parity"), in.Has(ir.Relaxed)
	t := ir.B64
	if parity {
		t = ir.U32
	}
	state, err := c.arg(in, 2, t)
	if err != nil {
		return nil, err
	}
	passed := func(w *warp, lane int, o *mbarrierObject) bool {
		if parity {
			return o.PassedParity(uint32(w.get(state, lane)))
		}
		ok, err := o.Passed(w.get(state, lane))
		o.check(w, lane, err)
		return ok
	}
	then := func(w *warp, m uint32) {
		for l := m; l != 0; l &= l - 1 {
			lane := first(l)
			o := b.find(w, lane)
			ok := passed(w, lane, o)
			if ok && !relaxed {
				o.seen(w, 1<<lane)
			}
			w.set(d, lane, uint64(b2i(ok)))
		}
	}
	if in.Op == "mbarrier.test_wait" {
		return then, nil
	}
	c.flow()
	return func(w *warp, m uint32) {
		if m == 0 {
			w.next()
			return
		}
		var objects [warpSize]*mbarrierObject
		any := false
		for l := m; l != 0; l &= l - 1 {
			lane := first(l)
			objects[lane] = b.find(w, lane)
			any = any || passed(w, lane, objects[lane])
		}
		if rng := w.work.rng; any || rng != nil && rng.IntN(4) == 0 { // its time may be up at once
			then(w, m)
			w.next()
			return
		}
		o := objects[first(m)]
		phase := fmt.Sprintf("state %#x", w.get(state, first(m)))
		if parity {
			phase = fmt.Sprintf("parity %d", w.get(state, first(m))&1)
		}
		why := fmt.Sprintf("the end of the phase with %s of the mbarrier at shared address %#x, which was in %v then", phase, o.off,
			&o.State)
		w.wait(m, why, func() bool {
			for l := m; l != 0; l &= l - 1 {
				if lane := first(l); passed(w, lane, objects[lane]) {
					return true
				}
			}
			return false
		}, func(m uint32) { then(w, m) })
	}, nil
}
