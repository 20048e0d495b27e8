package sim

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// tensorProduct is a compiled tcgen05.mma: D in tensor memory, A there or in shared memory, B in shared memory.
type tensorProduct struct {
	kind        string
	d, a        address
	descA       ref // where A is in shared memory
	shared      bool
	descB, desc ref
	enable      ref // whether D is added to
	not         bool
	masked      []ref // lanes of D that are not written
	op          *memOp
}

// compileTensorProduct compiles tcgen05.mma: [D], A or [A], B, descriptor, {lanes}, enable-input-d.
func compileTensorProduct(c *compiler, in *ir.Instr) (step, error) {
	n := len(in.Args)
	if n < 5 || n > 6 || !in.Has("cta_group::1") || in.Args[n-1].Kind == ir.IntOperand {
		return nil, c.unsupported(in) // pairs of blocks, and scaled inputs
	}
	f := &tensorProduct{kind: string(in.First("kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8")), descA: none}
	if f.kind == "" {
		return nil, c.unsupported(in)
	}
	f.kind = f.kind[len("kind::"):]
	var err error
	if f.d, err = c.addr(in, &in.Args[0]); err != nil {
		return nil, err
	}
	if f.shared = in.Args[1].Kind != ir.AddrOperand; f.shared {
		f.descA, err = c.src(in, &in.Args[1], ir.B64)
	} else {
		f.a, err = c.addr(in, &in.Args[1])
	}
	if err != nil {
		return nil, err
	}
	if f.descB, err = c.src(in, &in.Args[2], ir.B64); err != nil {
		return nil, err
	}
	if f.desc, err = c.src(in, &in.Args[3], ir.B32); err != nil {
		return nil, err
	}
	if n == 6 {
		if f.masked, err = c.list(in, &in.Args[4], ir.B32); err != nil {
			return nil, err
		}
		if len(f.masked) != tensorLanes/32 {
			return nil, c.errorf(in, compute.ErrArgument, "%d registers for the lanes that are not written, want %d", len(f.masked), tensorLanes/32)
		}
	}
	f.not = in.Args[n-1].Not
	if f.enable, err = c.src(in, &in.Args[n-1], ir.Pred); err != nil {
		return nil, err
	}
	f.op = c.memOp(in, bulkChunk, false)
	f.op.space, f.op.async = ir.SharedSpace, true
	c.tracks()
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			f.issue(w, first(m))
		}
	}, nil
}

// descriptor decodes a descriptor of a matrix in shared memory.
func (f *tensorProduct) descriptor(w *warp, lane int, r ref, what string) tensorcore.Descriptor {
	d, err := tensorcore.DecodeTensorDescriptor(w.get(r, lane))
	if err != nil {
		w.fault(BadOperand, lane, 0, 0, "%s: %v", what, err)
	}
	return d
}

func (f *tensorProduct) issue(w *warp, lane int) {
	form, err := tensorcore.DecodeInstruction(f.kind, uint32(w.get(f.desc, lane)))
	if err != nil {
		w.fault(BadOperand, lane, 0, 0, "%v", err)
	}
	p := form.Product
	size := form.SizeA // bytes of an element of A, and of B
	adds := w.get(f.enable, lane)&1 == 1 != f.not
	var keep [tensorLanes / 32]uint32
	for i, r := range f.masked {
		keep[i] = uint32(w.get(r, lane))
	}
	d, rowD := w.rows(lane, f.d.of(w, lane), p.M, p.N)
	x := &tensorWork{writes: d}
	var da tensorcore.Descriptor
	aColumn, rowA := 0, rowD
	if f.shared {
		da = f.descriptor(w, lane, f.descA, "A")
	} else {
		var a tensorArea
		a, rowA = w.rows(lane, f.a.of(w, lane), p.M, p.K*size/4)
		x.reads, aColumn = []tensorArea{a}, a.column
		w.settleTensor(lane, &a, false, true)
		w.valued(lane, &a, "A")
	}
	db := f.descriptor(w, lane, f.descB, "B")
	w.settleTensor(lane, &d, true, true)
	if adds {
		w.valued(lane, &d, "D, which the product is added to,")
	}
	x.flight = &flight{w: w, lane: lane, pc: w.at, src: f.op, each: func(each func(piece)) {
		chunk := func(addr uint32) { each(piece{src: uint64(addr), n: bulkChunk, to: bulkChunk}) }
		if f.shared {
			da.Chunks(0, p.M, p.K, size, form.TransA, chunk)
		}
		db.Chunks(0, p.N, p.K, size, form.TransB, chunk)
	}}
	w.issue(x.flight)
	if x.flight.undef != nil {
		w.fault(Uninitialized, lane, 0, 0, "bytes of a matrix in shared memory have never been written")
	}
	t := &w.block.tensor
	x.run = func() {
		a, b, sum := make([]uint64, p.M*p.K), make([]uint64, p.N*p.K), make([]uint64, p.M*p.N)
		mem := w.block.shared.data
		if f.shared {
			readMatrix(&da, mem, a, 0, p.M, p.K, size, form.TransA)
		} else {
			per := 4 / size
			for row := range p.M {
				for k := range p.K {
					word := t.get(rowA(row), aColumn+k/per)
					a[row*p.K+k] = uint64(word) >> (k % per * 8 * size) & (1<<(8*size) - 1)
				}
			}
		}
		readMatrix(&db, mem, b, 0, p.N, p.K, size, form.TransB)
		if adds {
			for i := range sum {
				sum[i] = uint64(t.get(rowD(i/p.N), d.column+i%p.N))
			}
		}
		p.Compute(sum, sum, a, b)
		for i, v := range sum {
			if row := rowD(i / p.N); keep[row/32]>>(row%32)&1 == 0 {
				t.set(row, d.column+i%p.N, uint32(v))
			}
		}
	}
	w.begin(x)
	// What reads D has to wait; that it has a value is known now, for products that follow.
	for i := range p.M * p.N {
		if row := rowD(i / p.N); keep[row/32]>>(row%32)&1 == 0 {
			t.mark(row, d.column+i%p.N)
		}
	}
}

