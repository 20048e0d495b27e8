package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// attendBuilder is an attention_mma under construction. In shared memory are the block's queries, which make room for results in
// the end, a tile of keys and one of values: rows of chunks of 16 bytes, which are permuted by chunk ^ (row & 7) lest rows share
// banks.
type attendBuilder struct {
	flashBlock
	attendShape
	set           *attendSet
	scale, cap    float
	q, keys, vals ptx.Ptr[ptx.Global, uint8]
	lengths       ptx.Ptr[ptx.Global, int32]
	y             ptx.Ptr[ptx.Global, uint8]
	lse           ptx.Ptr[ptx.Global, float32]
	ofQ, ofK, ofV ptx.Ptr[ptx.Shared, uint32]
	lane, top     ptx.Reg[uint32] // top is the first row of the warp
	factor        float           // of scores, bent ones if they are bent
	stride        ptx.Reg[uint32] // bytes from a key to the next
	pieces        attendPieces
	wholeFrom     ptx.Reg[uint32] // keys that all rows see
	wholeTo       ptx.Reg[uint32]
	query         func(i, step int) []ptx.Reg[uint32] // fragments of queries
	maxima, sums  variables[float32]                  // of rows g and g + 8 of each 16
	acc           [][]variables[float32]              // of each 16 × 8
}

// attendPieces are the chunks that a thread brings of a tile: one of each step-th row.
type attendPieces struct {
	row, step int             // rows between them
	first     ptx.Reg[uint32] // row of the first
	bytes     ptx.Reg[uint32] // that there are of each: 16, or none behind a row's end
	column    ptx.Reg[uint32] // in bytes
	to        ptx.Reg[uint32] // place of the first in shared memory
}

func newAttendBuilder(k *ptx.Kernel, set *attendSet, s attendShape) *attendBuilder {
	b := &attendBuilder{flashBlock: newFlashBlock(k), attendShape: s, set: set}
	b.scale, b.cap = ptx.Param[float32](k, "scale"), ptx.Param[float32](k, "cap")
	b.q = ptx.PointerParam[uint8](k, "q", ptx.Align(16))
	b.keys = ptx.PointerParam[uint8](k, "k", ptx.Align(16))
	b.vals = ptx.PointerParam[uint8](k, "v", ptx.Align(16))
	b.lengths = ptx.PointerParam[int32](k, "lengths")
	b.y = ptx.PointerParam[uint8](k, "y", ptx.Align(16))
	b.lse = ptx.PointerParam[float32](k, "lse")
	b.ofQ = ptx.DynamicShared[uint32](k, ptx.Align(128))
	b.ofK = b.ofQ.Bytes(s.block() * s.pitch())
	b.ofV = b.ofK.Bytes(attendKeys * s.pitch())
	return b
}

func (b *attendBuilder) build() {
	k := b.k
	tid := k.Tid(ptx.X)
	b.lane = ptx.And(k, tid, u32(31))
	b.top = ptx.Mul(k, ptx.Shr(k, tid, u32(5)), u32(b.rows))
	b.place(b.lengths, b.block())
	b.wholeFrom = b.seenFrom(b.standing(b.last(b.block())))
	b.wholeTo = b.seenTo(b.standing(b.first), b.used)
	b.factor = b.where(ptx.Eq(k, b.cap, num(0)), b.scale, num(1))
	b.prepare(tid)
	b.bringQueries()
	b.bring(b.keys, b.ofK, b.from)
	k.CpAsyncWaitAll()
	k.Barrier()
	b.query = b.queries()
	for range b.rows / 16 {
		b.maxima = append(b.maxima, variablesOf(k, constants([]float32{float32(math.Inf(-1)), float32(math.Inf(-1))}))...)
		b.sums = append(b.sums, variablesOf(k, constants(make([]float32, 2)))...)
		b.acc = append(b.acc, b.zeros(b.width))
	}
	ptx.For(k, b.from, b.to, u32(attendKeys), func(tile ptx.Reg[uint32]) {
		b.bring(b.vals, b.ofV, tile)
		s := b.scores()
		b.mask(tile, s)
		k.CpAsyncWaitAll()
		k.Barrier() // the values are there, and the keys no longer needed
		next := ptx.Add(k, tile, u32(attendKeys))
		k.If(ptx.Lt(k, next, b.to), func() { b.bring(b.keys, b.ofK, next) })
		b.weigh(s)
		b.gather(s)
		k.CpAsyncWaitAll()
		k.Barrier() // the next keys are there, and the values no longer needed
	}, ptx.NoUnroll())
	b.write()
}

