package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// walk goes over the keys of the block. While products with some keys are summed up, their values are on the way, and while
// these are weighed, the next keys.
func (b *decodeBuilder) walk(q [][]scalar.Float) {
	k, keys := b.K, b.keys()
	fresh := func(n int) (v scalar.Variables[uint32]) {
		for range n {
			v = append(v, ptx.NewVar[uint32](k))
		}
		return v
	}
	b.slots, b.known = fresh(keys), ptx.NewVar[uint32](k)
	tile := make([]scalar.Variables[uint32], keys)
	values := make([]scalar.Variables[uint32], keys)
	for j := range keys {
		tile[j], values[j] = fresh(b.words), fresh(b.words)
	}
	ahead := ptx.Mul(k, b.team, scalar.U32(keys)) // of this group in a tile
	b.locate(ptx.Add(k, b.from, ahead))
	b.Load(b.keysAt, tile)
	step := b.size(sizeTile)

	i, n := b.seenByLane()
	ptx.For(k, b.from, b.to, step, func(base ptx.Reg[uint32]) {
		b.Load(b.valuesAt, values)
		scores := b.score(q, tile)
		known := ptx.Copy(k, b.known.Get())
		at := ptx.Add(k, base, ahead)
		b.locate(ptx.Add(k, at, step))
		b.Load(b.keysAt, tile)
		b.weigh(scores, at, known, i, n, values)
	}, ptx.NoUnroll())
}

// seenByLane is the keys that the row whose scores this lane has sees of the block's.
func (b *decodeBuilder) seenByLane() (from, count ptx.Reg[uint32]) {
	k := b.K
	r := ptx.Mad(k, b.block, scalar.U32(b.rows), ptx.Shr(k, b.low, scalar.U32(scalar.Log2(b.owners()))))
	p := b.standing(r)
	from = ptx.Max(k, b.seenFrom(p), b.from)
	to := ptx.Min(k, b.seenTo(p, b.used), b.to)
	return from, ptx.Sub(k, ptx.Max(k, from, to), from)
}

// locate finds the rows of the keys from number t on.
func (b *decodeBuilder) locate(t ptx.Reg[uint32]) {
	k := b.K
	b.known.Set(scalar.U32(0))
	capacity := b.size(sizeCapacity)
	k.If(ptx.Eq(k, b.size(sizeTable), scalar.U32(0)), func() {
		start := ptx.Mul(k, b.batch, capacity)
		for j, row := range b.slots {
			at := ptx.Add(k, t, scalar.U32(j))
			slot := ptx.Add(k, b.first, at)
			slot = ptx.Sub(k, slot, ptx.Select(k, ptx.Ge(k, slot, capacity), capacity, scalar.U32(0)))
			row.Set(ptx.Add(k, start, slot))
			b.know(j, ptx.Lt(k, at, b.to))
		}
	}, func() {
		page, pages := b.divisor(sizePage), b.size(sizePages)
		table := ptx.At(k, b.table, ptx.Mul(k, b.batch, b.size(sizeTable)))
		for j, row := range b.slots {
			at := ptx.Add(k, t, scalar.U32(j))
			entry, within := page.Split(k, at)
			id := ptx.LoadIf(k, ptx.Lt(k, at, b.to), ptx.At(k, table, entry), ptx.Imm[uint32](math.MaxUint32))
			row.Set(ptx.Mad(k, id, page.D, within))
			b.know(j, ptx.Lt(k, id, pages)) // as unsigned numbers: negative ones are beyond it, too
		}
	})
}

func (b *decodeBuilder) know(j int, ok ptx.Reg[bool]) {
	k := b.K
	b.known.Set(ptx.Or(k, b.known.Get(), ptx.Select(k, ok, ptx.Imm(uint32(1)<<j), scalar.U32(0))))
}

