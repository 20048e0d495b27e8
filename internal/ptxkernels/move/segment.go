package move

import (
	"math/bits"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Updates are sorted by their rows, stably, and then added up in pieces of equal size, whatever rows they are for: the work is
// linear, and sums are formed in the same order every time.

const (
	sortThreads = 256
	sortRounds  = 16               // updates of each thread
	sortBits    = 8                // of a digit at most
	sortDigits  = 1<<sortBits + 1  // with that of updates for no row, which is after all others
	sortMasks   = sortThreads / 32 // words that have a bit for each thread
	noRow       = ^uint32(0)       // beyond any number of rows
)

const (
	// segmentPiece is how many rows at most one thread adds up. Their sums are added up likewise, by a tree.
	segmentPiece = 32
	// wideRow is the number of units from which neighbouring threads have one row: then each looks at one row of a piece only.
	wideRow = 8
)

// ScatterAdd adds the updates to the rows of the result.
func ScatterAdd(s *kit.Step) error {
	d := catalogue.GatherRows(s.Operands[0].Shape, s.Operands[1].Shape)
	if d.Count == 0 {
		return nil
	}
	keys, order := sortUpdates(s, d)
	kernel, unit := segmentSum, 1
	if d.Inner%4 == 0 {
		kernel, unit = segmentSum4, 4
	}
	x, sorted := kit.In(2), 0
	for n := d.Count; ; sorted = 1 {
		pieces, last := kit.CeilDiv(n, segmentPiece), 1
		ends, sums := keys, x // of no use
		if pieces > 1 {
			last, ends, sums = 0, s.NewScratch(4*2*pieces), s.NewScratch(4*2*pieces*d.Inner)
		}
		span := segmentPiece
		if d.Inner/unit >= wideRow {
			span = 1
		}
		total := kit.CeilDiv(n, span) * d.Inner / unit
		s.Launch(kernel, [3]int{kit.CeilDiv(total, moveThreads), 1, 1}, segmentParams{total, scalar.Divide(d.Inner / unit), n, d.Rows, span, sorted, last,
			keys, order, x, kit.Out, ends, sums})
		if last == 1 {
			return nil
		}
		keys, x, n = ends, sums, 2*pieces
	}
}

// sortUpdates returns the rows of the updates in ascending order, and the updates' numbers.
func sortUpdates(s *kit.Step, d catalogue.GatherDims) (keys, order kit.Buffer) {
	rowBits := max(1, bits.Len(uint(d.Rows-1)))
	passes := kit.CeilDiv(rowBits, sortBits)
	digitBits := kit.CeilDiv(rowBits, passes)
	blocks, digits := kit.CeilDiv(d.Count, sortThreads*sortRounds), 1<<digitBits
	var to [2][2]kit.Buffer // keys and numbers, of passes in turn
	for i := range min(2, passes) {
		to[i] = [2]kit.Buffer{s.NewScratch(4 * d.Count), s.NewScratch(4 * d.Count)}
	}
	counts, totals := s.NewScratch(4*(digits+1)*blocks), s.NewScratch(4*(digits+1))
	keys, order = kit.In(1), kit.In(1)
	for pass := range passes {
		shift, sorted := pass*digitBits, min(pass, 1)
		grid, head := [3]int{blocks, 1, 1}, sortParams{d.Count, blocks, d.Rows, shift, digits, keys}
		if blocks > 1 {
			s.Launch(sortCount, grid, countParams{head, counts})
			s.Launch(sortScan, [3]int{digits + 1, 1, 1}, scanParams{blocks, counts, totals})
		}
		s.Launch(sortPlace, grid, placeParams{head, sorted, order, counts, totals, to[pass%2][0], to[pass%2][1]})
		keys, order = to[pass%2][0], to[pass%2][1]
	}
	return keys, order
}

// Parameters of the kernels that sort.
type (
	sortParams struct {
		Count, Blocks, Rows int        // of updates
		Shift, Digits       int        // of the digit; how many there are
		Keys                kit.Buffer `of:"u32"`
	}
	countParams struct {
		sortParams
		Counts kit.Buffer `of:"u32"`
	}
	scanParams struct {
		Blocks         int
		Counts, Totals kit.Buffer `of:"u32"`
	}
	placeParams struct {
		sortParams
		Sorted          int        // 0: the updates are numbered as they lie
		Order           kit.Buffer `of:"u32"` // their numbers
		Counts, Totals  kit.Buffer `of:"u32"` // counts are those of blocks before each; neither is read if there is one block
		KeysTo, OrderTo kit.Buffer `of:"u32"`
	}
)

// sortBlock is a block of updates.
type sortBlock struct {
	k                                  *ptx.Kernel
	tid, block, start, end             ptx.Reg[uint32]
	count, blocks, rows, shift, digits ptx.Reg[uint32]
	keys                               ptx.Ptr[ptx.Global, uint32]
}

func sortBlockOf(p *kit.Params, of *sortParams) sortBlock {
	k := p.Kernel
	b := sortBlock{k: k, tid: k.Tid(ptx.X), block: k.Ctaid(ptx.X)}
	b.count, b.blocks, b.rows, b.shift, b.digits = p.U32(&of.Count), p.U32(&of.Blocks), p.U32(&of.Rows), p.U32(&of.Shift), p.U32(&of.Digits)
	b.keys = kit.Ptr[uint32](p, &of.Keys)
	b.start = b.block.Mul(sortThreads * sortRounds)
	b.end = b.start.Add(sortThreads * sortRounds).Min(b.count)
	return b
}

// digit is that of a key.
func (b sortBlock) digit(key ptx.Reg[uint32]) ptx.Reg[uint32] {
	own := key.Shr(b.shift).And(b.digits.Sub(1))
	return ptx.Select(key.Lt(b.rows), own, b.digits)
}

// tally counts the digits of the block's updates.
func (b sortBlock) tally(counters ptx.Ptr[ptx.Shared, uint32]) {
	k := b.k
	ptx.For(k, b.start.Add(b.tid), b.end, sortThreads, func(i ptx.Reg[uint32]) {
		counters.At(b.digit(b.keys.At(i).Load())).Reduce(ptx.OpAdd, 1)
	}, ptx.NoUnroll())
	k.Barrier()
}

// clearShared writes 0 to n words, by all threads of a block.
func clearShared(k *ptx.Kernel, p ptx.Ptr[ptx.Shared, uint32], n int) {
	ptx.For(k, k.Tid(ptx.X), n, sortThreads, func(i ptx.Reg[uint32]) { p.At(i).Store(0) }, ptx.NoUnroll())
	k.Barrier()
}

// sumUp is the sum of v of the block's threads up to each one, and that of all. shared has a word for each warp.
func sumUp(k *ptx.Kernel, v ptx.Reg[uint32], shared ptx.Ptr[ptx.Shared, uint32]) (upTo, all ptx.Reg[uint32]) {
	warp, lane := k.Tid(ptx.X).Shr(5), k.Tid(ptx.X).And(31)
	sum := ptx.VarOf(k, v)
	for d := 1; d < 32; d *= 2 {
		other := sum.Get().Shuffle(ptx.ShuffleUp, d, 32, ptx.FullWarp())
		sum.Set(sum.Get().Add(ptx.Select(lane.Ge(d), other, 0)))
	}
	k.When(lane.Eq(31), func() { shared.At(warp).Store(sum.Get()) })
	k.Barrier()
	before, total := ptx.VarOf(k, ptx.U32(0)), ptx.VarOf(k, ptx.U32(0))
	for j := range sortThreads / 32 {
		s := shared.At(j).Load()
		before.Set(before.Get().Add(ptx.Select(warp.Gt(j), s, 0)))
		total.Set(total.Get().Add(s))
	}
	k.Barrier()
	return before.Get().Add(sum.Get()), total.Get()
}

var sortCount = kit.Define(kit.Kernel{Family: "scatter", Name: "sort_count", Block: [3]int{sortThreads, 1, 1},
	Doc: "counts[digit·blocks + block] = how many updates of the block have the digit in their key."},
	func(k *ptx.Kernel, p *kit.Params, of *countParams) {
		b, counts := sortBlockOf(p, &of.sortParams), kit.Ptr[uint32](p, &of.Counts)
		counters := ptx.SharedArray[uint32](k, "counters", sortDigits)
		clearShared(k, counters, sortDigits)
		b.tally(counters)
		ptx.For(k, b.tid, b.digits.Add(1), sortThreads, func(d ptx.Reg[uint32]) {
			counts.At(d.Mad(b.blocks, b.block)).Store(counters.At(d).Load())
		}, ptx.NoUnroll())
	})

var sortScan = kit.Define(kit.Kernel{Family: "scatter", Name: "sort_scan", Block: [3]int{sortThreads, 1, 1},
	Doc: "Replaces the counts of a digit by the sums of those before them, and leaves the sum of all, by a block for each digit."},
	func(k *ptx.Kernel, p *kit.Params, of *scanParams) {
		blocks, counts, totals := p.U32(&of.Blocks), kit.Ptr[uint32](p, &of.Counts), kit.Ptr[uint32](p, &of.Totals)
		shared := ptx.SharedArray[uint32](k, "of_warps", sortThreads/32)
		tid, digit := k.Tid(ptx.X), k.Ctaid(ptx.X)
		carry := ptx.VarOf(k, ptx.U32(0))
		ptx.For(k, 0, blocks, sortThreads, func(first ptx.Reg[uint32]) {
			i := first.Add(tid)
			inside := i.Lt(blocks)
			at := counts.At(digit.Mad(blocks, i))
			v := ptx.LoadIf(inside, at, 0)
			sum, all := sumUp(k, v, shared)
			ptx.StoreIf(inside, at, carry.Get().Add(sum.Sub(v)))
			carry.Set(carry.Get().Add(all))
		}, ptx.NoUnroll())
		ptx.StoreIf(tid.Eq(0), totals.At(digit), carry.Get())
	})

var sortPlace = kit.Define(kit.Kernel{Family: "scatter", Name: "sort_place", Block: [3]int{sortThreads, 1, 1},
	Doc: "Puts the updates in the order of a digit of their keys, those of one digit in the order that they have."},
	func(k *ptx.Kernel, p *kit.Params, of *placeParams) {
		b, sorted := sortBlockOf(p, &of.sortParams), p.U32(&of.Sorted)
		order, counts, totals := kit.Ptr[uint32](p, &of.Order), kit.Ptr[uint32](p, &of.Counts), kit.Ptr[uint32](p, &of.Totals)
		keysTo, orderTo := kit.Ptr[uint32](p, &of.KeysTo), kit.Ptr[uint32](p, &of.OrderTo)
		shared := ptx.SharedArray[uint32](k, "of_warps", sortThreads/32)
		next := ptx.SharedArray[uint32](k, "next", sortDigits)             // where the next update of each digit goes
		masks := ptx.SharedArray[uint32](k, "masks", sortDigits*sortMasks) // which threads have a digit
		clearShared(k, masks, sortDigits*sortMasks)
		several, own := b.blocks.Ne(1), b.tid.Lt(b.digits)
		both := several.And(own)
		before := func(ok ptx.Reg[bool], digit ptx.Reg[uint32]) ptx.Reg[uint32] {
			return ptx.LoadIf(ok, counts.At(digit.Mad(b.blocks, b.block)), 0)
		}
		total := ptx.VarOf(k, ptx.LoadIf(both, totals.At(b.tid), 0))
		k.If(several.Not(), func() {
			b.tally(masks)
			total.Set(ptx.LoadIf(own, masks.At(b.tid), 0))
			k.Barrier()
			clearShared(k, masks, sortDigits)
		})
		sum, all := sumUp(k, total.Get(), shared)
		from := before(both, b.tid).Add(sum.Sub(total.Get()))
		k.When(own, func() { next.At(b.tid).Store(from) })
		none := before(several, b.digits)
		k.When(b.tid.Eq(0), func() { next.At(b.digits).Store(none.Add(all)) })
		word, bit := b.tid.Shr(5), ptx.U32(1).Shl(b.tid.And(31))
		lower := bit.Sub(1)
		k.Barrier()
		ptx.For(k, b.start, b.end, sortThreads, func(first ptx.Reg[uint32]) {
			i := first.Add(b.tid)
			inside := i.Lt(b.end)
			key := ptx.LoadIf(inside, b.keys.At(i), noRow)
			digit := b.digit(key)
			mask := masks.At(digit.Mul(sortMasks))
			mine := mask.At(word)
			k.When(inside, func() { mine.Reduce(ptx.OpOr, bit) })
			k.Barrier()
			same, earlier := ptx.VarOf(k, ptx.U32(0)), ptx.VarOf(k, ptx.U32(0)) // threads of that digit, and those before this one
			for w := range sortMasks {
				m := mask.At(w).Load()
				same.Set(same.Get().Add(m.Popc()))
				seen := ptx.Select(word.Gt(w), ptx.FullWarp(), ptx.Select(word.Eq(w), lower, 0))
				earlier.Set(earlier.Get().Add(m.And(seen).Popc()))
			}
			alone := mine.Load().And(lower).Eq(0) // the first of its word
			goes := next.At(digit)
			k.If(inside, func() {
				at := goes.Load().Add(earlier.Get())
				keysTo.At(at).Store(key)
				orderTo.At(at).Store(ptx.LoadIf(sorted.Ne(0), order.At(i), i))
			})
			k.Barrier()
			k.When(inside.And(earlier.Get().Eq(0)), func() {
				goes.Store(goes.Load().Add(same.Get()))
			})
			k.When(inside.And(alone), func() { mine.Store(0) })
			k.Barrier()
		}, ptx.NoUnroll())
	})

var segmentSum, segmentSum4 = segmentSumKernel("segment_sum", 1), segmentSumKernel("segment_sum_4", 4)

// segmentParams are those of segment_sum.
type segmentParams struct {
	Total        int           // units of all threads
	Width        scalar.Divide // units of a row
	Count, Rows  int           // rows of x, and of y
	Span         int           // rows of x that a thread looks at for where keys begin
	Sorted, Last int           // 1: the rows of x lie in the order of keys; the stage is the last
	Keys, Order  kit.Buffer    `of:"u32"` // Order is where the rows of x lie
	X, Y         kit.Buffer
	Ends         kit.Buffer `of:"u32"` // the next stage's keys,
	Sums         kit.Buffer // and its x
}

func segmentSumKernel(name string, unit int) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[key] += the rows of x of that key, where keys ascend; those beyond the rows of y do not count. The rows of x are cut " +
			"into pieces; a thread sums those of one key and piece. But for the last stage the sums of a piece's first and last key, which may " +
			"go on in other pieces, become two rows of the next stage's x."},
		func(k *ptx.Kernel, p *kit.Params, of *segmentParams) {
			total, width := p.U32(&of.Total), p.Divisor(&of.Width)
			count, rows := p.U32(&of.Count), p.U32(&of.Rows)
			span, sorted, last := p.U32(&of.Span), p.U32(&of.Sorted), p.U32(&of.Last).Ne(0)
			keys, order := kit.Ptr[uint32](p, &of.Keys), kit.Ptr[uint32](p, &of.Order)
			x, y := kit.Ptr[uint32](p, &of.X, ptx.Align(4*unit)), kit.Ptr[uint32](p, &of.Y, ptx.Align(4*unit))
			ends, sums := kit.Ptr[uint32](p, &of.Ends), kit.Ptr[uint32](p, &of.Sums, ptx.Align(4*unit))
			i := k.GlobalID(ptx.X)
			k.If(i.Lt(total), func() {
				part, col := width.Split(k, i)
				place := ptx.VarOf(k, part.Mul(span))
				stop := place.Get().Add(span).Min(count)
				piece := place.Get().Shr(bits.TrailingZeros(segmentPiece))
				begin := piece.Mul(segmentPiece)
				end := begin.Add(segmentPiece).Min(count)
				slot := piece.Shl(1)
				at := func(p ptx.Ptr[ptx.Global, uint32], row ptx.Reg[uint32]) ptx.Ptr[ptx.Global, uint32] {
					return unitAt(k, p, unit, row.Mad(width.D, col))
				}
				sum := make([]*ptx.Var[float32], unit)
				add := func(from ptx.Ptr[ptx.Global, uint32]) {
					for w, v := range scalar.LoadAll(from, unit) {
						sum[w].Set(sum[w].Get().Add(ptx.Bitcast[float32](v)))
					}
				}
				store := func(to ptx.Ptr[ptx.Global, uint32]) {
					var words []ptx.Reg[uint32]
					for _, v := range sum {
						words = append(words, ptx.Bitcast[uint32](v.Get()))
					}
					scalar.StoreAll(to, words)
				}
				put := func(slot, key ptx.Reg[uint32]) {
					store(at(sums, slot))
					ptx.StoreIf(col.Eq(0), ends.At(slot), key)
				}
				k.While(func() ptx.Reg[bool] { return place.Get().Lt(stop) }, func() {
					here := keys.At(place.Get())
					key, first := here.Load(), place.Get().Eq(begin)
					before := ptx.LoadIf(first.Not(), here.At(-1), key.Not())
					k.If(before.Eq(key), func() { place.Set(place.Get().Add(1)) }, func() {
						counts, same := key.Lt(rows), ptx.VarOf(k, key)
						for w := range sum {
							sum[w] = ptx.VarOf(k, ptx.F32(0))
						}
						k.While(func() ptx.Reg[bool] { return same.Get().Eq(key) }, func() {
							k.If(counts, func() {
								add(at(x, ptx.LoadIf(sorted.Eq(0), order.At(place.Get()), place.Get())))
							})
							place.Set(place.Get().Add(1))
							same.Set(ptx.LoadIf(place.Get().Lt(end), keys.At(place.Get()), key.Not()))
						})
						lasts := place.Get().Eq(end)
						k.If(first.And(last.Not()), func() {
							put(slot, key)
							for _, v := range sum { // nothing is left if the key is the piece's last as well
								v.Set(0)
							}
						})
						k.If(lasts.And(last.Not()), func() { put(slot.Add(1), key) }, func() {
							k.If(counts.And(last.Or(first.Not())), func() {
								to := at(y, key)
								add(to)
								store(to)
							})
						})
					})
				})
			})
		})
}