// zeros are 16 rows of so many sums.
func (b *attendBuilder) zeros(columns int) (sums []variables[float32]) {
	for range columns / 8 {
		sums = append(sums, variablesOf(b.k, constants(make([]float32, 4))))
	}
	return sums
}

// prepare finds out which part of tiles the thread brings.
func (b *attendBuilder) prepare(tid ptx.Reg[uint32]) {
	k, p := b.k, &b.pieces
	chunks := b.pitch() / 16
	p.step = attendThreads / chunks
	p.first = ptx.Shr(k, tid, u32(log2(chunks)))
	chunk := ptx.And(k, tid, u32(chunks-1))
	p.column = ptx.Shl(k, chunk, u32(4))
	width := b.size(sizeWidth)
	p.bytes = ptx.Select(k, ptx.Lt(k, ptx.Shl(k, chunk, u32(3)), width), u32(16), u32(0))
	p.to = b.offset(p.first, chunk)
	// Of the batch and the head.
	b.stride = ptx.Mul(k, ptx.Mul(k, b.size(sizeKVHeads), width), u32(2))
	before := ptx.MulWideU32(k, ptx.Mul(k, b.batch, b.size(sizeCapacity)), b.stride)
	within := ptx.Mad(k, ptx.Mul(k, b.head, width), u32(2), p.column)
	before = ptx.Add(k, before, ptx.Convert[uint64](k, within))
	b.keys, b.vals = ptx.AtByte(k, b.keys, before), ptx.AtByte(k, b.vals, before)
}

// offset is where a chunk of a row lies.
func (b *attendBuilder) offset(row, chunk ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := b.k
	return ptx.Mad(k, row, u32(b.pitch()), ptx.Shl(k, ptx.Xor(k, chunk, ptx.And(k, row, u32(7))), u32(4)))
}

// place of the i-th piece in the memory of a tile.
func (b *attendBuilder) pieceTo(memory ptx.Ptr[ptx.Shared, uint32], i int) ptx.Ptr[ptx.Shared, uint32] {
	k, row := b.k, i*b.pieces.step
	to := b.pieces.to
	if twist := row & 7; twist != 0 {
		to = ptx.Xor(k, to, u32(twist<<4))
	}
	return ptx.AtByte(k, memory, to).Bytes(row * b.pitch())
}

func (b *attendBuilder) bringQueries() {
	k, p := b.k, b.pieces
	pitch := ptx.Mul(k, b.size(sizeWidth), u32(2))
	from := ptx.AtByte(k, b.q, p.column)
	for i := range b.block() / p.step {
		number, row := b.rowAt(ptx.Add(k, p.first, u32(i*p.step)))
		bytes := ptx.Select(k, ptx.Lt(k, number, b.size(sizeRows)), p.bytes, u32(0))
		ptx.CpAsyncFill(k, b.pieceTo(b.ofQ, i), ptx.AtByte(k, from, ptx.MulWideU32(k, row, pitch)), 16, bytes)
	}
}

// bring starts to bring a tile of keys or values, with zeros behind the last one.
func (b *attendBuilder) bring(x ptx.Ptr[ptx.Global, uint8], memory ptx.Ptr[ptx.Shared, uint32], tile ptx.Reg[uint32]) {
	k, p, capacity := b.k, b.pieces, b.size(sizeCapacity)
	wrap := func(slot ptx.Reg[uint32]) ptx.Reg[uint32] {
		return ptx.Sub(k, slot, ptx.Select(k, ptx.Ge(k, slot, capacity), capacity, u32(0)))
	}
	slot := wrap(ptx.Add(k, b.front, tile))
	inside := ptx.Le(k, ptx.Add(k, tile, u32(attendKeys)), b.to)
	inside = ptx.And(k, inside, ptx.Le(k, ptx.Add(k, slot, u32(attendKeys)), capacity))
	k.If(inside, func() {
		at := ptx.AtByte(k, x, ptx.MulWideU32(k, ptx.Add(k, slot, p.first), b.stride))
		step := ptx.MulWideU32(k, b.stride, u32(p.step))
		for i := range attendKeys / p.step {
			if i > 0 {
				at = ptx.AtByte(k, at, step)
			}
			ptx.CpAsyncFill(k, b.pieceTo(memory, i), at, 16, p.bytes)
		}
	}, func() {
		for i := range attendKeys / p.step {
			t := ptx.Add(k, ptx.Add(k, tile, p.first), u32(i*p.step))
			bytes := ptx.Select(k, ptx.Lt(k, t, b.to), p.bytes, u32(0))
			at := ptx.MulWideU32(k, wrap(ptx.Add(k, b.front, t)), b.stride)
			ptx.CpAsyncFill(k, b.pieceTo(memory, i), ptx.AtByte(k, x, at), 16, bytes)
		}
	})
}

