package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/softmax"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// attendBuilder is an attention_mma under construction. In shared memory are the block's queries, which make room for results in
// the end, a tile of keys and one of values. Rows are an odd number of 16 bytes apart: eight of them meet each bank once.
type attendBuilder struct {
	block
	attendShape
	set                 *attendSet
	q, ofKeys, ofValues ptx.Ptr[ptx.Global, uint8]
	y                   ptx.Ptr[ptx.Global, uint8]
	lse                 ptx.Ptr[ptx.Global, float32]
	ofQ, ofK, ofV       ptx.Ptr[ptx.Shared, uint32]
	lane, top           ptx.Reg[uint32] // top is the first row of the warp
	spilled             ptx.Ptr[ptx.Shared, uint32]
	pieces              attendPieces
	before              ptx.Reg[uint64]                     // bytes before the thread's column of the head
	query               func(i, step int) []ptx.Reg[uint32] // fragments of queries
	seen                []softmax.Running                   // of rows g and g + 8 of each 16
	acc                 [][]scalar.Variables[float32]       // of each 16 × 8
}

// attendPieces are the chunks that a thread copies of a tile: one of each step-th row.
type attendPieces struct {
	step   int             // rows between them
	first  ptx.Reg[uint32] // row of the first
	bytes  ptx.Reg[uint32] // that there are of each: 16, or none after a row's end
	column ptx.Reg[uint32] // in bytes
	to     ptx.Reg[uint32] // place of the first in shared memory
}

func newAttendBuilder(k *ptx.Kernel, set *attendSet, s attendShape) *attendBuilder {
	var of flashParams
	p := kit.NewParams(k, &of)
	b := &attendBuilder{block: newBlock(p, &of.attentionSizes, &of.Scale, &of.Cap), attendShape: s, set: set}
	align := ptx.Align(16)
	b.q, b.ofKeys, b.ofValues = kit.Ptr[uint8](p, &of.Q, align), kit.Ptr[uint8](p, &of.K, align), kit.Ptr[uint8](p, &of.V, align)
	b.lengths = kit.Ptr[int32](p, &of.Lengths)
	b.y, b.lse = kit.Ptr[uint8](p, &of.Y, align), kit.Ptr[float32](p, &of.LSE)
	b.ofQ = ptx.DynamicShared[uint32](k, ptx.Align(128))
	b.ofK = b.ofQ.Bytes(s.tileRows() * s.pitch())
	b.ofV = b.ofK.Bytes(s.keys * s.pitch())
	b.spilled = b.ofQ.Bytes(2 * s.width)
	return b
}

// Build writes the kernel.
func (b *attendBuilder) Build() {
	k := b.K
	tid := k.Tid(ptx.X)
	b.lane = tid.And(31)
	b.top = tid.Shr(5).Mul(b.rows)
	b.Place(b.tileRows())
	b.spill(tid)
	b.prepare(tid)
	b.copyQueries()
	b.copyTile(b.ofKeys, b.ofK, b.from, false)
	k.CpAsyncWaitAll()
	k.Barrier()
	b.query = b.queries()
	for range b.rows / 16 {
		online := softmax.OfScores(k, b.SmallExp2)
		b.seen = append(b.seen, online.Start(), online.Start())
		b.acc = append(b.acc, b.zeros(b.width))
	}
	tile := ptx.VarOf(k, b.from)
	k.While(func() ptx.Reg[bool] { return tile.Get().Lt(b.spilled.Bytes(b.pitch() + 12).Load()) }, func() {
		begin, last := b.plain(tile.Get())
		k.If(begin, func() {
			k.While(func() ptx.Reg[bool] { return ptx.Bitcast[int32](tile.Get()).Le(last) }, func() { b.iterate(tile, true) })
		})
		b.iterate(tile, false)
	})
	b.reloadRows()
	b.Write()
}

// iterate takes in the keys of a tile. All rows see those of a plain one, and there is another tile after it.
func (b *attendBuilder) iterate(tile *ptx.Var[uint32], plain bool) {
	k := b.K
	b.reloadKeys()
	b.copyTile(b.ofValues, b.ofV, tile.Get(), plain)
	s := b.scores()
	if !plain {
		b.mask(tile.Get(), s)
	}
	k.CpAsyncWaitAll()
	k.Barrier() // the values are there, and the keys no longer needed
	tile.Set(tile.Get().Add(b.keys))
	next := func() { b.copyTile(b.ofKeys, b.ofK, tile.Get(), plain) }
	if plain {
		next()
	} else {
		k.If(tile.Get().Lt(b.to), next)
	}
	b.gather(b.weigh(s))
	k.CpAsyncWaitAll()
	k.Barrier() // the next keys are there, and the values no longer needed
}

