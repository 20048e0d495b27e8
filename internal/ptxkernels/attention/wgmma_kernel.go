package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/softmax"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// wgmmaBuilder is an attention_wgmma under construction. In shared memory are the block's queries, which make room for results in the
// end, and rings of tiles of keys and of values: all as parts of 64 columns, with rows of 128 bytes whose chunks are swizzled.
type wgmmaBuilder[T ptx.F16x2 | ptx.BF16x2] struct {
	sequence
	wgmmaShape
	wgmmaParams
	scale        scalar.Float
	y            ptx.Ptr[ptx.Global, uint8]
	lse          ptx.Ptr[ptx.Global, float32]
	q, k, v      ptx.TensorMap[uint32]
	ofQ          ptx.Ptr[ptx.Shared, uint32]
	fullQ, doneQ ptx.Mbarrier // queries are there, and no longer needed
	ofK, ofV     wgmmaRing
	batch, head  ptx.Reg[uint32]
	first        ptx.Reg[uint32] // query
	used         ptx.Reg[int32]
	from, to     ptx.Reg[uint32] // keys of the block
	group, lane  ptx.Reg[uint32] // group is the number of the warpgroup among those that multiply
	top          ptx.Reg[uint32] // first row of the warp in the block
	scores, sums []*ptx.Var[float32]
	weights      []*ptx.Var[T]
	seen         [2]softmax.Running // of rows g and g + 8 of the warp
}

func newWgmmaBuilder[T ptx.F16x2 | ptx.BF16x2](k *ptx.Kernel, s wgmmaShape) *wgmmaBuilder[T] {
	b := &wgmmaBuilder[T]{wgmmaShape: s}
	p := kit.NewParams(k, &b.wgmmaParams)
	b.sequence = sequence{scalar.Math{K: k}, p, &b.attentionSizes}
	b.scale = kit.Read(p, &b.Scale)
	b.y, b.lse = kit.Ptr[uint8](p, &b.Y, ptx.Align(16)), kit.Ptr[float32](p, &b.LSE)
	b.q, b.k, b.v = kit.Map[uint32](p, &b.MapQ), kit.Map[uint32](p, &b.MapK), kit.Map[uint32](p, &b.MapV)
	return b
}

// Build writes the kernel.
func (b *wgmmaBuilder[T]) Build() {
	k := b.K
	k.MinBlocks(1)
	b.ofQ = ptx.DynamicShared[uint32](k, ptx.Align(1024))
	keys := b.ofQ.Bytes(b.sizeQ())
	b.ofK.memory, b.ofV.memory = keys, keys.Bytes(b.stages*b.sizeK())
	b.fullQ = ptx.MbarrierAt(ptx.Cast[uint64](keys.Bytes(2 * b.stages * b.sizeK())))
	b.doneQ = b.fullQ.At(1)
	tid := k.Tid(ptx.X)
	first := tid.Eq(0)
	for i, r := range []*wgmmaRing{&b.ofK, &b.ofV} {
		r.stages, r.size = b.stages, b.sizeK()
		r.full = b.doneQ.At(1 + 2*b.stages*i)
		r.empty = r.full.At(b.stages)
	}
	k.If(first, func() {
		b.fullQ.Init(1)
		b.doneQ.Init(4 * b.groups) // warps
		for _, r := range []*wgmmaRing{&b.ofK, &b.ofV} {
			for s := range b.stages {
				r.full.At(s).Init(1)
				r.empty.At(s).Init(4 * b.groups)
			}
		}
		k.FenceMbarrierInit()
	})
	k.Barrier()
	k.If(tid.Lt(128), func() {
		k.SetMaxRegsDec(b.producerRegs)
		k.If(first, b.produce)
	}, func() {
		k.SetMaxRegsInc(b.consumerRegs)
		b.consume(tid.Sub(128))
	})
}

// each goes over the tiles of queries that the block has.
func (b *wgmmaBuilder[T]) each(f func()) {
	k := b.K
	ptx.For(k, k.Ctaid(ptx.X), b.U32(&b.Items), k.Nctaid(ptx.X), func(i ptx.Reg[uint32]) {
		b.see(b.Divided(&b.Tiles).Sub(1).Sub(b.place(i)))
		f()
	}, ptx.NoUnroll())
}