// Load reads this lane's slices of the rows that are known; those of others are zeros, as are elements behind a row's end.
func (b *decodeBuilder) Load(p ptx.Ptr[ptx.Global, uint32], to []scalar.Variables[uint32]) {
	k := b.K
	at := make([]ptx.Ptr[ptx.Global, uint32], len(to))
	left := make([]ptx.Reg[uint32], len(to)) // elements of the slice, none if the row is not known
	for j := range to {
		at[j] = ptx.AtByte(k, p, ptx.MulWideU32(k, b.slots[j].Get(), b.stride))
		known := ptx.Ne(k, ptx.And(k, b.known.Get(), ptx.Imm(uint32(1)<<j)), scalar.U32(0))
		left[j] = ptx.Select(k, known, b.left, scalar.U32(0))
		to[j].Set(scalar.Constants(make([]uint32, b.words)))
	}
	k.If(b.flag(sizeVector), func() {
		for j := range to {
			for u := range b.words / 4 {
				inside := ptx.Lt(k, scalar.U32(4*u*decodeSlice/b.words), left[j])
				k.When(inside, func() {
					x := ptx.Load4(k, at[j].At(4*u), ptx.ReadOnly)
					to[j][4*u : 4*u+4].Set(x[:])
				})
			}
		}
	}, func() {
		for j := range to {
			for w := range b.words {
				inside := func(e int) ptx.Reg[bool] { return ptx.Lt(k, scalar.U32(e), left[j]) }
				if b.words == decodeSlice {
					to[j][w].Set(ptx.LoadIf(k, inside(w), at[j].At(w), scalar.U32(0)))
					continue
				}
				half := ptx.Cast[uint16](at[j])
				lo := ptx.LoadIf(k, inside(2*w), half.At(2*w), ptx.Imm[uint16](0))
				hi := ptx.LoadIf(k, inside(2*w+1), half.At(2*w+1), ptx.Imm[uint16](0))
				to[j][w].Set(ptx.Pack32(k, lo, hi))
			}
		}
	})
}

// floats is a slice as numbers.
func (b *decodeBuilder) floats(words scalar.Variables[uint32]) (x []scalar.Float) {
	for _, w := range words.Get() {
		x = append(x, b.widen(b.K, w)...)
	}
	return x
}

// score is the products of rows and keys, those of one row in each lane.
func (b *decodeBuilder) score(q [][]scalar.Float, tile []scalar.Variables[uint32]) []scalar.Float {
	k, keys := b.K, b.keys()
	x := make([]scalar.Float, b.rows*keys)
	for j := range tile {
		e := b.floats(tile[j])
		for m := range q {
			sum := b.Mul(q[m][0], e[0])
			for i := 1; i < decodeSlice; i++ {
				sum = b.Fma(q[m][i], e[i], sum)
			}
			x[m*keys+j] = sum
		}
	}
	for _, d := range []int{4, 2, 1} { // lanes so far apart exchange halves of what they have
		upper := ptx.Ne(k, ptx.And(k, b.low, scalar.U32(d)), scalar.U32(0))
		half := len(x) / 2
		for i := range half {
			other := b.exchange(b.Where(upper, x[i], x[half+i]), d)
			x[i] = b.Add(b.Where(upper, x[half+i], x[i]), other)
		}
		x = x[:half]
	}
	sums := scalar.VariablesOf(k, x)
	for _, d := range []int{8, 16} {
		k.If(ptx.Gt(k, ptx.Shl(k, scalar.U32(1), b.log), scalar.U32(d)), func() {
			for _, s := range sums {
				s.Set(b.Add(s.Get(), b.exchange(s.Get(), d)))
			}
		})
	}
	k.If(ptx.Ne(k, b.cap, scalar.Num(0)), func() {
		for _, s := range sums {
			s.Set(b.Mul(b.cap, b.Tanh(s.Get())))
		}
	})
	return sums.Get()
}

func (b *decodeBuilder) exchange(x scalar.Float, distance int) scalar.Float {
	return ptx.Shuffle(b.K, ptx.ShuffleXor, x, scalar.U32(distance), 32, ptx.FullWarp())
}

