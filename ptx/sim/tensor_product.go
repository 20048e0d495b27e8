package sim

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// tensorProduct is a compiled tcgen05.mma: D in tensor memory, A there or in shared memory, B in shared memory.
type tensorProduct struct {
	kind           string
	group          int // elements to a scale; 0: without scales
	blocks         int
	sparse         bool
	shift          int // what D, which the product is added to, is divided by: two to this
	metadata       address
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
// descriptor, [scales of A], [scales of B], enable-input-d. A constant may follow without scales, and tcgen05.mma.sp has [metadata] before the descriptor.
func compileTensorProduct(c *compiler, in *ir.Instr) (step, error) {
	args, sparse := in.Args, in.Op == "tcgen05.mma.sp"
	if sparse && len(args) > 4 {
		args = slices.Delete(slices.Clone(args), 3, 4)
	}
	f := &tensorProduct{descA: none, blocks: blocksOf(in), sparse: sparse}
	n := len(args)
	if n > 0 && args[n-1].Kind == ir.IntOperand {
		n--
		f.shift = int(args[n].Bits)
	}
	if n < 5 || n > 7 {
		return nil, c.unsupported(in)
	}
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
	if f.sparse && f.group > 0 {
		return nil, c.errorf(in, compute.ErrUnsupported, "sparse products with scales are not supported")
	}
	var err error
	if f.sparse {
		if f.metadata, err = c.addr(in, &in.Args[3]); err != nil {
			return nil, err
		}
	}
	if f.d, err = c.addr(in, &args[0]); err != nil {
		return nil, err
	}
	if f.shared = args[1].Kind != ir.AddrOperand; f.shared {
		f.descA, err = c.src(in, &args[1], ir.B64)
	} else {
		f.a, err = c.addr(in, &args[1])
	}
	if err != nil {
		return nil, err
	}
	if f.descB, err = c.src(in, &args[2], ir.B64); err != nil {
		return nil, err
	}
	if f.desc, err = c.src(in, &args[3], ir.B32); err != nil {
		return nil, err
	}
	switch {
	case f.group > 0:
		if f.scaleA, err = c.addr(in, &args[4]); err != nil {
			return nil, err
		}
		if f.scaleB, err = c.addr(in, &args[5]); err != nil {
			return nil, err
		}
	case n == 6:
		if f.masked, err = c.list(in, &args[4], ir.B32); err != nil {
			return nil, err
		}
		if want := f.blocks * tensorLanes / 32; len(f.masked) != want {
			return nil, c.errorf(in, compute.ErrArgument, "%d registers for the lanes that are not written, want %d", len(f.masked), want)
		}
	}
	f.not = args[n-1].Not
	if f.enable, err = c.src(in, &args[n-1], ir.Pred); err != nil {
		return nil, err
	}
	f.op = c.memOp(in, bulkChunk, false)
	f.op.space, f.op.async = ir.SharedClusterSpace, true
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
	form, err := tensorcore.DecodeInstruction(f.kind, f.blocks, f.group, f.sparse, uint32(w.get(f.desc, lane)))
	if err != nil {
		w.fault(BadOperand, lane, 0, 0, "%v", err)
	}
	p := form.Product
	p.Shift = f.shift
	blocks := w.pair(lane, f.blocks)
	rows, columns := p.M/f.blocks, p.N/f.blocks // of A and B that a block has
	kb := p.K                                   // of B
	if f.sparse {
		kb *= 2
	}
	adds := w.get(f.enable, lane)&1 == 1 != f.not
	keep := make([]uint32, f.blocks*tensorLanes/32)
	for i, r := range f.masked {
		keep[i] = uint32(w.get(r, lane))
	}
	d := w.matrix(lane, blocks, f.d.of(w, lane), p.M, p.N, false)
	x := &tensorWork{writes: d.areas}
	var da tensorcore.Descriptor
	var a *tensorMatrix
	if f.shared {
		da = f.descriptor(w, lane, f.descA, "A")
	} else {
		if per := 128 / form.A.Per; form.A.Bits != per {
			w.fault(BadOperand, lane, 0, 0, "A in tensor memory, of elements of %d bits that take %d each: the software GPU does not read them",
				form.A.Bits, per)
		}
		a = w.matrix(lane, blocks, f.a.of(w, lane), p.M, p.K*form.A.Bits/32, true)
		x.reads = slices.Clone(a.areas)
		w.settled(lane, a.areas, false, "A")
	}
	db := f.descriptor(w, lane, f.descB, "B")
	if !form.TransB && !db.Holds(kb/form.B.Per*bulkChunk) {
		w.fault(BadOperand, lane, 0, 0, "B of a sparse product has rows of 64 bytes, and the swizzle is one of 32")
	}
	what := ""
	if adds {
		what = "D, which the product is added to,"
	}
	w.settled(lane, d.areas, true, what)
	var metadata []tensorArea
	if f.sparse {
		metadata = f.metadataOf(w, lane, blocks, form)
		x.reads = append(x.reads, metadata...)
	}
	var sa, sb func() []float64
	if form.Scales != nil {
		sa = f.scales(w, lane, x, blocks, f.scaleA.of(w, lane), rows, form.Scales.FirstA, form, "A")
		sb = f.scales(w, lane, x, blocks, f.scaleB.of(w, lane), p.N, form.Scales.FirstB, form, "B")
	}
	x.flight = &flight{w: w, lane: lane, pc: w.at, src: f.op, each: func(each func(piece)) {
		for _, b := range blocks {
			chunk := func(addr uint32, bytes int) {
				each(piece{src: ofRank(uint64(addr), uint64(b.rank)), n: bytes, to: bytes})
			}
			if f.shared {
				form.A.Chunks(&da, rows, p.K, form.TransA, chunk)
			}
			form.B.Chunks(&db, columns, kb, form.TransB, chunk)
		}
	}}
	w.issue(x.flight)
	if x.flight.undef != nil {
		w.fault(Uninitialized, lane, 0, 0, "bytes of a matrix in shared memory have never been written")
	}
	pc := w.at
	each := func(do func(i, block int, c tensorCell)) { // all elements of D that are written
		for i := range p.M * p.N {
			if block, c := d.at(i/p.N, i%p.N); keep[block*tensorLanes/32+c.lane/32]>>(c.lane%32)&1 == 0 {
				do(i, block, c)
			}
		}
	}
	x.run = func() {
		va, vb, sum := make([]uint64, p.M*p.K), make([]uint64, p.N*kb), make([]uint64, p.M*p.N)
		for i, b := range blocks {
			if f.shared {
				form.A.Read(&da, b.shared.data, va[i*rows*p.K:], rows, p.K, form.TransA)
			}
			form.B.Read(&db, b.shared.data, vb[i*columns*kb:], columns, kb, form.TransB)
		}
		if !f.shared {
			w.from(pc, func() { a.read(w, lane, va, p.M, p.K, form.A.Bits) })
		}
		if adds {
			for i := range sum {
				block, c := d.at(i/p.N, i%p.N)
				sum[i] = uint64(blocks[block].tensor.get(c.lane, c.column))
			}
		}
		switch {
		case form.Scales != nil:
			p.ComputeScaled(sum, sum, va, vb, sa(), sb(), form.Scales.Group)
		case f.sparse:
			w.from(pc, func() { sparseRows(w, lane, form, rows, metadata, sum, va, vb) })
		default:
			p.Compute(sum, sum, va, vb)
		}
		each(func(i, block int, c tensorCell) { blocks[block].tensor.set(c.lane, c.column, uint32(sum[i])) })
	}
	w.begin(x)
	// What reads D has to wait; that it has a value is known now, for products that follow.
	each(func(_, block int, c tensorCell) { blocks[block].tensor.mark(c.lane, c.column) })
}

// metadataOf is the metadata of a sparse A, by block. Its address is that of the first one of two columns.
func (f *tensorProduct) metadataOf(w *warp, lane int, blocks []*block, form *tensorcore.Instruction) (areas []tensorArea) {
	addr := f.metadata.of(w, lane)
	if addr>>16 != 0 || addr%2 != 0 {
		w.fault(BadOperand, lane, 0, addr, "the metadata of A in tensor memory in lane %d and column %d, want lane 0 and an even column", addr>>16,
			addr&0xffff)
	}
	columns := 1
	if form.A.Per == 16 {
		columns = 2
	}
	for _, b := range blocks {
		areas = append(areas, w.area(lane, b, addr+uint64(form.Selector), lanesFrom(0, tensorLanes), columns))
	}
	w.settled(lane, areas, false, "the metadata of A")
	return areas
}

// sparseRows adds products to sums. Each row of A has its own choice of the rows of B: what A does not have is not read in B.
func sparseRows(w *warp, lane int, form *tensorcore.Instruction, rows int, metadata []tensorArea, sum, va, vb []uint64) {
	row := *form.Product
	row.M = 1
	k, n := row.K, row.N
	list, chosen := make([]int, k), make([]uint64, n*k)
	for i := range form.M {
		a := metadata[i/rows]
		if chunk, ok := form.Columns(list, i%rows, func(lane, column int) uint32 { return a.of.get(lane, a.column+column) }); !ok {
			w.fault(BadOperand, lane, 0, uint64(a.column), "the metadata of row %d has indices that mean nothing, or not in ascending order, in chunk %d",
				i, chunk)
		}
		for col := range n {
			for j, at := range list {
				chosen[col*k+j] = vb[col*2*k+at]
			}
		}
		row.Compute(sum[i*n:(i+1)*n], sum[i*n:(i+1)*n], va[i*k:(i+1)*k], chosen)
	}
}

// settled looks whether a product may read areas, or write them, and, if what says what they are, whether all have a value.
func (w *warp) settled(lane int, areas []tensorArea, write bool, what string) {
	for i := range areas {
		w.settleTensor(lane, &areas[i], write, true)
		if what != "" {
			w.valued(lane, &areas[i], what)
		}
	}
}

// scales notes that a product reads the scales of rows of A or columns of B, and returns what reads them: in neighbouring bytes of a column,
// 32 rows in as many lanes and the next 32 in the next column. All four quarters of tensor memory have to hold the same. Of a pair of blocks
// each has those of its own rows of A, and of all columns of B.
func (f *tensorProduct) scales(w *warp, lane int, x *tensorWork, blocks []*block, addr uint64, rows, firstByte int,
	form *tensorcore.Instruction, what string,
) func() []float64 {
	const quarters = tensorLanes / warpSize
	if addr>>16 != 0 {
		w.fault(BadOperand, lane, 0, addr, "the scales of %s in tensor memory from lane %d on, want 0", what, addr>>16)
	}
	for _, b := range blocks {
		for row := 0; row < rows; row += warpSize {
			var lanes [quarters]uint32
			for q := range lanes {
				lanes[q] = lanesFrom(0, min(warpSize, rows-row))[0]
			}
			a := w.area(lane, b, addr+uint64(row/warpSize), lanes, 1)
			w.settleTensor(lane, &a, false, true)
			w.valued(lane, &a, "a column of scales of "+what)
			x.reads = append(x.reads, a)
		}
	}
	pc := w.at
	wrong := func(format string, args ...any) {
		w.from(pc, func() { w.fault(BadOperand, lane, 0, addr, format, args...) })
	}
	return func() []float64 {
		count := form.K / form.Scales.Group
		var list []float64
		of := blocks
		if what == "B" {
			of = blocks[:1]
		}
		for _, b := range of {
			for row := range rows {
				at, column := row%warpSize, int(addr)+row/warpSize
				word := b.tensor.get(at, column)
				for i := range count {
					bits := uint8(word >> (8 * (firstByte + i)))
					v, ok := form.Scales.Number(bits)
					if !ok {
						wrong("the scale 0x%02x of row %d of %s has a sign", bits, row, what)
					}
					list = append(list, v)
				}
				for _, copies := range blocks {
					for q := range quarters {
						if o := copies.tensor.get(at+q*warpSize, column); o != word && (what == "B" || copies == b) {
							wrong("the scales of row %d of %s are 0x%08x in one quarter of tensor memory and 0x%08x in another", row, what, word, o)
						}
					}
				}
			}
		}
		return list
	}
}

// begin puts an operation into the queue of those under way. Under a seed it may happen at any time, together with those before it.
func (w *warp) begin(x *tensorWork) {
	t := &w.block.tensor
	t.work = append(t.work, x)
	for _, a := range slices.Concat(x.reads, x.writes) {
		if !slices.Contains(a.of.work, x) {
			a.of.work = append(a.of.work, x)
		}
	}
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
	if missing := a.of.missing(a); missing != [tensorLanes / 32]uint32{} {
		w.fault(Uninitialized, lane, 0, uint64(a.column), "%s is tensor memory that nobody has written, in lanes %s", what, setOfLanes(missing))
	}
}

func setOfLanes(set [tensorLanes / 32]uint32) string {
	return fmt.Sprintf("%08x:%08x:%08x:%08x", set[3], set[2], set[1], set[0])
}

// tensorMatrix is where A or D lies in the tensor memory of a block, or of two.
type tensorMatrix struct {
	areas  []tensorArea // by block
	at     func(row, col int) (block int, c tensorCell)
	copied bool // lanes 64 to 127 hold the same as the others
}

// matrix is a matrix of m rows at an address. A block that has 64 rows alone holds 16 of them in each quarter of tensor memory, in its lower
// or upper half. One of a pair holds the left half of D in lanes 0 to 63 and the right one in the others, or A in both.
func (w *warp) matrix(lane int, blocks []*block, addr uint64, m, columns int, a bool) *tensorMatrix {
	from, column := int(addr>>16&0xffff), int(addr&0xffff)
	rows := m / len(blocks)
	x, lanes := &tensorMatrix{copied: a && rows == 64 && len(blocks) == 2}, lanesFrom(0, tensorLanes)
	x.at = func(row, col int) (int, tensorCell) { return row / rows, tensorCell{row % rows, column + col} }
	scattered := rows == 64 && len(blocks) == 1
	switch {
	case scattered:
		x.at = func(row, col int) (int, tensorCell) { return 0, tensorCell{from + row/16*32 + row%16, column + col} }
		for q := range lanes {
			lanes[q] = 0xffff << from
		}
	case rows == 64 && !a:
		columns /= 2
		x.at = func(row, col int) (int, tensorCell) {
			return row / rows, tensorCell{row%rows + col/columns*rows, column + col%columns}
		}
	}
	if from != 0 && (!scattered || from != 16) {
		w.fault(BadOperand, lane, 0, addr, "a matrix of %d rows in tensor memory from lane %d on", m, from)
	}
	for _, b := range blocks {
		x.areas = append(x.areas, w.area(lane, b, addr, lanes, columns))
	}
	return x
}

// read reads the elements of A, of so many bits.
func (x *tensorMatrix) read(w *warp, lane int, dst []uint64, m, k, size int) {
	per := 32 / size
	for row := range m {
		for i := range k {
			block, c := x.at(row, i/per)
			t := x.areas[block].of
			word := t.get(c.lane, c.column)
			if x.copied && t.get(c.lane+tensorLanes/2, c.column) != word {
				w.fault(BadOperand, lane, 0, uint64(c.column), "row %d of A is not the same in lanes %d and %d of tensor memory", row, c.lane,
					c.lane+tensorLanes/2)
			}
			dst[row*k+i] = uint64(word) >> (i % per * size) & (1<<size - 1)
		}
	}
}

// compileTensorCommit compiles tcgen05.commit: the mbarrier counts an arrival when all that the thread has issued is complete, or the
// mbarriers at the same place in the blocks of a mask.
func compileTensorCommit(c *compiler, in *ir.Instr) (step, error) {
	b, err := c.mbarrierOperand(in, 0)
	if err != nil {
		return nil, err
	}
	mask := none
	if in.Has("multicast::cluster") {
		b.op.space = ir.SharedClusterSpace
		if mask, err = c.arg(in, 1, ir.B16); err != nil {
			return nil, err
		}
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			w.pair(lane, blocksOf(in))
			var all []*mbarrierObject
			if mask == none {
				all = append(all, b.find(w, lane))
			} else {
				addr, blocks := b.addr.of(w, lane), w.block.cluster.blocks
				ranks := w.get(mask, lane) & 0xffff
				if ranks == 0 || ranks>>len(blocks) != 0 {
					w.fault(BadOperand, lane, 0, 0, "multicast to blocks %#x of a cluster of %d", ranks, len(blocks))
				}
				for ; ranks != 0; ranks &= ranks - 1 {
					at := ofRank(addr, uint64(bits.TrailingZeros64(ranks)))
					s, off := w.locate(lane, b.op, at)
					all = append(all, w.mbarrier(lane, b.op, at, place{s, off}))
				}
			}
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
				w.from(pc, func() {
					for _, o := range all {
						o.complete(w, lane, mine, func() (bool, error) { return o.Arrive(1, false) })
					}
				})
			})
		}
	}, nil
}
