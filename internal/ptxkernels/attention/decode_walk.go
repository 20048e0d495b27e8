package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
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
	ahead := b.group.Mul(keys) // of this group in a tile
	b.locate(b.from.Add(ahead))
	b.Load(b.keysAt, tile)
	step := b.U32(&b.at.Tile)

	i, n := b.seenByLane()
	ptx.For(k, b.from, b.to, step, func(base ptx.Reg[uint32]) {
		b.Load(b.valuesAt, values)
		scores := b.score(q, tile)
		known := b.known.Get().Copy()
		at := base.Add(ahead)
		b.locate(at.Add(step))
		b.Load(b.keysAt, tile)
		b.weigh(scores, at, known, i, n, values)
	}, ptx.NoUnroll())
}

// seenByLane is the keys that the row whose scores this lane has sees of the block's.
func (b *decodeBuilder) seenByLane() (from, count ptx.Reg[uint32]) {
	r := b.tile.Mad(b.rows, b.low.Shr(scalar.Log2(b.owners())))
	p := b.rowPosition(r, b.used)
	from = b.seenFrom(p).Max(b.from)
	to := b.seenTo(p, b.used).Min(b.to)
	return from, from.Max(to).Sub(from)
}

// locate finds the rows of the keys from number t on.
func (b *decodeBuilder) locate(t ptx.Reg[uint32]) {
	k := b.K
	b.known.Set(0)
	capacity := b.U32(&b.at.Capacity)
	k.If(b.U32(&b.at.Table).Eq(0), func() {
		start := b.batch.Mul(capacity)
		for j, row := range b.slots {
			at := t.Add(j)
			row.Set(start.Add(b.slot(at, capacity)))
			b.setKnown(j, at.Lt(b.to))
		}
	}, func() {
		page, pages := b.Divisor(&b.at.Page), b.U32(&b.at.Pages)
		table := b.table.At(b.batch.Mul(b.U32(&b.at.Table)))
		for j, row := range b.slots {
			at := t.Add(j)
			entry, within := page.Split(k, at)
			id := ptx.LoadIf(at.Lt(b.to), table.At(entry), math.MaxUint32)
			row.Set(id.Mad(page.D, within))
			b.setKnown(j, id.Lt(pages)) // as unsigned numbers: negative ones are beyond it, too
		}
	})
}

func (b *decodeBuilder) setKnown(j int, ok ptx.Reg[bool]) {
	b.known.Set(b.known.Get().Or(ptx.Select(ok, ptx.Imm(uint32(1)<<j), 0)))
}

// Load reads this lane's slices of the rows that are known; those of others are zeros, as are elements after a row's end.
func (b *decodeBuilder) Load(p ptx.Ptr[ptx.Global, uint32], to []scalar.Variables[uint32]) {
	k := b.K
	at := make([]ptx.Ptr[ptx.Global, uint32], len(to))
	left := make([]ptx.Reg[uint32], len(to)) // elements of the slice, none if the row is not known
	for j := range to {
		at[j] = p.Bytes(b.slots[j].Get().MulWide(b.stride))
		known := b.known.Get().And(uint32(1) << j).Ne(0)
		left[j] = ptx.Select(known, b.left, 0)
		to[j].Set(scalar.Constants(make([]uint32, b.words)))
	}
	if b.packed() {
		for j := range to {
			k.When(left[j].Ne(0), func() {
				x := at[j].Load2(ptx.ReadOnly)
				scale := ptx.Cast[uint16](at[j].Bytes(b.toScale)).Load(ptx.ReadOnly)
				to[j].Set([]ptx.Reg[uint32]{x[0], x[1], ptx.Convert[uint32](scale)})
			})
		}
		return
	}
	k.If(b.flag(&b.at.Vector), func() {
		for j := range to {
			for u := range b.words / 4 {
				inside := ptx.U32(4 * u * decodeSlice / b.words).Lt(left[j])
				k.When(inside, func() {
					x := at[j].At(4 * u).Load4(ptx.ReadOnly)
					to[j][4*u : 4*u+4].Set(x[:])
				})
			}
		}
	}, func() {
		for j := range to {
			for w := range b.words {
				inside := func(e int) ptx.Reg[bool] { return ptx.U32(e).Lt(left[j]) }
				if b.words == decodeSlice {
					to[j][w].Set(ptx.LoadIf(inside(w), at[j].At(w), 0))
					continue
				}
				half := ptx.Cast[uint16](at[j])
				lo := ptx.LoadIf(inside(2*w), half.At(2*w), 0)
				hi := ptx.LoadIf(inside(2*w+1), half.At(2*w+1), 0)
				to[j][w].Set(ptx.Pack32(lo, hi))
			}
		}
	})
}

