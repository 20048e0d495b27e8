package sim

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// tensorProduct is a compiled tcgen05.mma: D in tensor memory, A there or in shared memory, B in shared memory.
type tensorProduct struct {
	kind           string
	group          int // elements to a scale; 0: without scales
	d, a           address
	descA          ref // where A is in shared memory
	shared         bool
	descB, desc    ref
	scaleA, scaleB address
	enable         ref // whether D is added to
	not            bool
	masked         []ref // lanes of D that are not written
	op             *memOp
}

// tensorGroups are the elements along k that have a scale together, by the kind of a product and what its opcode says of it. Without that
// they are 32.
var tensorGroups = map[string]map[ir.Mod]int{
	"mxf8f6f4": {"": 32, "scale_vec::1X": 32, "block32": 32}, "mxf4": {"": 32, "scale_vec::2X": 32, "block32": 32},
	"mxf4nvf4": {"scale_vec::2X": 32, "block32": 32, "scale_vec::4X": 16, "block16": 16},
}

// compileTensorProduct compiles tcgen05.mma: [D], A or [A], B, descriptor, {lanes}, enable-input-d, and with scales [D], A or [A], B,
// descriptor, [scales of A], [scales of B], enable-input-d.
func compileTensorProduct(c *compiler, in *ir.Instr) (step, error) {
	n := len(in.Args)
	if !in.Has("cta_group::1") {
		return nil, c.errorf(in, compute.ErrUnsupported, "products of two blocks (cta_group::2) are not supported")
	}
	if n < 5 || n > 7 {
		return nil, c.unsupported(in)
	}
	if in.Args[n-1].Kind == ir.IntOperand {
		return nil, c.errorf(in, compute.ErrUnsupported, "a scale of D (scale-input-d) is not supported")
	}
	f := &tensorProduct{descA: none}
	for _, m := range in.Mods {
		if kind, ok := strings.CutPrefix(string(m), "kind::"); ok {
			f.kind = kind
		}
	}
	if groups := tensorGroups[f.kind]; groups != nil {
		f.group = groups[in.First("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")]
	}
	if in.Has("block_scale") != (f.group > 0) || f.group > 0 && n != 7 || f.group == 0 && n > 6 {
		return nil, c.unsupported(in)
	}
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
	switch {
	case f.group > 0:
		if f.scaleA, err = c.addr(in, &in.Args[4]); err != nil {
			return nil, err
		}
		if f.scaleB, err = c.addr(in, &in.Args[5]); err != nil {
			return nil, err
		}
	case n == 6:
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
	form, err := tensorcore.DecodeInstruction(f.kind, f.group, uint32(w.get(f.desc, lane)))
	if err != nil {
		w.fault(BadOperand, lane, 0, 0, "%v", err)
	}
	p := form.Product
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
		if per := 128 / form.A.Per; form.A.Bits != per {
			w.fault(BadOperand, lane, 0, 0, "A in tensor memory, of elements of %d bits that take %d each: the software GPU does not read them",
				form.A.Bits, per)
		}
		var a tensorArea
		a, rowA = w.rows(lane, f.a.of(w, lane), p.M, p.K*form.A.Bits/32)
		x.reads, aColumn = []tensorArea{a}, a.column
		w.settleTensor(lane, &a, false, true)
		w.valued(lane, &a, "A")
	}
	db := f.descriptor(w, lane, f.descB, "B")
	w.settleTensor(lane, &d, true, true)
	if adds {
		w.valued(lane, &d, "D, which the product is added to,")
	}
	var sa, sb func() []float64
	if form.Scales != nil {
		sa = f.scales(w, lane, x, f.scaleA.of(w, lane), p.M, form.Scales.FirstA, form, "A")
		sb = f.scales(w, lane, x, f.scaleB.of(w, lane), p.N, form.Scales.FirstB, form, "B")
	}
	x.flight = &flight{w: w, lane: lane, pc: w.at, src: f.op, each: func(each func(piece)) {
		chunk := func(addr uint32, bytes int) { each(piece{src: uint64(addr), n: bytes, to: bytes}) }
		if f.shared {
			form.A.Chunks(&da, p.M, p.K, form.TransA, chunk)
		}
		form.B.Chunks(&db, p.N, p.K, form.TransB, chunk)
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
			form.A.Read(&da, mem, a, p.M, p.K, form.TransA)
		} else {
			size := form.A.Bits
			per := 32 / size
			for row := range p.M {
				for k := range p.K {
					word := t.get(rowA(row), aColumn+k/per)
					a[row*p.K+k] = uint64(word) >> (k % per * size) & (1<<size - 1)
				}
			}
		}
		form.B.Read(&db, mem, b, p.N, p.K, form.TransB)
		if adds {
			for i := range sum {
				sum[i] = uint64(t.get(rowD(i/p.N), d.column+i%p.N))
			}
		}
		if form.Scales != nil {
			p.ComputeScaled(sum, sum, a, b, sa(), sb(), form.Scales.Group)
		} else {
			p.Compute(sum, sum, a, b)
		}
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

// scales notes that a product reads the scales of rows of A or columns of B, and returns what reads them: in neighbouring bytes of a column,
// 32 rows in as many lanes and the next 32 in the next column. All four quarters of tensor memory have to hold the same.
func (f *tensorProduct) scales(w *warp, lane int, x *tensorWork, addr uint64, rows, firstByte int, form *tensorcore.Instruction,
	what string,
) func() []float64 {
	const quarters = tensorLanes / warpSize
	if addr>>16 != 0 {
		w.fault(BadOperand, lane, 0, addr, "the scales of %s in tensor memory from lane %d on, want 0", what, addr>>16)
	}
	column := 0
	for row := 0; row < rows; row += warpSize {
		var a tensorArea
		for q := range quarters {
			a.lanes[q] = lanesFrom(0, min(warpSize, rows-row))[0]
		}
		a = w.area(lane, addr+uint64(row/warpSize), a.lanes, 1)
		if row == 0 {
			column = a.column
		}
		w.settleTensor(lane, &a, false, true)
		w.valued(lane, &a, "a column of scales of "+what)
		x.reads = append(x.reads, a)
	}
	pc := w.at
	return func() []float64 {
		t := &w.block.tensor
		count := form.K / form.Scales.Group
		list := make([]float64, 0, rows*count)
		for row := range rows {
			word := t.get(row%warpSize, column+row/warpSize)
			for q := 1; q < quarters; q++ {
				if o := t.get(row%warpSize+q*warpSize, column+row/warpSize); o != word {
					w.from(pc, func() {
						w.fault(BadOperand, lane, 0, addr, "the scales of row %d of %s are 0x%08x in one quarter of tensor memory and 0x%08x in another",
							row, what, word, o)
					})
				}
			}
			for i := range count {
				b := uint8(word >> (8 * (firstByte + i)))
				v, ok := form.Scales.Number(b)
				if !ok {
					w.from(pc, func() {
						w.fault(BadOperand, lane, 0, addr, "the scale 0x%02x of row %d of %s has a sign", b, row, what)
					})
				}
				list = append(list, v)
			}
		}
		return list
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
