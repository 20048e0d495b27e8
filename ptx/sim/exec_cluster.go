package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// compileGridDependency compiles griddepcontrol. Kernels run one after the other here, so there is nothing to wait for, and nothing to let go.
func compileGridDependency(c *compiler, in *ir.Instr) (step, error) {
	// Kernels run one after the other here, so there is nothing to wait for, and nothing to let go.
	if in.First("launch_dependents", "wait") == "" {
		return nil, c.unsupported(in)
	}
	return func(*warp, uint32) {}, nil
}

// compileMapa compiles mapa: the address of the same place in another block of the cluster.
func compileMapa(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 3 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	a, err := c.arg(in, 1, in.Type(0))
	if err != nil {
		return nil, err
	}
	rank, err := c.arg(in, 2, ir.U32)
	generic := in.Space() == ir.NoSpace
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			addr, r := w.get(a, lane), w.get(rank, lane)
			if n := uint64(len(w.block.cluster.blocks)); r >= n {
				w.fault(BadOperand, lane, 0, 0, "block %d of a cluster of %d", r, n)
			}
			if generic {
				w.inShared(lane, ir.NoSpace, addr)
				w.set(d, lane, sharedWindow+ofRank(addr, r))
				continue
			}
			w.set(d, lane, ofRank(addr, r))
		}
	}, err
}

// compileRank compiles getctarank: the rank of the block to whose shared memory an address belongs.
func compileRank(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	a, err := c.arg(in, 1, in.Type(0))
	generic := in.Space() == ir.NoSpace
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			addr := w.get(a, lane)
			if generic {
				w.inShared(lane, ir.NoSpace, addr)
				addr -= sharedWindow
			}
			rank := uint64(w.block.rank)
			if addr >= rankSize {
				rank = addr>>rankShift - 1
			}
			w.set(d, lane, rank)
		}
	}, err
}

// compileRemote compiles st.async and red.async: [address], value, [mbarrier], both in shared::cluster. The bytes are
// credited to the mbarrier when they have come.
func compileRemote(c *compiler, in *ir.Instr) (step, error) {
	t := in.Type(0)
	if len(in.Args) != 3 || !in.Has("mbarrier::complete_tx::bytes") || t.Bits() != 32 && t.Bits() != 64 {
		return nil, c.unsupported(in)
	}
	addr, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	values, err := c.list(in, &in.Args[1], t)
	if err != nil {
		return nil, err
	}
	if len(values) != in.Width() {
		return nil, c.errorf(in, compute.ErrArgument, "%d values, want %d", len(values), in.Width())
	}
	b, err := c.mbarrierOperand(in, 2)
	if err != nil {
		return nil, err
	}
	b.op.space = ir.SharedClusterSpace
	size := t.Size()
	op := c.memOp(in, size, true)
	op.space, op.atomic, op.sem = ir.SharedClusterSpace, false, ""
	tr := &transfer{dst: op, barrier: b}
	var reduce func(dst, src []byte)
	if in.Op == "red.async" {
		if reduce, err = c.reduction(in, t); err != nil {
			return nil, err
		}
		op.atomic, op.sem, op.scope = true, ir.Relaxed, ir.ScopeCluster
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			to := addr.of(w, lane)
			w.alignedTo(lane, op.space, to, size*len(values))
			if to < rankSize {
				to = ofRank(to, uint64(w.block.rank))
			}
			var pieces []piece
			undef := make([]uint32, len(values))
			for i, r := range values {
				pieces = append(pieces, piece{dst: to + uint64(i*size), n: size, fill: w.get(r, lane)})
				undef[i] = w.poison[i] >> lane & 1 * byteMask(0, size)
			}
			one := *tr
			if reduce != nil {
				var v [8]byte
				store(v[:], 8, pieces[0].fill)
				one.reduce = func(dst, _ []byte) { reduce(dst, v[:size]) }
			}
			f := one.launch(w, lane, size*len(values), b.addr.of(w, lane), func(f func(piece)) {
				for _, p := range pieces {
					f(p)
				}
			})
			f.undef = undef
		}
	}, nil
}

// compileProxyFence compiles the fences between the proxies. fence.mbarrier_init is one for the initialisation of mbarriers.
func compileProxyFence(c *compiler, in *ir.Instr) (step, error) {
	return func(w *warp, m uint32) {
		w.proxyFence(m)
		if w.mon != nil && in.Op == "fence.mbarrier_init" {
			w.mon.fence(w, m, ir.Release, ir.ScopeCluster)
		}
	}, nil
}

// registerFile is the number of registers of a multiprocessor.
const registerFile = 64 << 10

// compileSetmaxnreg compiles setmaxnreg.inc and .dec. The warps of a block start with the share that .maxnreg or the register
// file gives them. inc waits until the block's pool has room.
func compileSetmaxnreg(c *compiler, in *ir.Instr) (step, error) {
	inc := in.Has("inc")
	if len(in.Args) != 1 || in.Args[0].Kind != ir.IntOperand || !inc && !in.Has("dec") {
		return nil, c.unsupported(in)
	}
	n := int(in.Args[0].Bits)
	if n < 24 || n > 256 || n%8 != 0 {
		return nil, c.errorf(in, compute.ErrArgument, "%d registers, want a multiple of 8 from 24 to 256", n)
	}
	c.flow()
	do := func(w *warp, m uint32) {
		now := w.registers()
		switch {
		case w.async.regs == 0 && w.block.grid.kernel.ir.Bounds.MaxRegs == 0: // what it starts with is for the assembler to choose
		case inc && n < now:
			w.fault(BadOperand, first(m), 0, 0, "setmaxnreg.inc to %d, the warp has %d registers", n, now)
		case !inc && n > now:
			w.fault(BadOperand, first(m), 0, 0, "setmaxnreg.dec to %d, the warp has %d registers", n, now)
		}
		w.wait(m, "registers that other warps give back", func() bool {
			return !inc || w.block.registers()+(n-now)*warpSize <= w.block.pool()
		}, func(uint32) { w.async.regs = n })
	}
	return func(w *warp, m uint32) { w.together(m, w.exists, WarpSync, do) }, nil
}

// registers is how many each thread of the warp may use.
func (w *warp) registers() int {
	if w.async.regs != 0 {
		return w.async.regs
	}
	return w.block.share()
}

// share is what a thread starts with.
func (b *block) share() int {
	bounds := b.grid.kernel.ir.Bounds
	if bounds.MaxRegs > 0 {
		return bounds.MaxRegs
	}
	return min(registerFile/max(1, bounds.MinBlocks)/(len(b.warps)*warpSize), 255) &^ 7
}

// pool is what the block may have at most, and registers what its warps hold of it.
func (b *block) pool() int {
	bounds := b.grid.kernel.ir.Bounds
	if bounds.MaxRegs > 0 {
		return bounds.MaxRegs * len(b.warps) * warpSize
	}
	return registerFile / max(1, bounds.MinBlocks)
}

func (b *block) registers() (n int) {
	for _, w := range b.warps {
		n += w.registers() * warpSize
	}
	return n
}