// floats is a slice as numbers.
func (b *decodeBuilder) floats(words scalar.Variables[uint32]) (x []scalar.Float) {
	all := words.Get()
	if !b.packed() {
		for _, w := range all {
			x = append(x, b.widen(b.K, w)...)
		}
		return x
	}
	scale := scalar.ToFloat32(b.K, ptx.Bitcast[ptx.F16](ptx.Convert[uint16](all[2])))
	for i := range decodeSlice {
		n := ptx.Bitcast[int32](all[i/4]).Bfe(8*(i%4), 8)
		x = append(x, ptx.Convert[float32](n).Mul(scale))
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
			sum := q[m][0].Mul(e[0])
			for i := 1; i < decodeSlice; i++ {
				sum = q[m][i].Fma(e[i], sum)
			}
			x[m*keys+j] = sum
		}
	}
	for _, d := range []int{4, 2, 1} { // lanes so far apart exchange halves of what they have
		upper := b.low.And(d).Ne(0)
		half := len(x) / 2
		for i := range half {
			other := b.exchange(b.Where(upper, x[i], x[half+i]), d)
			x[i] = b.Where(upper, x[half+i], x[i]).Add(other)
		}
		x = x[:half]
	}
	sums := scalar.VariablesOf(k, x)
	for _, d := range []int{8, 16} {
		k.If(ptx.U32(1).Shl(b.log).Gt(d), func() {
			for _, s := range sums {
				s.Set(s.Get().Add(b.exchange(s.Get(), d)))
			}
		})
	}
	k.If(b.cap.Ne(0), func() {
		for _, s := range sums {
			s.Set(b.cap.Mul(b.Tanh(s.Get())))
		}
	})
	return sums.Get()
}

func (b *decodeBuilder) exchange(x scalar.Float, distance int) scalar.Float {
	return x.Shuffle(ptx.ShuffleXor, distance, 32, ptx.FullWarp())
}

// ownerOf is x of the lane that has score i of row m.
func (b *decodeBuilder) ownerOf(x scalar.Float, m, i int) scalar.Float {
	return x.Shuffle(ptx.ShuffleIndex, m*b.owners()+i, 8, ptx.FullWarp())
}

// weigh adds values to the accumulators, by the scores of keys from number at on.
func (b *decodeBuilder) weigh(scores []scalar.Float, at, known, from, count ptx.Reg[uint32], values []scalar.Variables[uint32]) {
	own := b.low.And(b.owners() - 1) // which of the owners this lane is
	own = own.Mul(b.scores())
	for c := range scores {
		j := own.Add(c)
		since := at.Add(j).Sub(from)
		bit := known.Shr(j).And(1)
		ok := since.Lt(count).And(bit.Ne(0))
		scores[c] = b.Where(ok, scores[c], ptx.F32(math.Inf(-1)))
	}
	base, factor := b.seen.Update(threadgroup.WarpReduce(largest(scores), b.owners(), maximum))
	for c := range scores {
		scores[c] = b.seen.Exp(scores[c], base)
	}
	b.seen.Add(factor, scores...)
	b.seen.Rescale([]scalar.Float{factor}, func() {
		for m, acc := range b.acc {
			f := b.ownerOf(factor, m, 0)
			for _, a := range acc {
				a.Set(a.Get().Mul(f))
			}
		}
	})
	for j := range values {
		v := b.floats(values[j])
		for m, acc := range b.acc {
			p := b.ownerOf(scores[j%b.scores()], m, j/b.scores())
			for e, a := range acc {
				a.Set(p.Fma(v[e], a.Get()))
			}
		}
	}
}