// ownerOf is x of the lane that has score i of row m.
func (b *decodeBuilder) ownerOf(x scalar.Float, m, i int) scalar.Float {
	return ptx.Shuffle(b.K, ptx.ShuffleIndex, x, scalar.U32(m*b.owners()+i), 8, ptx.FullWarp())
}

// weigh adds values to the accumulators, by the scores of keys from number at on.
func (b *decodeBuilder) weigh(scores []scalar.Float, at, known, from, count ptx.Reg[uint32], values []scalar.Variables[uint32]) {
	k := b.K
	own := ptx.And(k, b.low, scalar.U32(b.owners()-1)) // which of the owners this lane is
	own = ptx.Mul(k, own, scalar.U32(b.scores()))
	best := b.best.Get()
	for c := range scores {
		j := ptx.Add(k, own, scalar.U32(c))
		since := ptx.Sub(k, ptx.Add(k, at, j), from)
		bit := ptx.And(k, ptx.Shr(k, known, j), scalar.U32(1))
		ok := ptx.And(k, ptx.Lt(k, since, count), ptx.Ne(k, bit, scalar.U32(0)))
		scores[c] = b.Where(ok, scores[c], scalar.Num(math.Inf(-1)))
		best = b.Math.Max(best, scores[c])
	}
	for d := 1; d < b.owners(); d *= 2 {
		best = b.Math.Max(best, b.exchange(best, d))
	}
	base := b.Where(ptx.Eq(k, best, scalar.Num(math.Inf(-1))), scalar.Num(0), best)
	factor := b.Exp2(b.Sub(b.best.Get(), base))
	total := b.Mul(b.total.Get(), factor)
	for c := range scores {
		scores[c] = b.Exp2(b.Sub(scores[c], base))
		total = b.Add(total, scores[c])
	}
	k.If(k.VoteAny(ptx.Ne(k, factor, scalar.Num(1)), ptx.FullWarp()), func() {
		for m, acc := range b.acc {
			f := b.ownerOf(factor, m, 0)
			for _, a := range acc {
				a.Set(b.Mul(a.Get(), f))
			}
		}
	})
	b.best.Set(best)
	b.total.Set(total)
	for j := range values {
		v := b.floats(values[j])
		for m, acc := range b.acc {
			p := b.ownerOf(scores[j%b.scores()], m, j/b.scores())
			for e, a := range acc {
				a.Set(b.Fma(p, v[e], a.Get()))
			}
		}
	}
}

// join merges what the groups of a warp have gathered, into the first of them.
func (b *decodeBuilder) join() {
	k := b.K
	for d := 1; d < b.owners(); d *= 2 {
		b.total.Set(b.Add(b.total.Get(), b.exchange(b.total.Get(), d)))
	}
	for _, d := range []int{8, 16} {
		k.If(ptx.Le(k, ptx.Shl(k, scalar.U32(1), b.log), scalar.U32(d)), func() {
			other := b.exchange(b.best.Get(), d)
			best := b.Math.Max(b.best.Get(), other)
			base := b.Where(ptx.Eq(k, best, scalar.Num(math.Inf(-1))), scalar.Num(0), best)
			mine, its := b.Exp2(b.Sub(b.best.Get(), base)), b.Exp2(b.Sub(other, base))
			b.total.Set(b.Fma(b.total.Get(), mine, b.Mul(b.exchange(b.total.Get(), d), its)))
			b.best.Set(best)
			for m, acc := range b.acc {
				f, g := b.ownerOf(mine, m, 0), b.ownerOf(its, m, 0)
				for _, a := range acc {
					a.Set(b.Fma(a.Get(), f, b.Mul(b.exchange(a.Get(), d), g)))
				}
			}
		})
	}
}