// begin puts an operation into the queue of those under way. Under a seed it may happen at any time, together with those before it.
func (w *warp) begin(x *tensorWork) {
	t := &w.block.tensor
	t.work = append(t.work, x)
	w.async.tie(w, []*flight{x.flight})
	if rng := w.work.rng; rng != nil && rng.IntN(2) == 0 {
		w.block.cluster.later(w.block.cluster.delay(), func() { t.execute(x) })
	}
}

func (t *tensorMemory) mark(lane, column int) {
	i := column*tensorLanes + lane
	t.written[i/32] |= 1 << (i % 32)
}

// valued faults if an area has lanes without value.
func (w *warp) valued(lane int, a *tensorArea, what string) {
	if w.mon == nil || w.block.grid.gpu.cfg.Checks&CheckInit == 0 {
		return
	}
	if missing := w.block.tensor.missing(a); missing != [tensorLanes / 32]uint32{} {
		w.fault(Uninitialized, lane, 0, uint64(a.column), "%s is tensor memory that nobody has written, in lanes %s", what, setOfLanes(missing))
	}
}

func setOfLanes(set [tensorLanes / 32]uint32) string {
	return fmt.Sprintf("%08x:%08x:%08x:%08x", set[3], set[2], set[1], set[0])
}

// rows is the area of a matrix of m rows, D or A, at an address, and the lane of each row: with 64 rows each quarter of tensor memory has 16
// of them, in its lower or upper half.
func (w *warp) rows(lane int, addr uint64, m, columns int) (tensorArea, func(row int) int) {
	first := int(addr >> 16 & 0xffff)
	at := func(row int) int { return row }
	if m == 64 {
		at = func(row int) int { return first + row/16*32 + row%16 }
	}
	if first != 0 && (m != 64 || first != 16) {
		w.fault(BadOperand, lane, 0, addr, "a matrix of %d rows in tensor memory from lane %d on", m, first)
	}
	var set [tensorLanes / 32]uint32
	for row := range m {
		set[at(row)/32] |= 1 << (at(row) % 32)
	}
	return w.area(lane, addr, set, columns), at
}

// compileTensorCommit compiles tcgen05.commit: the mbarrier counts an arrival when all that the thread has issued is complete.
func compileTensorCommit(c *compiler, in *ir.Instr) (step, error) {
	if !in.Has("cta_group::1") || in.Has("multicast::cluster") {
		return nil, c.unsupported(in)
	}
	b, err := c.mbarrierOperand(in, 0)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			o := b.find(w, lane)
			t := &w.block.tensor
			var mine []*flight
			var last *tensorWork
			for _, x := range t.work {
				if x.flight.w == w && x.flight.lane == lane {
					last = x
					mine = append(mine, x.flight)
				}
			}
			pc := w.at
			w.block.cluster.later(w.block.cluster.delay(), func() {
				if last != nil {
					t.execute(last)
				}
				w.from(pc, func() { o.complete(w, lane, mine, func() (bool, error) { return o.Arrive(1, false) }) })
			})
		}
	}, err
}

// compileTensorCopy compiles tcgen05.cp: [tensor memory], the descriptor of a matrix in shared memory whose rows are lanes.
func compileTensorCopy(c *compiler, in *ir.Instr) (step, error) {
	rows, columns, times := tensorLanes, 0, 1
	switch {
	case in.Has("128x256b"):
		columns = 8
	case in.Has("128x128b"):
		columns = 4
	case in.Has("32x128b"):
		rows, columns, times = 32, 4, 4
	}
	if columns == 0 || !in.Has("cta_group::1") || len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	to, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	desc, err := c.src(in, &in.Args[1], ir.B64)
	op := c.memOp(in, bulkChunk, false)
	op.space, op.async = ir.SharedSpace, true
	c.tracks()
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			d, err := tensorcore.DecodeTensorDescriptor(w.get(desc, lane))
			if err != nil {
				w.fault(BadOperand, lane, 0, 0, "%v", err)
			}
			a := w.area(lane, to.of(w, lane), lanesFrom(0, tensorLanes), columns)
			w.settleTensor(lane, &a, true, true)
			x := &tensorWork{writes: a}
			x.flight = &flight{w: w, lane: lane, pc: w.at, src: op, each: func(each func(piece)) {
				d.Chunks(0, rows, 4*columns, 1, false, func(addr uint32) { each(piece{src: uint64(addr), n: bulkChunk, to: bulkChunk}) })
			}}
			w.issue(x.flight)
			if x.flight.undef != nil {
				w.fault(Uninitialized, lane, 0, 0, "bytes of a matrix in shared memory have never been written")
			}
			t := &w.block.tensor
			x.run = func() {
				for row := range rows {
					for col := range columns {
						v := uint32(load(w.block.shared.data[d.Address(row, 4*col, 1, false):], 4))
						for i := range times {
							t.set(row+i*rows, a.column+col, v)
						}
					}
				}
			}
			w.begin(x)
			for row := range tensorLanes {
				for col := range columns {
					t.mark(row, a.column+col)
				}
			}
		}
	}, err
}