// plain tells whether a tile may begin a run of plain ones, and where the last of them begins at most: all rows see what they
// hold, no score is capped, and there is no end, neither of the keys nor of the ring, in them and in the tile after them.
func (b *attendBuilder) plain(tile ptx.Reg[uint32]) (begin ptx.Reg[bool], last ptx.Reg[int32]) {
	capacity := b.U32(&b.at.Capacity)
	b.reloadKeys()
	spilled := b.spilled.Load4()
	ring := ptx.Select(b.front.Add(tile).Ge(capacity), b.to, capacity.Sub(b.front))
	seen := spilled[3].Add(b.keys)
	end := ring.Min(b.to).Min(seen)
	last = ptx.Bitcast[int32](end.Sub(2 * b.keys))
	return tile.Ge(spilled[2]).And(b.cap.Eq(0)), last
}

// spill puts what is not needed all the time into shared memory: there are hardly enough registers.
func (b *attendBuilder) spill(tid ptx.Reg[uint32]) {
	k := b.K
	wholeFrom := b.seenFrom(b.rowPosition(b.last(b.tileRows()), b.used))
	wholeTo := b.seenTo(b.rowPosition(b.first, b.used), b.used)
	k.If(tid.Eq(0), func() {
		b.spilled.Store4([4]ptx.Reg[uint32]{b.first, unsigned(k, b.used), wholeFrom, wholeTo})
		b.spilled.Bytes(b.pitch()).Store4([4]ptx.Reg[uint32]{b.batch, b.head, b.front, b.to})
	})
}

// reloadKeys finds what was spilled of the block's keys, reloadRows what of its rows.
func (b *attendBuilder) reloadKeys() {
	two := b.spilled.Bytes(b.pitch() + 8).Load2()
	b.front, b.to = two[0], two[1]
}

func (b *attendBuilder) reloadRows() {
	two := b.spilled.Bytes(b.pitch()).Load2()
	b.batch, b.head, b.first = two[0], two[1], b.spilled.Load()
}

// zeros are 16 rows of so many sums.
func (b *attendBuilder) zeros(columns int) (sums []scalar.Variables[float32]) {
	for range columns / 8 {
		sums = append(sums, scalar.Zeros(b.K, 4))
	}
	return sums
}

// prepare finds out which part of tiles the thread copies.
func (b *attendBuilder) prepare(tid ptx.Reg[uint32]) {
	p := &b.pieces
	chunks := b.width / 8
	p.step = attendThreads / chunks
	p.first = tid.Shr(scalar.Log2(chunks))
	chunk := tid.And(chunks - 1)
	p.column = chunk.Shl(4)
	width := b.U32(&b.at.Width)
	p.bytes = ptx.Select(chunk.Shl(3).Lt(width), ptx.U32(16), 0)
	p.to = p.first.Mad(b.pitch(), p.column)
	before := b.batch.Mul(b.U32(&b.at.Capacity)).MulWide(b.U32(&b.at.Tile))
	within := b.head.Mul(width).Mad(2, p.column)
	b.before = before.Add(ptx.Convert[uint64](within))
}

// pieceTo is the place of the i-th piece in the memory of a tile.
func (b *attendBuilder) pieceTo(memory ptx.Ptr[ptx.Shared, uint32], i int) ptx.Ptr[ptx.Shared, uint32] {
	return memory.Bytes(b.pieces.to).Bytes(i * b.pieces.step * b.pitch())
}

func (b *attendBuilder) copyQueries() {
	p := b.pieces
	pitch := b.U32(&b.at.Width).Mul(2)
	from := b.q.Bytes(p.column)
	for i := range b.tileRows() / p.step {
		number, row := b.rowAt(p.first.Add(i * p.step))
		bytes := ptx.Select(number.Lt(b.U32(&b.at.Rows)), p.bytes, 0)
		ptx.CpAsyncZfill(b.pieceTo(b.ofQ, i), from.Bytes(row.MulWide(pitch)), 16, bytes)
	}
}