// place finds out whose queries an item is of, and the number of its tile, counted from the last one. Of the heads of a section, whose
// keys and values fit into the L2 cache, all last tiles come first: with causal masks those are the longest.
func (b *wgmmaBuilder[T]) place(item ptx.Reg[uint32]) (tile ptx.Reg[uint32]) {
	k := b.K
	section, in := b.Divisor(&b.Section).Split(k, item)
	before := section.Mul(b.U32(&b.SectionHeads))
	heads := b.U32(&b.AllHeads).Sub(before).Min(b.U32(&b.SectionHeads))
	tile = in.Div(heads)
	b.batch, b.head = b.Divisor(&b.ByHeads).Split(k, before.Add(in.Sub(tile.Mul(heads))))
	return tile
}

// see finds out which keys the queries of a tile see.
func (b *wgmmaBuilder[T]) see(tile ptx.Reg[uint32]) {
	b.first = tile.Mul(b.rows())
	b.used = b.signed(&b.at.Capacity)
	b.from = b.seenFrom(b.positionOf(b.first))
	b.to = b.seenTo(b.positionOf(b.lastOf(b.first, b.rows())), b.used)
}

// positionOf is where a query stands among the keys.
func (b *wgmmaBuilder[T]) positionOf(query ptx.Reg[uint32]) ptx.Reg[int32] {
	return b.position(ptx.Bitcast[int32](query), b.used)
}

// lastOf is the last query of so many rows.
func (b *wgmmaBuilder[T]) lastOf(first ptx.Reg[uint32], rows int) ptx.Reg[uint32] {
	return first.Add(rows).Min(b.U32(&b.at.N)).Sub(1)
}

// wgmmaRing is the stages of tiles in turn, of keys or of values.
type wgmmaRing struct {
	memory      ptx.Ptr[ptx.Shared, uint32]
	stages      int // a power of two
	size        int
	full, empty ptx.Mbarrier
}

// stage is that of the n-th tile, and parity that of the phase in which the stage has it.
func (r *wgmmaRing) stage(n ptx.Reg[uint32]) ptx.Reg[uint32]  { return n.And(r.stages - 1) }
func (r *wgmmaRing) parity(n ptx.Reg[uint32]) ptx.Reg[uint32] { return n.Div(r.stages).And(1) }

func (r *wgmmaRing) tile(n ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, uint32] {
	return r.memory.Bytes(r.stage(n).Mul(r.size))
}

func (r *wgmmaRing) wait(n ptx.Reg[uint32]) { r.full.At(r.stage(n)).WaitParity(r.parity(n)) }

// produce is what one thread does: it brings queries, and tiles of keys and values as stages become empty. Keys are ahead of values by one
// tile, in the order in which they are used.
func (b *wgmmaBuilder[T]) produce() {
	k := b.K
	for _, m := range []ptx.TensorMap[uint32]{b.q, b.k, b.v} {
		m.PrefetchDescriptor()
	}
	signed := ptx.Bitcast[int32, uint32]
	load := func(m ptx.TensorMap[uint32], to ptx.Ptr[ptx.Shared, uint32], size int, head, row ptx.Reg[uint32], full ptx.Mbarrier) {
		full.ArriveExpectTx(size)
		for i := range b.parts() {
			at := []ptx.Reg[int32]{scalar.S32(64 * i), signed(head), signed(row), signed(b.batch)}
			m.Load(to.Bytes(i*size/b.parts()), at, full)
		}
	}
	turn := ptx.VarOf(k, ptx.U32(1)) // parity of doneQ
	n := ptx.VarOf(k, ptx.U32(0))    // of the tile whose keys come next, in all
	b.each(func() {
		keyHead := b.Quotient(&b.at.Group, b.head)
		bring := func(m ptx.TensorMap[uint32], r *wgmmaRing, n, key ptx.Reg[uint32]) {
			r.empty.At(r.stage(n)).WaitParity(r.parity(n).Xor(1))
			load(m, r.tile(n), r.size, keyHead, key, r.full.At(r.stage(n)))
		}
		some := b.from.Lt(b.to)
		k.If(some, func() { bring(b.k, &b.ofK, n.Get(), b.from) })
		b.doneQ.WaitParity(turn.Get())
		turn.Set(turn.Get().Xor(1))
		load(b.q, b.ofQ, b.sizeQ(), b.head, b.first, b.fullQ)
		k.If(some, func() {
			key := ptx.VarOf(k, b.from)
			n.Set(n.Get().Add(1))
			k.While(func() ptx.Reg[bool] { return key.Get().Add(b.keys).Lt(b.to) }, func() {
				bring(b.k, &b.ofK, n.Get(), key.Get().Add(b.keys))
				bring(b.v, &b.ofV, n.Get().Sub(1), key.Get())
				key.Set(key.Get().Add(b.keys))
				n.Set(n.Get().Add(1))
			})
			bring(b.v, &b.ofV, n.Get().Sub(1), key.Get())
		})
	})
}

