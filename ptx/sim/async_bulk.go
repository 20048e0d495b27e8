package sim

import (
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

const bulkChunk = 16 // bytes: what bulk copies move at a time, and what they are aligned to

// transfer is where a bulk copy goes, and how its end is made known: by bytes credited to an mbarrier, or by bulk groups.
type transfer struct {
	dst, src *memOp
	barrier  *mbarrierOperand // nil: bulk groups
	mask     ref              // of the blocks of a multicast
	cast     bool
	reduce   func(dst, src []byte)
	convert  func(b []byte) // what comes, in place; nil to leave it
}

// transfer reads the spaces and completion from an opcode. barrier is the place of the mbarrier among the arguments, where
// there is one; a multicast's mask follows it.
func (c *compiler) transfer(in *ir.Instr, barrier int) (*transfer, error) {
	var spaces []ir.Space
	for _, m := range in.Mods {
		switch s := ir.SpaceNamed(m); s {
		case ir.GlobalSpace, ir.SharedSpace, ir.SharedClusterSpace:
			spaces = append(spaces, s)
		}
	}
	group, tx := in.Has("bulk_group"), in.Has("mbarrier::complete_tx::bytes")
	if len(spaces) != 2 || group == tx || group != (spaces[0] == ir.GlobalSpace) || spaces[0] == spaces[1] {
		return nil, c.unsupported(in)
	}
	t := &transfer{dst: c.memOp(in, bulkChunk, true), src: c.memOp(in, bulkChunk, false), mask: none}
	t.dst.space, t.src.space = spaces[0], spaces[1]
	t.dst.async, t.src.async = true, true
	c.tracks()
	var err error
	if tx {
		if t.barrier, err = c.mbarrierOperand(in, barrier); err != nil {
			return nil, err
		}
		t.barrier.op.space = spaces[0]
	}
	if in.Has("multicast::cluster") {
		t.cast = true
		mask := barrier + 1
		if in.Has("im2col") { // whose offsets come first
			mask++
		}
		if mask >= len(in.Args) {
			return nil, c.errorf(in, compute.ErrArgument, "the mask of the multicast is missing")
		}
		t.mask, err = c.arg(in, mask, ir.B16)
	}
	if strings.HasPrefix(string(in.Op), "cp.reduce") {
		t.reduce, err = c.reduction(in, in.Type(0))
	}
	return t, err
}

// reduction is the operation of a reducing copy, on all elements of a chunk.
func (c *compiler) reduction(in *ir.Instr, t ir.Type) (func(dst, src []byte), error) {
	op := in.First("add", "min", "max", "inc", "dec", "and", "or", "xor")
	mods := []ir.Mod{ir.Global, op, t.Mod()}
	if t == ir.F16 || t == ir.BF16 {
		mods = []ir.Mod{ir.Global, op, "noftz", t.Mod()}
	}
	do, err := eval.Atom(&ir.Instr{Op: "red", Mods: mods})
	if op == "" || t.Size() == 0 || err != nil {
		return nil, c.unsupported(in)
	}
	n := t.Size()
	return func(dst, src []byte) {
		for i := 0; i < len(dst); i += n {
			store(dst[i:], n, do(load(dst[i:], n), load(src[i:], n), 0))
		}
	}, nil
}

// start issues the operation for a lane: pieces gives the pieces for a destination in the lane's own numbering, bytes is what
// an mbarrier is credited with. Of a multicast each destination block gets its own operation, at the same place and on the
// mbarrier at the same place.
func (t *transfer) start(w *warp, lane, bytes int, pieces func(f func(piece))) {
	if t.barrier == nil {
		f := t.flight(w, lane, pieces)
		w.issue(f)
		l := w.laneAsync(lane)
		l.bulk.open = append(l.bulk.open, f)
		if w.work.rng != nil {
			w.block.cluster.later(w.block.cluster.delay(), f.move)
		}
		return
	}
	addr := t.barrier.addr.of(w, lane)
	if !t.cast {
		t.launch(w, lane, bytes, addr, pieces)
		return
	}
	mask := w.get(t.mask, lane) & 0xffff
	if mask == 0 || mask>>len(w.block.cluster.blocks) != 0 {
		w.fault(BadOperand, lane, 0, 0, "multicast to blocks %#x of a cluster of %d", mask, len(w.block.cluster.blocks))
	}
	for rank := range uint64(len(w.block.cluster.blocks)) {
		if mask>>rank&1 != 0 {
			t.launch(w, lane, bytes, ofRank(addr, rank), func(f func(piece)) {
				pieces(func(p piece) {
					p.dst = ofRank(p.dst, rank)
					f(p)
				})
			})
		}
	}
}

// ofRank is the address in shared::cluster of the same place in the block with a rank.
func ofRank(addr, rank uint64) uint64 { return addr&(rankSize-1) | (rank+1)<<rankShift }

func (t *transfer) flight(w *warp, lane int, each func(func(piece))) *flight {
	return &flight{w: w, lane: lane, pc: w.at, dst: t.dst, src: t.src, each: each, reduce: t.reduce, convert: t.convert}
}

// launch issues an operation that completes on the mbarrier at addr.
func (t *transfer) launch(w *warp, lane, bytes int, addr uint64, each func(func(piece))) *flight {
	s, off := w.locate(lane, t.barrier.op, addr)
	o := w.mbarrier(lane, t.barrier.op, addr, place{s, off})
	if t.dst.async && o.by != nil && o.by.fence <= o.fences && w.fenced(lane).fence <= o.fences {
		f := w.faultOf(ProxyFence, lane, ir.SharedSpace, off,
			"the mbarrier was initialised through the generic proxy, and no fence.mbarrier_init or fence.proxy.async has followed")
		f.Other = o.by.w.accessAt(o.pc, o.by.lane)
		panic(f)
	}
	f := t.flight(w, lane, each)
	w.issue(f)
	w.async.tie(w, []*flight{f})
	pc := w.at
	w.block.cluster.later(w.block.cluster.delay(), func() {
		f.free()
		w.from(pc, func() {
			if w.block.cluster.async.mbarriers[place{o.s, o.off}] != o {
				w.fault(BadOperand, lane, ir.SharedSpace, o.off,
					"the mbarrier at %#x was invalidated while a copy was to complete on it", o.off)
			}
			o.complete(w, lane, []*flight{f}, func() (bool, error) { return o.State.Complete(uint32(bytes)) })
		})
	})
	return f
}

// compileBulk compiles copies of plain bytes: [dst], [src], size and then [mbar] and the mask, or nothing.
func compileBulk(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 3 || in.Has("cp_mask") {
		return nil, c.unsupported(in)
	}
	t, err := c.transfer(in, 3)
	if err != nil {
		return nil, err
	}
	dst, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	src, err := c.addr(in, &in.Args[1])
	if err != nil {
		return nil, err
	}
	size, err := c.arg(in, 2, ir.U32)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			to, from, n := dst.of(w, lane), src.of(w, lane), w.get(size, lane)
			w.alignedTo(lane, t.dst.space, to, bulkChunk)
			w.alignedTo(lane, t.src.space, from, bulkChunk)
			if n%bulkChunk != 0 {
				w.fault(BadOperand, lane, 0, 0, "bulk copy of %d bytes, want a multiple of %d", n, bulkChunk)
			}
			t.start(w, lane, int(n), func(f func(piece)) {
				for i := uint64(0); i < n; i += bulkChunk {
					f(piece{dst: to + i, src: from + i, n: bulkChunk, to: bulkChunk})
				}
			})
		}
	}, err
}