// copyTile starts to copy a tile of keys or values, with zeros after the last one; a plain one has no end in it.
func (b *attendBuilder) copyTile(x ptx.Ptr[ptx.Global, uint8], memory ptx.Ptr[ptx.Shared, uint32], tile ptx.Reg[uint32], plain bool) {
	k, p, capacity := b.K, b.pieces, b.U32(&b.at.Capacity)
	slot := b.slot(tile, capacity)
	together := func() {
		first := slot.Add(p.first).MadWide(b.U32(&b.at.Tile), ptx.Address(x.Bytes(b.before)))
		for i := range b.keys / p.step {
			at := ptx.PtrAt[ptx.Global, uint8](k, b.U32(&b.at.Tile).MadWide(i*p.step, first)) // one instruction
			ptx.CpAsyncZfill(b.pieceTo(memory, i), at, 16, p.bytes)
		}
	}
	if plain {
		together()
		return
	}
	inside := tile.Add(b.keys).Le(b.to)
	inside = inside.And(slot.Add(b.keys).Le(capacity))
	k.If(inside, together, func() {
		for i := range b.keys / p.step {
			t := tile.Add(p.first).Add(i * p.step)
			bytes := ptx.Select(t.Lt(b.to), p.bytes, 0)
			at := b.slot(t, capacity).MadWide(b.U32(&b.at.Tile), b.before)
			ptx.CpAsyncZfill(b.pieceTo(memory, i), x.Bytes(at), 16, bytes)
		}
	})
}

// reader returns where the lane reads fragments of 16 rows × 16 elements by ldmatrix: four groups of lanes name the rows of a
// matrix of 8 × 8 each. Of queries and values the second matrix is below the first, of keys beside it.
func (b *attendBuilder) reader(memory ptx.Ptr[ptx.Shared, uint32], beside bool) func(row, step int) ptx.Ptr[ptx.Shared, uint32] {
	group, r := b.lane.Shr(3), b.lane.And(7)
	down, right := group.And(1), group.Shr(1)
	if beside {
		down, right = right, down
	}
	row := down.Mad(8, r)
	at := memory.Bytes(row.Mad(b.pitch(), right.Shl(4)))
	return func(row, step int) ptx.Ptr[ptx.Shared, uint32] { return at.Bytes(row*b.pitch() + 32*step) }
}

// queries returns what gives fragments of the warp's rows.
func (b *attendBuilder) queries() func(i, step int) []ptx.Reg[uint32] {
	at := b.reader(b.ofQ.Bytes(b.top.Mul(b.pitch())), false)
	read := func(i, step int) []ptx.Reg[uint32] { return ptx.LdMatrix[uint32](at(16*i, step), 4) }
	if !b.held {
		return read
	}
	held := make([][][]ptx.Reg[uint32], b.rows/16)
	for i := range held {
		for step := range b.width / 16 {
			held[i] = append(held[i], read(i, step))
		}
	}
	return func(i, step int) []ptx.Reg[uint32] { return held[i][step] }
}

// scores are the products of the warp's rows with the tile's keys.
func (b *attendBuilder) scores() (s [][]scalar.Variables[float32]) {
	k := b.K
	for range b.rows / 16 {
		s = append(s, b.zeros(b.keys))
	}
	at := b.reader(b.ofK, true)
	for step := range b.width / 16 {
		var q [][]ptx.Reg[uint32]
		for i := range s {
			q = append(q, b.query(i, step))
		}
		for j := 0; j < b.keys; j += 16 {
			pair := ptx.LdMatrix[uint32](at(j, step), 4)
			b.set.Products(k, q, [][]ptx.Reg[uint32]{pair[:2], pair[2:]}, func(i, n int) []*ptx.Var[float32] { return s[i][j/8+n] })
		}
	}
	return s
}

// each calls f for the rows of which the lane has elements: of 16 × 8 results, lane 4g+t has columns 2t and 2t+1 of rows g and g+8.
func (b *attendBuilder) each(f func(i, half int, row ptx.Reg[uint32])) {
	g := b.top.Add(b.lane.Shr(2))
	for i := range b.rows / 16 {
		for half := range 2 {
			f(i, half, g.Add(16*i+8*half))
		}
	}
}

// mask caps scores, and hides what rows do not see.
func (b *attendBuilder) mask(tile ptx.Reg[uint32], s [][]scalar.Variables[float32]) {
	k := b.K
	k.If(b.cap.Ne(0), func() {
		for _, row := range s {
			for _, part := range row {
				for _, x := range part {
					x.Set(b.cap.Mul(b.Tanh(x.Get().Mul(b.scale))))
				}
			}
		}
	})
	end := tile.Add(b.keys)
	spilled := b.spilled.Load4()
	first, used := spilled[0], ptx.Bitcast[int32](spilled[1])
	whole := tile.Ge(spilled[2]).And(end.Le(spilled[3])) // all rows see all of its keys
	k.If(whole.Not(), func() {
		at := tile.Add(b.lane.And(3).Shl(1)) // the lane's first key
		b.each(func(i, half int, row ptx.Reg[uint32]) {
			p := b.rowPosition(first.Add(row), used)
			from, to := b.seenFrom(p), b.seenTo(p, used)
			low, high := ptx.Bitcast[int32](from.Sub(at)), ptx.Bitcast[int32](to.Sub(at))
			for j, part := range s[i] {
				for e, x := range part[2*half : 2*half+2] {
					key := scalar.S32(8*j + e)
					seen := low.Le(key).And(high.Gt(key))
					x.Set(b.Where(seen, x.Get(), ptx.F32(math.Inf(-1))))
				}
			}
		})
	})
}