// Write merges what warps have gathered, and leaves it or the result.
func (b *decodeBuilder) Write() {
	k, rows := b.K, b.rows
	stats := ptx.SharedArray[float32](k, "pairs_of_warps", decodeWarps*rows*2, ptx.Align(8))
	warp, lane := ptx.Shr(k, b.tid, scalar.U32(5)), ptx.And(k, b.tid, scalar.U32(31))
	k.If(ptx.Lt(k, lane, ptx.Shl(k, scalar.U32(1), b.log)), func() {
		p := ptx.At(k, b.shared, ptx.Mad(k, warp, scalar.U32(rows*decodeWidth), ptx.Shl(k, b.slice, scalar.U32(3))))
		for m, acc := range b.acc {
			for j := range decodeSlice / 4 {
				ptx.Store4(k, p.At(m*decodeWidth+4*j), [4]scalar.Float(acc[4*j:4*j+4].Get()))
			}
		}
	})
	k.If(ptx.And(k, ptx.Lt(k, lane, scalar.U32(8)), ptx.Eq(k, ptx.And(k, lane, scalar.U32(b.owners()-1)), scalar.U32(0))), func() {
		m := ptx.Shr(k, lane, scalar.U32(scalar.Log2(b.owners())))
		p := ptx.At(k, stats, ptx.Shl(k, ptx.Mad(k, warp, scalar.U32(rows), m), scalar.U32(1)))
		ptx.Store2(k, p, [2]scalar.Float{b.best.Get(), b.total.Get()})
	})
	k.Barrier()
	direct, width := b.flag(sizeDirect), b.size(sizeWidth)
	unit := ptx.Mad(k, ptx.Mad(k, b.batch, b.size(sizeKVHeads), b.head), b.size(sizeParts), b.split)
	for m := range rows {
		var pair [decodeWarps][2]scalar.Float
		best := scalar.Num(math.Inf(-1))
		for w := range pair {
			pair[w] = ptx.Load2(k, stats.At((w*rows+m)*2))
			best = b.Math.Max(best, pair[w][0])
		}
		base := b.Where(ptx.Eq(k, best, scalar.Num(math.Inf(-1))), scalar.Num(0), best)
		total := scalar.Num(0)
		var weight [decodeWarps]scalar.Float
		for w := range pair {
			weight[w] = b.Exp2(b.Sub(pair[w][0], base))
			total = b.Fma(weight[w], pair[w][1], total)
		}
		r := ptx.Mad(k, b.block, scalar.U32(rows), scalar.U32(m))
		inside := ptx.Lt(k, r, b.size(sizeRows))
		at := ptx.Mad(k, unit, b.size(sizeRows), r)
		// Where the sum is 0 there was no key, and the accumulator is 0, too.
		scale := b.Where(direct, ptx.Rcp(k, b.Where(ptx.Eq(k, total, scalar.Num(0)), scalar.Num(1), total)), scalar.Num(1))
		start := ptx.Select(k, direct, ptx.Convert[uint64](k, b.query(r)), ptx.MulWideU32(k, at, width))
		base64 := ptx.Select(k, direct, ptx.Address(k, b.y), ptx.Address(k, b.out))
		out := ptx.At(k, ptx.PtrAt[ptx.Global, float32](k, base64), start)
		for j := range decodeWidth / decodeThreads {
			e := ptx.Add(k, b.tid, scalar.U32(j*decodeThreads))
			k.If(ptx.And(k, inside, ptx.Lt(k, e, width)), func() {
				sum := scalar.Num(0)
				for w := range weight {
					sum = b.Fma(weight[w], ptx.Load(k, ptx.At(k, b.shared, e).At((w*rows+m)*decodeWidth)), sum)
				}
				ptx.Store(k, ptx.At(k, out, e), b.Mul(sum, scale))
			})
		}
		first := ptx.And(k, inside, ptx.Eq(k, b.tid, scalar.U32(0)))
		k.If(ptx.And(k, first, ptx.Not(k, direct)), func() {
			ptx.Store2(k, ptx.At(k, b.pairs, ptx.MulWideU32(k, at, scalar.U32(2))), [2]scalar.Float{best, total})
		})
	}
}
