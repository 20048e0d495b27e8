package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

func compileWgmmaFence(c *compiler, in *ir.Instr) (step, error) {
	return c.warpwide(func(w *warp, _ uint32) { w.async.products.fence() }), nil
}

func compileWgmmaCommit(c *compiler, in *ir.Instr) (step, error) {
	return c.warpwide(func(w *warp, _ uint32) { w.async.products.committed++ }), nil
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
	p              *tensorcore.Product
	ld, la         *layout // la nil: A in shared memory
	descA, descB   ref
	transA, transB bool
	scale          ref // whether D is added to
	not            bool
	op             *memOp
	sizeA, sizeB   int // bytes of elements
}

func compileWgmma(c *compiler, in *ir.Instr) (step, error) {
	m, n, k, ok := in.Shape()
	td, ta, tb := in.Type(0), in.Type(1), in.Type(2)
	if !ok || !tensorcore.HasWgmma(m, n, k, ta) || tb == ir.F64 || len(in.Args) < 4 {
		return nil, c.unsupported(in)
	}
	p, err := tensorcore.NewProduct(m/warpgroup, n, k, td, ta, tb, td)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	p.Saturate = in.Has("satfinite")
	f := &wgmmaForm{p: p, descA: none, sizeA: ta.Bits() / 8, sizeB: tb.Bits() / 8}
	if f.ld, err = c.layout(in, &in.Args[0], td, p.M*n, func(lane, e int) int {
		row, col := tensorcore.WgmmaAccumulator(lane, e)
		return row*n + col
	}); err != nil {
		return nil, err
	}
	inRegs := in.Args[1].Kind == ir.VecOperand
	if inRegs {
		per := 32 / ta.Bits()
		if f.la, err = c.layout(in, &in.Args[1], ta, p.M*k, func(lane, e int) int {
			row, at := tensorcore.FragmentA(p.M, per, lane, e/per, e%per)
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
	if err := f.immediates(c, in, in.Args[4:], inRegs, td == ir.S32); err != nil {
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
		return c.errorf(in, compute.ErrArgument, "%d constants after scale-d, want %d", len(v), want)
	}
	if integer {
		return nil
	}
	for i, negate := range []*bool{&f.p.NegateA, &f.p.NegateB} {
		if v[i] != 1 && v[i] != -1 {
			return c.errorf(in, compute.ErrArgument, "the sign of a matrix is %d, want 1 or -1", v[i])
		}
		*negate = v[i] == -1
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
func (f *wgmmaForm) descriptor(w *warp, r ref, what string) (d tensorcore.Descriptor, bits uint64) {
	if w.def != nil {
		w.demand(r, full, "the descriptor of "+what)
	}
	bits, same := w.uniform(r, full)
	if !same {
		w.fault(BadOperand, 0, 0, 0, "the descriptor of %s differs between lanes", what)
	}
	d, err := tensorcore.DecodeDescriptor(bits)
	if err != nil {
		w.fault(BadOperand, 0, 0, 0, "%s: %v", what, err)
	}
	return d, bits
}

// readMatrix reads the elements of rows from to from+n.
func readMatrix(d *tensorcore.Descriptor, mem []byte, dst []uint64, from, n, k, size int, trans bool) {
	for mn := range n {
		for at := range k {
			dst[mn*k+at] = load(mem[d.Address(from+mn, at, size, trans):], size)
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
	row := w.index % warpgroup * p.M
	var da tensorcore.Descriptor
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
		chunk := func(addr uint32) { each(piece{src: uint64(addr), n: bulkChunk, to: bulkChunk}) }
		if f.la == nil {
			da.Chunks(row, p.M, p.K, f.sizeA, f.transA, chunk)
		}
		db.Chunks(0, p.N, p.K, f.sizeB, f.transB, chunk)
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

func (f *wgmmaForm) run(w *warp, da, db tensorcore.Descriptor, row int, adds bool) {
	p := f.p
	a, b, c := make([]uint64, p.M*p.K), make([]uint64, p.N*p.K), make([]uint64, p.M*p.N)
	mem := w.block.shared.data
	if f.la != nil {
		f.la.gather(w, a)
	} else {
		readMatrix(&da, mem, a, row, p.M, p.K, f.sizeA, f.transA)
	}
	readMatrix(&db, mem, b, 0, p.N, p.K, f.sizeB, f.transB)
	if adds {
		f.ld.gather(w, c)
	}
	p.Compute(c, c, a, b)
	f.ld.scatter(w, c)
}