// weigh makes weights of scores, and rescales what has been summed up before. Results are fragments, of each 16 × 16.
func (b *attendBuilder) weigh(s [][]scalar.Variables[float32]) (w [][][]ptx.Reg[uint32]) {
	k, factor := b.K, ptx.Bitcast[float32](b.U32(&b.at.Table))
	var factors []scalar.Float
	for i := range s {
		w = append(w, make([][]ptx.Reg[uint32], b.keys/16))
		for j := range w[i] {
			w[i][j] = make([]ptx.Reg[uint32], 4)
		}
		for half := range 2 {
			var row []scalar.Float
			for _, part := range s[i] {
				row = append(row, part[2*half:2*half+2].Get()...)
			}
			seen := b.seen[2*i+half]
			base, f := seen.Update(threadgroup.WarpReduce(largest(row), 4, maximum).Mul(factor))
			factors = append(factors, f)
			less := base.Neg()
			for n, x := range row {
				row[n] = b.SmallExp2(x.Fma(factor, less))
				if n%2 == 1 {
					w[i][n/4][n/2%2*2+half] = b.set.pack(k, row[n-1], row[n])
				}
			}
			seen.Add(f, row...)
		}
	}
	b.seen[0].Rescale(factors, func() {
		for i, rows := range b.acc {
			for _, part := range rows {
				for n, a := range part {
					a.Set(a.Get().Mul(factors[2*i+n/2]))
				}
			}
		}
	})
	return w
}

// gather adds the tile's values, weighed, to the results.
func (b *attendBuilder) gather(w [][][]ptx.Reg[uint32]) {
	k := b.K
	at := b.reader(b.ofV, false)
	for j := 0; j < b.keys; j += 16 {
		var a [][]ptx.Reg[uint32]
		for i := range w {
			a = append(a, w[i][j/16])
		}
		for step := range b.width / 16 {
			pair := ptx.LdMatrixTrans[uint32](at(j, step), 4)
			b.set.Products(k, a, [][]ptx.Reg[uint32]{pair[:2], pair[2:]}, func(i, n int) []*ptx.Var[float32] { return b.acc[i][2*step+n] })
		}
	}
}

// Write divides by the sums and stores. Rows pass through the memory of the warp's queries, so that neighbours are written together.
func (b *attendBuilder) Write() {
	k := b.K
	k.WarpSync(ptx.FullWarp())
	t := b.lane.And(3)
	b.each(func(i, half int, row ptx.Reg[uint32]) {
		seen := b.seen[2*i+half]
		sum := threadgroup.WarpReduce(seen.Sum.Get(), 4, threadgroup.Plus)
		scale, none := seen.Finish(sum)
		to := b.ofQ.Bytes(row.Mad(b.pitch(), t.Shl(2)))
		for n := range b.width / 8 {
			x := b.acc[i][n][2*half : 2*half+2].Get()
			to.Bytes(16 * n).Store(b.set.pack(k, x[0].Mul(scale), x[1].Mul(scale)))
		}
		mine := t.Eq(0).And(b.first.Add(row).Lt(b.U32(&b.at.Rows)))
		k.If(mine.And(b.flag(&b.at.Direct)), func() { b.storeLSE(b.lse, row, seen.Max.Get(), sum, none) })
	})
	k.WarpSync(ptx.FullWarp())
	chunks := b.width / 8
	chunk := b.lane.And(chunks - 1)
	pitch := b.U32(&b.at.Width).Mul(2)
	column := chunk.Shl(4)
	to := b.y.Bytes(column)
	first := b.top.Add(b.lane.Shr(scalar.Log2(chunks)))
	ptx.For(k, 0, b.rows, 32/chunks, func(r ptx.Reg[uint32]) {
		r = first.Add(r)
		number, row := b.rowAt(r)
		inside := number.Lt(b.U32(&b.at.Rows)).And(b.pieces.bytes.Ne(0))
		words := b.ofQ.Bytes(r.Mad(b.pitch(), column)).Load4()
		at := ptx.Cast[uint32](to.Bytes(row.MulWide(pitch)))
		k.When(inside, func() { at.Store4(words) })
	}, ptx.NoUnroll())
}