// consume is what a warpgroup does that multiplies. While the weights of a tile are multiplied with its values, and the scores of the
// next are there, it makes weights of these. Warpgroups take turns to ask for products, so that one weighs while others multiply.
func (b *wgmmaBuilder[T]) consume(tid ptx.Reg[uint32]) {
	k := b.K
	b.lane, b.group = tid.And(31), tid.Shr(7)
	b.top = tid.Shr(5).Mul(16)
	b.scores = ptx.Wgmma[T, T, float32]{N: b.keys}.NewAccumulator(k)
	b.sums = ptx.Wgmma[T, T, float32]{N: b.width}.NewAccumulator(k)
	for range b.keys / 4 {
		b.weights = append(b.weights, ptx.NewVar[T](k))
	}
	leader := b.lane.Eq(0)
	release := func(r *wgmmaRing, n ptx.Reg[uint32]) {
		at := r.empty.At(r.stage(n))
		k.When(leader, func() { at.ArriveN(1) })
	}
	turn := ptx.VarOf(k, ptx.U32(0)) // parity of fullQ
	n := ptx.VarOf(k, ptx.U32(0))    // of the tile whose keys come next, in all
	k.If(b.group.Eq(b.groups-1), func() { b.pass(0) })
	b.each(func() {
		online := softmax.OfScores(k, b.SmallExp2)
		b.seen = [2]softmax.Running{online.Start(), online.Start()}
		for _, s := range b.sums {
			s.Set(0)
		}
		mine := b.first.Add(b.group.Mul(64))
		wholeFrom := b.seenFrom(b.positionOf(mine.Add(63)))
		wholeTo := b.seenTo(b.positionOf(mine), b.used)
		key := ptx.VarOf(k, b.from) // first of tile n
		whole := func() ptx.Reg[bool] {
			return key.Get().Ge(wholeFrom).And(key.Get().Add(b.keys).Le(wholeTo))
		}
		more := func() ptx.Reg[bool] { return key.Get().Lt(b.to) }
		next := func() {
			key.Set(key.Get().Add(b.keys))
			n.Set(n.Get().Add(1))
		}
		b.fullQ.WaitParity(turn.Get())
		turn.Set(turn.Get().Xor(1))
		k.If(more(), func() {
			b.ofK.wait(n.Get())
			k.WgmmaFence()
			b.multiplyKeys(n.Get())
			k.WgmmaCommit()
			k.WgmmaWait(0)
			release(&b.ofK, n.Get())
			k.If(whole().Not(), func() { b.mask(key.Get(), b.keys) })
			b.weigh()
			b.pack()
			next()
			iterate := func(plain bool) {
				before := n.Get().Sub(1)
				b.ofK.wait(n.Get())
				b.ofV.wait(before)
				b.await()
				k.WgmmaFence()
				b.multiplyKeys(n.Get())
				k.WgmmaCommit()
				b.multiplyValues(before)
				k.WgmmaCommit()
				b.pass(1)
				k.WgmmaWait(1)
				release(&b.ofK, n.Get())
				if !plain {
					b.mask(key.Get(), b.rows()-b.keys)
				}
				factors := b.weigh()
				b.hold()
				k.WgmmaWait(0)
				release(&b.ofV, before)
				b.pack()
				b.rescale(factors)
				next()
			}
			k.While(more, func() {
				k.While(whole, func() { iterate(true) })
				k.If(more(), func() { iterate(false) })
			})
			last := n.Get().Sub(1)
			b.ofV.wait(last)
			k.WgmmaFence()
			b.multiplyValues(last)
			k.WgmmaCommit()
			k.WgmmaWait(0)
			release(&b.ofV, last)
		})
		b.write()
		k.FenceProxyAsyncShared() // the next queries come to where results were
		k.WarpSync(ptx.FullWarp())
		k.When(leader, func() { b.doneQ.ArriveN(1) })
	})
	k.If(b.group.Eq(0), b.await) // takes back what the last warpgroup has passed on
}

