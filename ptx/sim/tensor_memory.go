package sim

import (
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Tensor memory has 128 lanes, which are rows, of 512 columns of 32 bits. An address is the lane in its upper half and the column in its
// lower one. A multiprocessor has one tensor memory; here each block has it for itself, as if it were alone there.
const (
	tensorLanes   = 128
	tensorColumns = 512
)

// tensorMemory is what a block has of it.
type tensorMemory struct {
	cells   []uint32 // by column, then lane; nil until something is allocated
	written []uint32 // which of them have a value, a bit each
	allocs  []tensorAllocation
	given   bool           // the permit to allocate
	asked   []int          // columns for which the block has asked together with the other one of its pair
	granted []int          // where they are, by the same index
	work    []*tensorWork  // that nobody has waited for, oldest first
	stores  []*tensorStore // likewise
}

type tensorAllocation struct {
	column, columns int
	blocks          int // that have allocated it together
	by              *Access
}

// tensorArea is some lanes of neighbouring columns.
type tensorArea struct {
	of      *tensorMemory
	lanes   [tensorLanes / 32]uint32 // a bit each
	column  int
	columns int
}

func (a *tensorArea) overlaps(b *tensorArea) bool {
	if a.of != b.of || a.column >= b.column+b.columns || b.column >= a.column+a.columns {
		return false
	}
	for i := range a.lanes {
		if a.lanes[i]&b.lanes[i] != 0 {
			return true
		}
	}
	return false
}

// lanesFrom are n lanes from the first on.
func lanesFrom(first, n int) (set [tensorLanes / 32]uint32) {
	for l := first; l < first+n; l++ {
		set[l/32] |= 1 << (l % 32)
	}
	return set
}

// tensorWork is an asynchronous operation of one thread: a product, or a copy from shared memory. Of a pair of blocks both memories have it
// among their work.
type tensorWork struct {
	flight *flight // what it reads in shared memory
	reads  []tensorArea
	writes []tensorArea
	run    func()
	done   bool
}

// tensorStore is a store that its warp has not waited for.
type tensorStore struct {
	w    *warp
	pc   int32
	area tensorArea
}

func (t *tensorMemory) reset() {
	clear(t.cells)
	clear(t.written)
	*t = tensorMemory{cells: t.cells, written: t.written}
}

func (t *tensorMemory) get(lane, column int) uint32 { return t.cells[column*tensorLanes+lane] }

func (t *tensorMemory) set(lane, column int, v uint32) {
	i := column*tensorLanes + lane
	t.cells[i] = v
	t.written[i/32] |= 1 << (i % 32)
}

// missing tells which lanes have a column without a value among those of the area.
func (t *tensorMemory) missing(a *tensorArea) (lanes [tensorLanes / 32]uint32) {
	for c := a.column; c < a.column+a.columns; c++ {
		for i := range lanes {
			lanes[i] |= a.lanes[i] &^ t.written[c*(tensorLanes/32)+i]
		}
	}
	return lanes
}

// execute executes what one thread has issued, up to x: in order, as the hardware does.
func (t *tensorMemory) execute(x *tensorWork) {
	for _, o := range t.work {
		if !o.done && o.flight.w == x.flight.w && o.flight.lane == x.flight.lane {
			o.done = true
			o.run()
		}
		if o == x {
			return
		}
	}
}

// pair are the blocks that an instruction is about: the thread's own, or both of its pair, that of the even rank first.
func (w *warp) pair(lane, n int) []*block {
	if n == 1 {
		return []*block{w.block}
	}
	all, even := w.block.cluster.blocks, w.block.rank&^1
	if even+1 >= len(all) {
		w.fault(BadOperand, lane, 0, 0, "block %d of a cluster of %d has no other one to make a pair (cta_group::2) with", w.block.rank, len(all))
	}
	for _, b := range all[even : even+2] {
		if b.live == 0 {
			w.fault(BadOperand, lane, 0, 0, "the other block of the pair, %d of the cluster, has ended", b.rank)
		}
	}
	return all[even : even+2]
}

// area checks that an area lies in what the block has allocated.
func (w *warp) area(lane int, b *block, addr uint64, lanes [tensorLanes / 32]uint32, columns int) tensorArea {
	a := tensorArea{of: &b.tensor, lanes: lanes, column: int(addr & 0xffff), columns: columns}
	for _, x := range b.tensor.allocs {
		if a.column >= x.column && a.column+columns <= x.column+x.columns {
			return a
		}
	}
	w.fault(OutOfBounds, lane, 0, addr, "columns %d to %d of tensor memory, which the block has not allocated", a.column, a.column+columns-1)
	return a
}

// settleTensor looks whether something under way writes what is to be read, or has to do with what is to be written.
func (w *warp) settleTensor(lane int, a *tensorArea, write, product bool) {
	if !w.checksAsync() {
		return
	}
	t := a.of
	t.work = slices.DeleteFunc(t.work, func(x *tensorWork) bool { return x.done && x.flight.landed })
	for _, x := range t.work {
		if product && x.flight.w == w && x.flight.lane == lane { // they are in order
			continue
		}
		busy := slices.ContainsFunc(x.writes, func(o tensorArea) bool { return o.overlaps(a) })
		for i := range x.reads {
			busy = busy || write && x.reads[i].overlaps(a)
		}
		if busy {
			f := w.faultOf(AsyncHazard, lane, 0, 0, "tensor memory of an operation that nobody has waited for")
			f.Other = x.flight.w.accessAt(x.flight.pc, x.flight.lane)
			panic(f)
		}
	}
	for _, s := range t.stores {
		if s.area.overlaps(a) && !(write && s.w == w) {
			f := w.faultOf(AsyncHazard, lane, 0, 0, "tensor memory that is being stored to, without tcgen05.wait::st since then")
			f.Other = s.w.accessAt(s.pc, 0)
			panic(f)
		}
	}
}

// blocksOf is how many blocks an instruction is about.
func blocksOf(in *ir.Instr) int {
	if in.Has("cta_group::2") {
		return 2
	}
	return 1
}

// compileTensorAlloc compiles tcgen05.alloc: [where its address is written], columns. A pair of blocks does it together, and gets the same
// columns.
func compileTensorAlloc(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	to, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	op := c.memOp(in, 4, true)
	columns, err := c.src(in, &in.Args[1], ir.U32)
	begin := func(w *warp) int {
		n := w.tensorCount(columns)
		if w.block.tensor.given {
			w.fault(BadOperand, 0, 0, 0, "the block has given up the permit to allocate tensor memory")
		}
		return n
	}
	end := func(w *warp, n, blocks, column int) {
		t := &w.block.tensor
		if t.cells == nil {
			t.cells, t.written = make([]uint32, tensorLanes*tensorColumns), make([]uint32, tensorLanes*tensorColumns/32)
		}
		for col := column; col < column+n; col++ {
			clear(t.written[col*(tensorLanes/32):][:tensorLanes/32])
		}
		t.allocs = append(t.allocs, tensorAllocation{column, n, blocks, w.access(0)})
		p, _ := w.bytes(0, op, to.of(w, 0), 0)
		store(p, 4, uint64(column))
	}
	if blocksOf(in) == 1 {
		return c.warpwide(func(w *warp, _ uint32) {
			n := begin(w)
			end(w, n, 1, w.tensorRoom(n, &w.block.tensor))
		}), err
	}
	c.flow()
	do := func(w *warp, m uint32) {
		if m != full {
			w.fault(WarpSync, first(m), 0, 0, "the warp has only lanes %#08x, the instruction needs all 32", m)
		}
		n := begin(w)
		both := w.pair(0, 2)
		mine, i := &w.block.tensor, len(w.block.tensor.asked)
		other := &both[1-w.block.rank&1].tensor
		mine.asked = append(mine.asked, n)
		w.wait(m, "tcgen05.alloc of the other block of its pair", func() bool { return len(other.asked) > i }, func(uint32) {
			if other.asked[i] != n {
				w.fault(BadOperand, 0, 0, 0, "%d columns of tensor memory, and the other block of the pair allocates %d", n, other.asked[i])
			}
			if len(mine.granted) <= i {
				column := w.tensorRoom(n, mine, other)
				mine.granted, other.granted = append(mine.granted, column), append(other.granted, column)
			}
			end(w, n, 2, mine.granted[i])
		})
	}
	return func(w *warp, m uint32) { w.together(m, w.exists, WarpSync, do) }, err
}

// tensorRoom is where n columns are free, in all of these memories.
func (w *warp) tensorRoom(n int, of ...*tensorMemory) (column int) {
	for again := true; again; {
		again = false
		for _, t := range of {
			for _, x := range t.allocs {
				if column < x.column+x.columns && x.column < column+n {
					column, again = (x.column+x.columns+n-1)/n*n, true
				}
			}
		}
	}
	if column+n > tensorColumns {
		w.fault(Deadlock, 0, 0, 0, "%d columns of tensor memory, and the block holds what there is: it waits for ever", n)
	}
	return column
}

// tensorCount is a number of columns: a power of two from 32 on, the same in all lanes.
func (w *warp) tensorCount(r ref) int {
	n, same := w.uniform(r, full)
	if !same || n < 32 || n > tensorColumns || bits.OnesCount64(n) != 1 {
		w.fault(BadOperand, 0, 0, 0, "%d columns of tensor memory, want 32, 64, 128, 256 or 512, the same in all lanes", n)
	}
	return int(n)
}

// compileTensorDealloc compiles tcgen05.dealloc: address, columns.
func compileTensorDealloc(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	blocks := blocksOf(in)
	addr, err := c.src(in, &in.Args[0], ir.U32)
	if err != nil {
		return nil, err
	}
	columns, err := c.src(in, &in.Args[1], ir.U32)
	return c.warpwide(func(w *warp, m uint32) {
		t := &w.block.tensor
		n := w.tensorCount(columns)
		at := w.get(addr, 0)
		i := slices.IndexFunc(t.allocs, func(x tensorAllocation) bool { return x.column == int(at) && x.columns == n })
		if i >= 0 && t.allocs[i].blocks != blocks {
			w.fault(BadOperand, 0, 0, at, "tensor memory that was allocated by cta_group::%d", t.allocs[i].blocks)
		}
		if i < 0 {
			w.fault(BadOperand, 0, 0, at, "the block has allocated no %d columns of tensor memory at %#x", n, at)
		}
		w.settleTensor(0, &tensorArea{of: t, lanes: lanesFrom(0, tensorLanes), column: int(at), columns: n}, true, false)
		t.allocs = slices.Delete(t.allocs, i, i+1)
	}), err
}

func compileTensorRelinquish(c *compiler, _ *ir.Instr) (step, error) {
	return c.warpwide(func(w *warp, _ uint32) { w.block.tensor.given = true }), nil
}

// leaks faults when the last threads of a block have ended and tensor memory is still allocated.
func (t *tensorMemory) leaks(w *warp) {
	if len(t.allocs) > 0 && w.mon != nil {
		f := w.faultOf(BadOperand, 0, 0, 0, "the block ends with tensor memory allocated: tcgen05.dealloc is missing")
		f.Other = t.allocs[0].by
		w.report(f)
	}
}

// compileTensorFence compiles tcgen05.fence, which orders operations on tensor memory before and after other synchronisation. Here they
// are in order.
func compileTensorFence(*compiler, *ir.Instr) (step, error) { return func(*warp, uint32) {}, nil }
