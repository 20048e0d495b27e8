package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

func init() {
	register("wgmma.mma_async", compileWgmma)
	register("wgmma.fence", func(c *compiler, in *ir.Instr) (step, error) {
		return c.warpwide(func(w *warp, _ uint32) { w.async.products.fence() }), nil
	})
	register("wgmma.commit_group", func(c *compiler, in *ir.Instr) (step, error) {
		return c.warpwide(func(w *warp, _ uint32) { w.async.products.committed++ }), nil
	})
	register("wgmma.wait_group", compileWgmmaWait)
}

const warpgroup = 4 // warps

// compileWgmmaWait waits until at most n groups are in flight, and makes sure that the warps of the warpgroup execute the
// same products.
func compileWgmmaWait(c *compiler, in *ir.Instr) (step, error) {
	n, err := groupCount(c, in, false)
	if err != nil {
		return nil, err
	}
	c.flow()
	wait := func(w *warp, m uint32) {
		if m != full {
			w.fault(WarpSync, first(m), 0, 0, "the warp has only lanes %#08x, the instruction needs all 32", m)
		}
		q := &w.async.products
		mine, trace := q.issued, q.trace
		group := w.block.warps[w.index/warpgroup*warpgroup:][:warpgroup:warpgroup]
		w.wait(m, "the other warps of its warpgroup to execute the same products", func() bool {
			for _, o := range group {
				if o.async.products.issued < mine {
					return false
				}
			}
			return true
		}, func(uint32) {
			for _, o := range group {
				if o.async.products.issued == mine && o.async.products.trace != trace {
					w.fault(WarpSync, 0, 0, 0, "warps %d and %d of a warpgroup have executed different products", w.index, o.index)
				}
			}
			q.wait(n)
		})
	}
	return func(w *warp, m uint32) {
		if m == full && w.act == full && w.async.products.issued == 0 {
			w.next() // nothing to wait for
			return
		}
		w.together(m, w.exists, WarpSync, wait)
	}, nil
}

// wgmmaForm is a compiled wgmma.mma_async.
type wgmmaForm struct {
	p              *product
	ld, la         *layout // la nil: A in shared memory
	descA, descB   ref
	transA, transB bool
	scale          ref // whether D is added to
	not            bool
	op             *memOp
	sizeA, sizeB   int // bytes of elements
}

func compileWgmma(c *compiler, in *ir.Instr) (step, error) {
	m, n, k, ok := shape(in)
	td, ta, tb := in.Type(0), in.Type(1), in.Type(2)
	byType := map[int]int{8: 32, 16: 16, 32: 8}
	integer := td == ir.S32
	if !ok || m != 64 || n%8 != 0 || n < 8 || n > 256 || ta.Bits() < 8 || k != byType[ta.Bits()] ||
		integer && n > 32 && n%16 != 0 ||
		len(in.Args) < 4 || ta == ir.F64 || tb == ir.F64 {
		return nil, c.unsupported(in)
	}
	p, err := newProduct(m/warpgroup, n, k, td, ta, tb, td)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	p.saturate = in.Has("satfinite")
	f := &wgmmaForm{p: p, descA: none, sizeA: ta.Size(), sizeB: tb.Size()}
	f.sizeA, f.sizeB = ta.Bits()/8, tb.Bits()/8
	if f.ld, err = c.layout(in, &in.Args[0], td, p.m*n, func(lane, e int) int {
		row, col := fragD(lane, e)
		return row*n + col
	}); err != nil {
		return nil, err
	}
	inRegs := in.Args[1].Kind == ir.VecOperand
	if inRegs {
		per := 32 / ta.Bits()
		if f.la, err = c.layout(in, &in.Args[1], ta, p.m*k, func(lane, e int) int {
			row, at := fragA(p.m, per, lane, e/per, e%per)
			return row*k + at
		}); err != nil {
			return nil, err
		}
	} else if f.descA, err = c.src(in, &in.Args[1], ir.B64); err != nil {
		return nil, err
	}
	if f.descB, err = c.src(in, &in.Args[2], ir.B64); err != nil {
		return nil, err
	}
	f.not = in.Args[3].Not
	if f.scale, err = c.src(in, &in.Args[3], ir.Pred); err != nil {
		return nil, err
	}
	if err := f.immediates(c, in, in.Args[4:], inRegs, integer); err != nil {
		return nil, err
	}
	f.op = c.memOp(in, bulkChunk, false)
	f.op.space, f.op.async = ir.SharedSpace, true
	c.tracks()
	return c.warpwide(f.issue), nil
}

// immediates reads the signs of A and B, and for types of 16 bits whether they are transposed.
func (f *wgmmaForm) immediates(c *compiler, in *ir.Instr, args []ir.Operand, inRegs, integer bool) error {
	var v []int64
	for _, a := range args {
		if a.Kind != ir.IntOperand {
			return c.errorf(in, compute.ErrArgument, "signs and transpositions have to be constants")
		}
		v = append(v, int64(a.Bits))
	}
	want := 2
	switch {
	case integer:
		want = 0
	case f.sizeA == 2 && inRegs:
		want = 3
	case f.sizeA == 2:
		want = 4
	}
	if len(v) != want {
		return c.errorf(in, compute.ErrArgument, "%d constants behind scale-d, want %d", len(v), want)
	}
	for i, decode := range []*func(uint64) float64{&f.p.decodeA, &f.p.decodeB} {
		if i >= len(v) {
			return nil
		}
		switch plain := *decode; v[i] {
		case 1:
		case -1:
			*decode = func(b uint64) float64 { return -plain(b) }
		default:
			return c.errorf(in, compute.ErrArgument, "the sign of a matrix is %d, want 1 or -1", v[i])
		}
	}
	for i, t := range v[2:] {
		if t != 0 && t != 1 {
			return c.errorf(in, compute.ErrArgument, "the transposition of a matrix is %d, want 0 or 1", t)
		}
		if i == 0 && want == 4 {
			f.transA = t == 1
		} else {
			f.transB = t == 1
		}
	}
	return nil
}