// hold keeps what follows after all weights have been made: without it ptxas waits for the values' products before it makes them. Sums
// of weights are never negative, so that nothing is done; for a whole warp, or else ptxas sees products in a branch.
func (b *wgmmaBuilder[T]) hold() {
	k := b.K
	negative := b.seen[0].Sum.Get().Lt(0).Or(b.seen[1].Sum.Get().Lt(0))
	k.If(k.VoteAny(negative, ptx.FullWarp()), func() { k.WarpSync(ptx.FullWarp()) })
}

// await waits for the warpgroup's turn, pass gives it to the one that comes so many further.
func (b *wgmmaBuilder[T]) await() { b.K.BarSync(b.group.Add(1), ptx.U32(256)) }

func (b *wgmmaBuilder[T]) pass(further int) {
	to := ptx.U32(1)
	if further > 0 {
		to = b.group.Add(1)
		to = ptx.Select(to.Eq(b.groups), ptx.U32(1), to.Add(1))
	}
	b.K.BarArrive(to, ptx.U32(256))
}

// multiplyKeys makes scores of the warpgroup's queries and the n-th tile of keys, both with the depth along rows.
func (b *wgmmaBuilder[T]) multiplyKeys(n ptx.Reg[uint32]) {
	k := b.K
	product := ptx.Wgmma[T, T, float32]{N: b.keys}
	q := ptx.NewDescriptor(b.ofQ.Bytes(b.group.Mul(64*128)), 16, 8*128, ptx.Swizzle128)
	of := ptx.NewDescriptor(b.ofK.tile(n), 16, 8*128, ptx.Swizzle128)
	for i := range b.width / 16 {
		part, column := i/4, i%4*32
		x, y := q.Bytes(part*b.rows()*128+column), of.Bytes(part*b.keys*128+column)
		if i == 0 {
			product.MulAddIf(k, false, b.scores, x, y)
		} else {
			product.MulAdd(k, b.scores, x, y)
		}
	}
}

// multiplyValues adds the n-th tile's values, weighed, to the sums. The depth goes from row to row.
func (b *wgmmaBuilder[T]) multiplyValues(n ptx.Reg[uint32]) {
	product := ptx.Wgmma[T, T, float32]{N: b.width, TransB: true}
	of := ptx.NewDescriptor(b.ofV.tile(n), b.keys*128, 8*128, ptx.Swizzle128)
	for i := range b.keys / 16 {
		var a []ptx.Reg[T]
		for _, w := range b.weights[4*i:][:4] {
			a = append(a, w.Get())
		}
		product.MulAddReg(b.K, b.sums, a, of.Bytes(i*16*128))
	}
}

// eachRow calls f for the rows of which the lane has elements: of 16 × 8 results, lane 4g+t has columns 2t and 2t+1 of rows g and g+8.
func (b *wgmmaBuilder[T]) eachRow(f func(half int, row ptx.Reg[uint32])) {
	g := b.top.Add(b.lane.Shr(2))
	for half := range 2 {
		f(half, g.Add(8*half))
	}
}

// mask hides what rows do not see. All see what is between their first keys and so many of the tile: the first query's begin with the block's
// first tile, and those of each further one one key later.
func (b *wgmmaBuilder[T]) mask(tile ptx.Reg[uint32], begin int) {
	at := tile.Add(b.lane.And(3).Shl(1)) // the lane's first key
	b.eachRow(func(half int, row ptx.Reg[uint32]) {
		p := b.positionOf(b.first.Add(row))
		high := ptx.Bitcast[int32](b.seenTo(p, b.used).Sub(at))
		var low ptx.Reg[int32]
		if begin > 0 {
			low = ptx.Bitcast[int32](b.seenFrom(p).Sub(at))
		}
		for j := range b.keys / 8 {
			for e, x := range b.scores[4*j+2*half:][:2] {
				key := scalar.S32(8*j + e)
				seen := high.Gt(key)
				if 8*j+e < begin {
					seen = seen.And(low.Le(key))
				}
				x.Set(b.Where(seen, x.Get(), ptx.F32(math.Inf(-1))))
			}
		}
	})
}