// compileBulkPrefetch checks operands; there is no cache to fill, and a prefetch may miss all memory.
func compileBulkPrefetch(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 2 {
		return nil, c.unsupported(in)
	}
	src, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	size, err := c.arg(in, 1, ir.U32)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			w.alignedTo(lane, ir.GlobalSpace, src.of(w, lane), bulkChunk)
			if n := w.get(size, lane); n%bulkChunk != 0 {
				w.fault(BadOperand, lane, 0, 0, "bulk prefetch of %d bytes, want a multiple of %d", n, bulkChunk)
			}
		}
	}, err
}

func compileBulkCommit(c *compiler, in *ir.Instr) (step, error) {
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			q := &w.laneAsync(first(m)).bulk
			q.groups = append(q.groups, q.open)
			q.open = nil
		}
	}, nil
}

// compileBulkWait waits for bulk groups; with .read only until they have read their sources.
func compileBulkWait(c *compiler, in *ir.Instr) (step, error) {
	n, err := groupCount(c, in, false)
	read := in.Has("read")
	return func(w *warp, m uint32) {
		for ; m != 0 && w.async.lanes != nil; m &= m - 1 {
			lane := first(m)
			q := &w.laneAsync(lane).bulk
			for i, done := 0, len(q.groups)-n; i < done; i++ {
				for _, f := range q.groups[i] {
					if read {
						f.free()
					} else {
						f.land(w, lane)
					}
				}
			}
			if !read && len(q.groups) > n {
				q.groups = q.groups[len(q.groups)-n:]
			}
		}
	}, err
}