// reader returns what reads fragments of 16 rows × 16 elements of a tile by ldmatrix, of which four groups of lanes name the rows
// of a matrix of 8 × 8 each: rows first where deep is false, columns first where it is true.
func (b *attendBuilder) reader(memory ptx.Ptr[ptx.Shared, uint32], columnsFirst bool) func(row, step int) ptx.Ptr[ptx.Shared, uint32] {
	k := b.k
	group, r := ptx.Shr(k, b.lane, u32(3)), ptx.And(k, b.lane, u32(7))
	down, right := ptx.And(k, group, u32(1)), ptx.Shr(k, group, u32(1))
	if columnsFirst {
		down, right = right, down
	}
	at := b.offset(ptx.Mad(k, down, u32(8), r), right)
	var base []ptx.Ptr[ptx.Shared, uint32]
	for step := range 4 {
		base = append(base, ptx.AtByte(k, memory, ptx.Xor(k, at, u32(32*step))))
	}
	return func(row, step int) ptx.Ptr[ptx.Shared, uint32] { return base[step%4].Bytes(row*b.pitch() + step/4*128) }
}

// queries returns what gives fragments of the warp's rows.
func (b *attendBuilder) queries() func(i, step int) []ptx.Reg[uint32] {
	k := b.k
	at := b.reader(ptx.AtByte(k, b.ofQ, ptx.Mul(k, b.top, u32(b.pitch()))), false)
	read := func(i, step int) []ptx.Reg[uint32] { return ptx.LdMatrix[uint32](k, at(16*i, step), 4) }
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
func (b *attendBuilder) scores() (s [][]variables[float32]) {
	k := b.k
	for range b.rows / 16 {
		s = append(s, b.zeros(attendKeys))
	}
	at := b.reader(b.ofK, true)
	for step := range b.width / 16 {
		var q [][]ptx.Reg[uint32]
		for i := range s {
			q = append(q, b.query(i, step))
		}
		for j := 0; j < attendKeys; j += 16 {
			pair := ptx.LdMatrix[uint32](k, at(j, step), 4)
			b.set.products(k, q, [][]ptx.Reg[uint32]{pair[:2], pair[2:]}, func(i, n int) []*ptx.Var[float32] { return s[i][j/8+n] })
		}
	}
	return s
}

// each calls f for the rows of which the lane has elements: of 16 × 8 results, lane 4g+t has columns 2t and 2t+1 of rows g and g+8.
func (b *attendBuilder) each(f func(i, half int, row ptx.Reg[uint32])) {
	k := b.k
	g := ptx.Add(k, b.top, ptx.Shr(k, b.lane, u32(2)))
	for i := range b.rows / 16 {
		for half := range 2 {
			f(i, half, ptx.Add(k, g, u32(16*i+8*half)))
		}
	}
}

// mask bends scores, and hides what rows do not see.
func (b *attendBuilder) mask(tile ptx.Reg[uint32], s [][]variables[float32]) {
	k := b.k
	k.If(ptx.Ne(k, b.cap, num(0)), func() {
		for _, row := range s {
			for _, part := range row {
				for _, x := range part {
					x.Set(b.mul(b.cap, b.tanh(b.mul(x.Get(), b.scale))))
				}
			}
		}
	})
	end := ptx.Add(k, tile, u32(attendKeys))
	whole := ptx.And(k, ptx.Ge(k, tile, b.wholeFrom), ptx.Le(k, end, b.wholeTo))
	k.If(ptx.Not(k, whole), func() {
		at := ptx.Add(k, tile, ptx.Shl(k, ptx.And(k, b.lane, u32(3)), u32(1))) // the lane's first key
		b.each(func(i, half int, row ptx.Reg[uint32]) {
			p := b.standing(ptx.Add(k, b.first, row))
			from, to := b.seenFrom(p), b.seenTo(p, b.used)
			low, high := ptx.Bitcast[int32](k, ptx.Sub(k, from, at)), ptx.Bitcast[int32](k, ptx.Sub(k, to, at))
			for j, part := range s[i] {
				for e, x := range part[2*half : 2*half+2] {
					key := s32(8*j + e)
					seen := ptx.And(k, ptx.Le(k, low, key), ptx.Gt(k, high, key))
					x.Set(b.where(seen, x.Get(), num(math.Inf(-1))))
				}
			}
		})
	})
}

// weigh makes weights of scores, and takes them into maxima and sums.
func (b *attendBuilder) weigh(s [][]variables[float32]) {
	k := b.k
	for i := range s {
		for half := range 2 {
			var row variables[float32]
			for _, part := range s[i] {
				row = append(row, part[2*half:2*half+2]...)
			}
			best := row[0].Get()
			for _, x := range row[1:] {
				best = b.max(best, x.Get())
			}
			for d := 1; d < 4; d *= 2 {
				best = b.max(best, ptx.Shuffle(k, ptx.ShuffleXor, best, u32(d), 32, ptx.FullWarp()))
			}
			before, sum := b.maxima[2*i+half], b.sums[2*i+half]
			best = b.max(b.mul(best, b.factor), before.Get())
			base := b.where(ptx.Eq(k, best, num(math.Inf(-1))), num(0), best)
			f := b.smallExp2(b.sub(before.Get(), base))
			before.Set(best)
			less := b.neg(base)
			total := b.mul(sum.Get(), f)
			for _, x := range row {
				x.Set(b.smallExp2(b.fma(x.Get(), b.factor, less)))
				total = b.add(total, x.Get())
			}
			sum.Set(total)
			for _, part := range b.acc[i] {
				for _, a := range part[2*half : 2*half+2] {
					a.Set(b.mul(a.Get(), f))
				}
			}
		}
	}
}

// gather adds the tile's values, weighed, to the results.
func (b *attendBuilder) gather(s [][]variables[float32]) {
	k := b.k
	at := b.reader(b.ofV, false)
	for j := 0; j < attendKeys; j += 16 {
		var w [][]ptx.Reg[uint32]
		for i := range s {
			var a []ptx.Reg[uint32]
			for _, part := range s[i][j/8 : j/8+2] {
				x := part.get()
				a = append(a, b.set.pack(k, x[0], x[1]), b.set.pack(k, x[2], x[3]))
			}
			w = append(w, a)
		}
		for step := range b.width / 16 {
			pair := ptx.LdMatrixTrans[uint32](k, at(j, step), 4)
			b.set.products(k, w, [][]ptx.Reg[uint32]{pair[:2], pair[2:]}, func(i, n int) []*ptx.Var[float32] { return b.acc[i][2*step+n] })
		}
	}
}

// write divides by the sums and stores. Rows pass through the memory of the warp's queries, so that neighbours are written together.
func (b *attendBuilder) write() {
	k := b.k
	t := ptx.And(k, b.lane, u32(3))
	b.each(func(i, half int, row ptx.Reg[uint32]) {
		sum := b.sums[2*i+half].Get()
		for d := 1; d < 4; d *= 2 {
			sum = b.add(sum, ptx.Shuffle(k, ptx.ShuffleXor, sum, u32(d), 32, ptx.FullWarp()))
		}
		none := ptx.Eq(k, sum, num(0))
		scale := ptx.Rcp(k, b.where(none, num(1), sum))
		at := ptx.Mad(k, row, u32(b.pitch()), ptx.Shl(k, t, u32(2)))
		twist := ptx.Shl(k, ptx.And(k, row, u32(7)), u32(4))
		for n := range b.width / 8 {
			x := b.acc[i][n][2*half : 2*half+2].get()
			to := ptx.Add(k, at, ptx.Xor(k, twist, u32(n%8*16)))
			ptx.Store(k, ptx.AtByte(k, b.ofQ, to).Bytes(n/8*128), b.set.pack(k, b.mul(x[0], scale), b.mul(x[1], scale)))
		}
		mine := ptx.And(k, ptx.Eq(k, t, u32(0)), ptx.Lt(k, ptx.Add(k, b.first, row), b.size(sizeRows)))
		k.If(ptx.And(k, mine, b.flag(sizeLSE)), func() { b.storeLSE(b.lse, row, b.maxima[2*i+half].Get(), sum, none) })
	})
	k.WarpSync(ptx.FullWarp())
	chunks := b.pitch() / 16
	chunk := ptx.And(k, b.lane, u32(chunks-1))
	pitch := ptx.Mul(k, b.size(sizeWidth), u32(2))
	to := ptx.AtByte(k, b.y, ptx.Shl(k, chunk, u32(4)))
	first := ptx.Add(k, b.top, ptx.Shr(k, b.lane, u32(log2(chunks))))
	ptx.For(k, u32(0), u32(b.rows), u32(32/chunks), func(r ptx.Reg[uint32]) {
		r = ptx.Add(k, first, r)
		number, row := b.rowAt(r)
		inside := ptx.And(k, ptx.Lt(k, number, b.size(sizeRows)), ptx.Ne(k, b.pieces.bytes, u32(0)))
		words := ptx.Load4(k, ptx.AtByte(k, b.ofQ, b.offset(r, chunk)))
		at := ptx.Cast[uint32](ptx.AtByte(k, to, ptx.MulWideU32(k, row, pitch)))
		k.When(inside, func() { ptx.Store4(k, at, words) })
	}, ptx.NoUnroll())
}