// weigh makes weights of scores, in their place, and returns what earlier sums of rows g and g+8 count by.
func (b *wgmmaBuilder[T]) weigh() (factors []scalar.Float) {
	for half := range 2 {
		var row []scalar.Float
		for j := range b.keys / 8 {
			row = append(row, b.scores[4*j+2*half].Get(), b.scores[4*j+2*half+1].Get())
		}
		base, f := b.seen[half].Update(threadgroup.WarpReduce(largest(row), 4, maximum).Mul(b.scale))
		factors = append(factors, f)
		less := base.Neg()
		for i := range row {
			x := b.scores[i/2*4+2*half+i%2]
			x.Set(b.SmallExp2(x.Get().Fma(b.scale, less)))
			row[i] = x.Get()
		}
		b.seen[half].Add(f, row...)
	}
	return factors
}

// pack makes operands of weights: those of 16 keys are four registers, of results of 16 × 8 beside each other.
func (b *wgmmaBuilder[T]) pack() {
	for i, w := range b.weights {
		w.Set(ptx.ConvertPair[T](b.scores[2*i].Get(), b.scores[2*i+1].Get()))
	}
}

func (b *wgmmaBuilder[T]) rescale(factors []scalar.Float) {
	b.seen[0].Rescale(factors, func() {
		for i, s := range b.sums {
			s.Set(s.Get().Mul(factors[i/2%2]))
		}
	})
}

// write divides by the sums and stores. Rows pass through the memory of the warp's queries, so that neighbours are written together.
func (b *wgmmaBuilder[T]) write() {
	k := b.K
	k.WarpSync(ptx.FullWarp())
	t, g := b.lane.And(3), b.lane.Shr(2)
	b.eachRow(func(half int, row ptx.Reg[uint32]) {
		seen := b.seen[half]
		sum := threadgroup.WarpReduce(seen.Sum.Get(), 4, threadgroup.Plus)
		scale, none := seen.Finish(sum)
		to := b.ofQ.Bytes(row.Mad(128, t.Shl(2)))
		for n := range b.width / 8 {
			x, y := b.sums[4*n+2*half].Get().Mul(scale), b.sums[4*n+2*half+1].Get().Mul(scale)
			chunk := g.Xor(n % 8).Shl(4)
			to.Bytes(chunk).Bytes(n / 8 * b.rows() * 128).Store(ptx.Bitcast[uint32](ptx.ConvertPair[T](x, y)))
		}
		query := b.first.Add(row)
		k.If(t.Eq(0), func() {
			k.If(query.Lt(b.U32(&b.at.N)).And(b.flag(&b.at.Direct)), func() {
				log := seen.Max.Get().Add(sum.Lg2(ptx.Approx)).Mul(math.Ln2)
				to := b.lse.At(b.batch.Mad(b.U32(&b.at.Heads), b.head).Mad(b.U32(&b.at.N), query))
				to.Store(b.Where(none, ptx.F32(math.Inf(-1)), log))
			})
		})
	})
	k.WarpSync(ptx.FullWarp())
	chunk := b.lane.And(7)
	width := b.U32(&b.at.Width)
	ptx.For(k, 0, 16, 4, func(r ptx.Reg[uint32]) {
		row := b.top.Add(b.lane.Shr(3)).Add(r)
		query := b.first.Add(row)
		from := b.ofQ.Bytes(row.Mad(128, chunk.Xor(row.And(7)).Shl(4)))
		to := b.y.Bytes(b.queryRow(b.batch, query, b.head).MulWide(width.Mul(2))).Bytes(chunk.Shl(4))
		for part := range b.parts() {
			words := from.Bytes(part * b.rows() * 128).Load4()
			inside := query.Lt(b.U32(&b.at.N)).And(chunk.Mul(8).Add(64 * part).Lt(width))
			k.When(inside, func() { ptx.Cast[uint32](to.Bytes(part * 128)).Store4(words) })
		}
	}, ptx.NoUnroll())
}