// descriptor decodes a descriptor, which has to be the same in all lanes.
func (f *wgmmaForm) descriptor(w *warp, r ref, what string) (d descriptor, bits uint64) {
	if w.def != nil {
		w.demand(r, full, "the descriptor of "+what)
	}
	bits, same := w.uniform(r, full)
	if !same {
		w.fault(BadOperand, 0, 0, 0, "the descriptor of %s differs between lanes", what)
	}
	d, err := decodeDescriptor(bits)
	if err != nil {
		w.fault(BadOperand, 0, 0, 0, "%s: %v", what, err)
	}
	return d, bits
}

// tile calls f with the pieces of rows from to from+n of a matrix in shared memory.
func (d *descriptor) tile(from, n, k, size int, trans bool, f func(piece)) {
	per := bulkChunk / size
	stepMN, stepK := 1, per
	if trans {
		stepMN, stepK = per, 1
	}
	for mn := from; mn < from+n; mn += stepMN {
		for at := 0; at < k; at += stepK {
			f(piece{src: uint64(d.address(mn, at, size, trans)), n: bulkChunk, to: bulkChunk})
		}
	}
}

// read reads the elements of rows from to from+n.
func (d *descriptor) read(mem []byte, dst []uint64, from, n, k, size int, trans bool) {
	for mn := range n {
		for at := range k {
			dst[mn*k+at] = load(mem[d.address(from+mn, at, size, trans):], size)
		}
	}
}

func (f *wgmmaForm) issue(w *warp, _ uint32) {
	base := w.index / warpgroup * warpgroup
	if base+warpgroup > len(w.block.warps) || w.block.warps[base+warpgroup-1].exists != full {
		w.fault(WarpSync, 0, 0, 0, "the block has no four whole warps here: threads %d to %d", base*warpSize,
			(base+warpgroup)*warpSize-1)
	}
	if w.def != nil {
		w.demand(f.scale, full, "scale-d")
	}
	add, same := w.uniform(f.scale, full)
	if !same {
		w.fault(BadOperand, 0, 0, 0, "scale-d differs between lanes")
	}
	adds := add&1 == 1 != f.not
	p := f.p
	row := w.index % warpgroup * p.m
	var da descriptor
	var bitsA uint64
	if f.la == nil {
		da, bitsA = f.descriptor(w, f.descA, "A")
	}
	db, bitsB := f.descriptor(w, f.descB, "B")
	x := &asyncProduct{pc: w.at, d: f.ld.refs}
	if f.la != nil {
		x.a = f.la.refs
	}
	x.tiles = &flight{w: w, pc: w.at, src: f.op, each: func(each func(piece)) {
		if f.la == nil {
			da.tile(row, p.m, p.k, f.sizeA, f.transA, each)
		}
		db.tile(0, p.n, p.k, f.sizeB, f.transB, each)
	}}
	q := &w.async.products
	x.group = q.committed
	if w.checksAsync() {
		q.issue(w, x)
	}
	w.issue(x.tiles)
	if x.tiles.undef != nil {
		w.fault(Uninitialized, 0, 0, 0, "bytes of a matrix in shared memory have never been written")
	}
	x.run = func() { f.run(w, da, db, row, adds) }
	f.define(w, adds)
	q.queue = append(q.queue, x)
	q.issued++
	q.trace = (q.trace ^ uint64(w.at) ^ bitsA*0x9e3779b97f4a7c15 ^ bitsB) * 0xff51afd7ed558ccd
	if rng := w.work.rng; rng != nil && rng.IntN(2) == 0 {
		w.block.cluster.later(w.block.cluster.delay(), func() { q.execute(x) })
	}
}

// define says which accumulators have values afterwards: without scale-d all.
func (f *wgmmaForm) define(w *warp, adds bool) {
	if w.def == nil {
		return
	}
	for _, r := range f.ld.refs {
		if !adds {
			w.def[r.bank][r.i] = full
		}
	}
	if f.la != nil {
		for _, r := range f.la.refs {
			w.demand(r, full, "a register of A")
		}
	}
}

func (f *wgmmaForm) run(w *warp, da, db descriptor, row int, adds bool) {
	p := f.p
	a, b, c := make([]uint64, p.m*p.k), make([]uint64, p.n*p.k), make([]uint64, p.m*p.n)
	mem := w.block.shared.data
	if f.la != nil {
		f.la.gather(w, a)
	} else {
		da.read(mem, a, row, p.m, p.k, f.sizeA, f.transA)
	}
	db.read(mem, b, 0, p.n, p.k, f.sizeB, f.transB)
	if adds {
		f.ld.gather(w, c)
	}
	p.compute(c, c, a, b)
	f.ld.scatter(w, c)
}