// join merges what the groups of a warp have gathered, into the first of them.
func (b *decodeBuilder) join() {
	k := b.K
	if b.owners() > 1 {
		b.seen.Sum.Set(threadgroup.WarpReduce(b.seen.Sum.Get(), b.owners(), threadgroup.Plus))
	}
	for _, d := range []int{8, 16} {
		k.If(ptx.U32(1).Shl(b.log).Le(d), func() {
			mine, its := b.seen.Join(b.exchange(b.seen.Max.Get(), d), b.exchange(b.seen.Sum.Get(), d))
			for m, acc := range b.acc {
				f, g := b.ownerOf(mine, m, 0), b.ownerOf(its, m, 0)
				for _, a := range acc {
					a.Set(a.Get().Fma(f, b.exchange(a.Get(), d).Mul(g)))
				}
			}
		})
	}
}

// Write merges what warps have gathered, and leaves it or the result.
func (b *decodeBuilder) Write() {
	k, rows := b.K, b.rows
	stats := ptx.SharedArray[float32](k, "pairs_of_warps", decodeWarps*rows*2, ptx.Align(8))
	warp, lane := b.tid.Shr(5), b.tid.And(31)
	k.If(lane.Lt(ptx.U32(1).Shl(b.log)), func() {
		p := b.shared.At(warp.Mad(rows*decodeWidth, b.slice.Shl(3)))
		for m, acc := range b.acc {
			for j := range decodeSlice / 4 {
				p.At(m*decodeWidth + 4*j).Store4([4]scalar.Float(acc[4*j : 4*j+4].Get()))
			}
		}
	})
	k.If(lane.Lt(8).And(lane.And(b.owners()-1).Eq(0)), func() {
		m := lane.Shr(scalar.Log2(b.owners()))
		p := stats.At(warp.Mad(rows, m).Shl(1))
		p.Store2([2]scalar.Float{b.seen.Max.Get(), b.seen.Sum.Get()})
	})
	k.Barrier()
	direct, width := b.flag(&b.at.Direct), b.U32(&b.at.Width)
	unit := b.batch.Mad(b.Divided(&b.at.KVHeads), b.head).Mad(b.Divided(&b.at.Parts), b.split)
	for m := range rows {
		var ofWarps [][]scalar.Float
		for w := range decodeWarps {
			pair := stats.At((w*rows + m) * 2).Load2()
			ofWarps = append(ofWarps, pair[:])
		}
		best, total, factors := b.seen.Merge(ofWarps...)
		r := b.tile.Mad(rows, m)
		inside := r.Lt(b.U32(&b.at.Rows))
		at := unit.Mad(b.U32(&b.at.Rows), r)
		// Where the sum is 0 there was no key, and the accumulator is 0, too.
		scale, _ := b.seen.Finish(total)
		scale = b.Where(direct, scale, ptx.F32(1))
		start := ptx.Select(direct, ptx.Convert[uint64](b.query(r)), at.MulWide(width))
		base64 := ptx.Select(direct, ptx.Address(b.y), ptx.Address(b.out))
		out := ptx.PtrAt[ptx.Global, float32](k, base64).At(start)
		for j := range decodeWidth / decodeThreads {
			e := b.tid.Add(j * decodeThreads)
			k.If(inside.And(e.Lt(width)), func() {
				sum := ptx.F32(0)
				for w, f := range factors {
					sum = f.Fma(b.shared.At(e).At((w*rows+m)*decodeWidth).Load(), sum)
				}
				out.At(e).Store(sum.Mul(scale))
			})
		}
		first := inside.And(b.tid.Eq(0))
		k.If(first.And(direct.Not()), func() {
			b.pairs.At(at.MulWide(2)).Store2([2]scalar.Float{best, total})
		})
	}
}
