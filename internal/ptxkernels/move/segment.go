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
	sortDigits  = 1<<sortBits + 1  // with that of updates for no row, which is behind all others
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
		s.Launch(kernel, [3]int{kit.CeilDiv(total, moveThreads), 1, 1}, total, scalar.DivisorOf(d.Inner/unit), n, d.Rows, span, sorted, last,
			keys, order, x, kit.Out, ends, sums)
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
		grid := [3]int{blocks, 1, 1}
		if blocks > 1 {
			s.Launch(sortCount, grid, d.Count, blocks, d.Rows, shift, digits, keys, counts)
			s.Launch(sortScan, [3]int{digits + 1, 1, 1}, blocks, counts, totals)
		}
		s.Launch(sortPlace, grid, d.Count, blocks, d.Rows, shift, digits, keys, sorted, order, counts, totals, to[pass%2][0], to[pass%2][1])
		keys, order = to[pass%2][0], to[pass%2][1]
	}
	return keys, order
}

const sortDoc = " Parameters: u32 count (of updates), u32 blocks, u32 rows, u32 shift (of the digit), u32 digits, u32* keys, "

// sortBlock is a block of updates, in kernels whose parameters begin as sortDoc says.
type sortBlock struct {
	k                                  *ptx.Kernel
	tid, block, start, end             ptx.Reg[uint32]
	count, blocks, rows, shift, digits ptx.Reg[uint32]
	keys                               ptx.Ptr[ptx.Global, uint32]
}

func sortBlockOf(k *ptx.Kernel) sortBlock {
	b := sortBlock{k: k, tid: k.Tid(ptx.X), block: k.Ctaid(ptx.X)}
	for _, p := range []struct {
		name string
		to   *ptx.Reg[uint32]
	}{{"count", &b.count}, {"blocks", &b.blocks}, {"rows", &b.rows}, {"shift", &b.shift}, {"digits", &b.digits}} {
		*p.to = ptx.Param[uint32](k, p.name)
	}
	b.keys = ptx.PointerParam[uint32](k, "keys")
	b.start = ptx.Mul(k, b.block, scalar.U32(sortThreads*sortRounds))
	b.end = ptx.Min(k, ptx.Add(k, b.start, scalar.U32(sortThreads*sortRounds)), b.count)
	return b
}

// digit is that of a key.
func (b sortBlock) digit(key ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := b.k
	own := ptx.And(k, ptx.Shr(k, key, b.shift), ptx.Sub(k, b.digits, scalar.U32(1)))
	return ptx.Select(k, ptx.Lt(k, key, b.rows), own, b.digits)
}

// tally counts the digits of the block's updates.
func (b sortBlock) tally(counters ptx.Ptr[ptx.Shared, uint32]) {
	k := b.k
	ptx.For(k, ptx.Add(k, b.start, b.tid), b.end, scalar.U32(sortThreads), func(i ptx.Reg[uint32]) {
		ptx.Reduce(k, ptx.OpAdd, ptx.At(k, counters, b.digit(ptx.Load(k, ptx.At(k, b.keys, i)))), scalar.U32(1))
	}, ptx.NoUnroll())
	k.Barrier()
}

// clearShared writes 0 to n words, by all threads of a block.
func clearShared(k *ptx.Kernel, p ptx.Ptr[ptx.Shared, uint32], n int) {
	ptx.For(k, k.Tid(ptx.X), scalar.U32(n), scalar.U32(sortThreads), func(i ptx.Reg[uint32]) { ptx.Store(k, ptx.At(k, p, i), scalar.U32(0)) }, ptx.NoUnroll())
	k.Barrier()
}

// sumUp is the sum of v of the block's threads up to each one, and that of all. shared has a word for each warp.
func sumUp(k *ptx.Kernel, v ptx.Reg[uint32], shared ptx.Ptr[ptx.Shared, uint32]) (upTo, all ptx.Reg[uint32]) {
	warp, lane := ptx.Shr(k, k.Tid(ptx.X), scalar.U32(5)), ptx.And(k, k.Tid(ptx.X), scalar.U32(31))
	sum := ptx.VarOf(k, v)
	for d := 1; d < 32; d *= 2 {
		other := ptx.Shuffle(k, ptx.ShuffleUp, sum.Get(), scalar.U32(d), 32, ptx.FullWarp())
		sum.Set(ptx.Add(k, sum.Get(), ptx.Select(k, ptx.Ge(k, lane, scalar.U32(d)), other, scalar.U32(0))))
	}
	k.When(ptx.Eq(k, lane, scalar.U32(31)), func() { ptx.Store(k, ptx.At(k, shared, warp), sum.Get()) })
	k.Barrier()
	before, total := ptx.VarOf(k, scalar.U32(0)), ptx.VarOf(k, scalar.U32(0))
	for j := range sortThreads / 32 {
		s := ptx.Load(k, shared.At(j))
		before.Set(ptx.Add(k, before.Get(), ptx.Select(k, ptx.Gt(k, warp, scalar.U32(j)), s, scalar.U32(0))))
		total.Set(ptx.Add(k, total.Get(), s))
	}
	k.Barrier()
	return ptx.Add(k, before.Get(), sum.Get()), total.Get()
}

var sortCount = kit.Register(kit.Kernel{Family: "scatter", Name: "sort_count", Block: [3]int{sortThreads, 1, 1},
	Doc: "counts[digit·blocks + block] = how many updates of the block have the digit in their key." + sortDoc + "u32* counts.",
	Build: func(k *ptx.Kernel) {
		b, counts := sortBlockOf(k), ptx.PointerParam[uint32](k, "counts")
		counters := ptx.SharedArray[uint32](k, "counters", sortDigits)
		clearShared(k, counters, sortDigits)
		b.tally(counters)
		ptx.For(k, b.tid, ptx.Add(k, b.digits, scalar.U32(1)), scalar.U32(sortThreads), func(d ptx.Reg[uint32]) {
			ptx.Store(k, ptx.At(k, counts, ptx.Mad(k, d, b.blocks, b.block)), ptx.Load(k, ptx.At(k, counters, d)))
		}, ptx.NoUnroll())
	}})

var sortScan = kit.Register(kit.Kernel{Family: "scatter", Name: "sort_scan", Block: [3]int{sortThreads, 1, 1},
	Doc: "Replaces the counts of a digit by the sums of those before them, and leaves the sum of all, by a block for each digit. " +
		"Parameters: u32 blocks, u32* counts, u32* totals.",
	Build: func(k *ptx.Kernel) {
		blocks := ptx.Param[uint32](k, "blocks")
		counts, totals := ptx.PointerParam[uint32](k, "counts"), ptx.PointerParam[uint32](k, "totals")
		shared := ptx.SharedArray[uint32](k, "of_warps", sortThreads/32)
		tid, digit := k.Tid(ptx.X), k.Ctaid(ptx.X)
		carry := ptx.VarOf(k, scalar.U32(0))
		ptx.For(k, scalar.U32(0), blocks, scalar.U32(sortThreads), func(first ptx.Reg[uint32]) {
			i := ptx.Add(k, first, tid)
			inside := ptx.Lt(k, i, blocks)
			at := ptx.At(k, counts, ptx.Mad(k, digit, blocks, i))
			v := ptx.LoadIf(k, inside, at, scalar.U32(0))
			sum, all := sumUp(k, v, shared)
			ptx.StoreIf(k, inside, at, ptx.Add(k, carry.Get(), ptx.Sub(k, sum, v)))
			carry.Set(ptx.Add(k, carry.Get(), all))
		}, ptx.NoUnroll())
		ptx.StoreIf(k, ptx.Eq(k, tid, scalar.U32(0)), ptx.At(k, totals, digit), carry.Get())
	}})

var sortPlace = kit.Register(kit.Kernel{Family: "scatter", Name: "sort_place", Block: [3]int{sortThreads, 1, 1},
	Doc: "Puts the updates in the order of a digit of their keys, those of one digit in the order that they have." + sortDoc +
		"u32 sorted (0: the updates are numbered as they lie), u32* order (their numbers), u32* counts (of blocks before each; not read " +
		"if there is one block), u32* totals (likewise), u32* keys_to, u32* order_to.",
	Build: func(k *ptx.Kernel) {
		b, sorted := sortBlockOf(k), ptx.Param[uint32](k, "sorted")
		order, counts, totals := ptx.PointerParam[uint32](k, "order"), ptx.PointerParam[uint32](k, "counts"), ptx.PointerParam[uint32](k, "totals")
		keysTo, orderTo := ptx.PointerParam[uint32](k, "keys_to"), ptx.PointerParam[uint32](k, "order_to")
		shared := ptx.SharedArray[uint32](k, "of_warps", sortThreads/32)
		next := ptx.SharedArray[uint32](k, "next", sortDigits)             // where the next update of each digit goes
		masks := ptx.SharedArray[uint32](k, "masks", sortDigits*sortMasks) // which threads have a digit
		clearShared(k, masks, sortDigits*sortMasks)
		several, own := ptx.Ne(k, b.blocks, scalar.U32(1)), ptx.Lt(k, b.tid, b.digits)
		both := ptx.And(k, several, own)
		before := func(ok ptx.Reg[bool], digit ptx.Reg[uint32]) ptx.Reg[uint32] {
			return ptx.LoadIf(k, ok, ptx.At(k, counts, ptx.Mad(k, digit, b.blocks, b.block)), scalar.U32(0))
		}
		total := ptx.VarOf(k, ptx.LoadIf(k, both, ptx.At(k, totals, b.tid), scalar.U32(0)))
		k.If(ptx.Not(k, several), func() {
			b.tally(masks)
			total.Set(ptx.LoadIf(k, own, ptx.At(k, masks, b.tid), scalar.U32(0)))
			k.Barrier()
			clearShared(k, masks, sortDigits)
		})
		sum, all := sumUp(k, total.Get(), shared)
		from := ptx.Add(k, before(both, b.tid), ptx.Sub(k, sum, total.Get()))
		k.When(own, func() { ptx.Store(k, ptx.At(k, next, b.tid), from) })
		none := before(several, b.digits)
		k.When(ptx.Eq(k, b.tid, scalar.U32(0)), func() { ptx.Store(k, ptx.At(k, next, b.digits), ptx.Add(k, none, all)) })
		word, bit := ptx.Shr(k, b.tid, scalar.U32(5)), ptx.Shl(k, scalar.U32(1), ptx.And(k, b.tid, scalar.U32(31)))
		lower := ptx.Sub(k, bit, scalar.U32(1))
		k.Barrier()
		ptx.For(k, b.start, b.end, scalar.U32(sortThreads), func(first ptx.Reg[uint32]) {
			i := ptx.Add(k, first, b.tid)
			inside := ptx.Lt(k, i, b.end)
			key := ptx.LoadIf(k, inside, ptx.At(k, b.keys, i), ptx.Imm(noRow))
			digit := b.digit(key)
			mask := ptx.At(k, masks, ptx.Mul(k, digit, scalar.U32(sortMasks)))
			mine := ptx.At(k, mask, word)
			k.When(inside, func() { ptx.Reduce(k, ptx.OpOr, mine, bit) })
			k.Barrier()
			same, earlier := ptx.VarOf(k, scalar.U32(0)), ptx.VarOf(k, scalar.U32(0)) // threads of that digit, and those before this one
			for w := range sortMasks {
				m := ptx.Load(k, mask.At(w))
				same.Set(ptx.Add(k, same.Get(), ptx.Popc(k, m)))
				seen := ptx.Select(k, ptx.Gt(k, word, scalar.U32(w)), ptx.FullWarp(), ptx.Select(k, ptx.Eq(k, word, scalar.U32(w)), lower, scalar.U32(0)))
				earlier.Set(ptx.Add(k, earlier.Get(), ptx.Popc(k, ptx.And(k, m, seen))))
			}
			alone := ptx.Eq(k, ptx.And(k, ptx.Load(k, mine), lower), scalar.U32(0)) // the first of its word
			goes := ptx.At(k, next, digit)
			k.If(inside, func() {
				at := ptx.Add(k, ptx.Load(k, goes), earlier.Get())
				ptx.Store(k, ptx.At(k, keysTo, at), key)
				ptx.Store(k, ptx.At(k, orderTo, at), ptx.LoadIf(k, ptx.Ne(k, sorted, scalar.U32(0)), ptx.At(k, order, i), i))
			})
			k.Barrier()
			k.When(ptx.And(k, inside, ptx.Eq(k, earlier.Get(), scalar.U32(0))), func() {
				ptx.Store(k, goes, ptx.Add(k, ptx.Load(k, goes), same.Get()))
			})
			k.When(ptx.And(k, inside, alone), func() { ptx.Store(k, mine, scalar.U32(0)) })
			k.Barrier()
		}, ptx.NoUnroll())
	}})

var segmentSum, segmentSum4 = segmentSumKernel("segment_sum", 1), segmentSumKernel("segment_sum_4", 4)

func segmentSumKernel(name string, unit int) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[key] += the rows of x of that key, where keys ascend; those beyond the rows of y do not count. The rows of x are cut " +
			"into pieces; a thread sums those of one key and piece. But for the last stage the sums of a piece's first and last key, which may " +
			"go on in other pieces, become two rows of the next stage's x. Parameters: u32 total (units of all threads), u32 width[] (units " +
			"of a row, as a divisor), u32 count (rows of x), u32 rows (of y), u32 span (rows of x that a thread looks at for where keys begin), u32 sorted (1: the rows of x lie in the order of keys), u32 last (stage), u32* keys, u32* order (where the " +
			"rows of x lie), f32* x, f32* y, u32* ends (the next stage's keys), f32* sums (its x).",
		Build: func(k *ptx.Kernel) {
			total := ptx.Param[uint32](k, "total")
			width := scalar.DivisorAt(k, ptx.ParamArray[uint32](k, "width", scalar.DivisorWords), 0)
			count, rows := ptx.Param[uint32](k, "count"), ptx.Param[uint32](k, "rows")
			span, sorted, last := ptx.Param[uint32](k, "span"), ptx.Param[uint32](k, "sorted"), ptx.Ne(k, ptx.Param[uint32](k, "last"), scalar.U32(0))
			keys, order := ptx.PointerParam[uint32](k, "keys"), ptx.PointerParam[uint32](k, "order")
			x, y := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit)), ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			ends, sums := ptx.PointerParam[uint32](k, "ends"), ptx.PointerParam[uint32](k, "sums", ptx.Align(4*unit))
			i := k.GlobalID(ptx.X)
			k.If(ptx.Lt(k, i, total), func() {
				part, col := width.Split(k, i)
				place := ptx.VarOf(k, ptx.Mul(k, part, span))
				stop := ptx.Min(k, ptx.Add(k, place.Get(), span), count)
				piece := ptx.Shr(k, place.Get(), scalar.U32(bits.TrailingZeros(segmentPiece)))
				begin := ptx.Mul(k, piece, scalar.U32(segmentPiece))
				end := ptx.Min(k, ptx.Add(k, begin, scalar.U32(segmentPiece)), count)
				slot := ptx.Shl(k, piece, scalar.U32(1))
				at := func(p ptx.Ptr[ptx.Global, uint32], row ptx.Reg[uint32]) ptx.Ptr[ptx.Global, uint32] {
					return unitAt(k, p, unit, ptx.Mad(k, row, width.D, col))
				}
				sum := make([]*ptx.Var[float32], unit)
				add := func(from ptx.Ptr[ptx.Global, uint32]) {
					for w, v := range scalar.LoadAll(k, from, unit) {
						sum[w].Set(ptx.Add(k, sum[w].Get(), ptx.Bitcast[float32](k, v)))
					}
				}
				store := func(to ptx.Ptr[ptx.Global, uint32]) {
					var words []ptx.Reg[uint32]
					for _, v := range sum {
						words = append(words, ptx.Bitcast[uint32](k, v.Get()))
					}
					scalar.StoreAll(k, to, words)
				}
				put := func(slot, key ptx.Reg[uint32]) {
					store(at(sums, slot))
					ptx.StoreIf(k, ptx.Eq(k, col, scalar.U32(0)), ptx.At(k, ends, slot), key)
				}
				k.While(func() ptx.Reg[bool] { return ptx.Lt(k, place.Get(), stop) }, func() {
					here := ptx.At(k, keys, place.Get())
					key, first := ptx.Load(k, here), ptx.Eq(k, place.Get(), begin)
					before := ptx.LoadIf(k, ptx.Not(k, first), here.At(-1), ptx.Not(k, key))
					k.If(ptx.Eq(k, before, key), func() { place.Set(ptx.Add(k, place.Get(), scalar.U32(1))) }, func() {
						counts, same := ptx.Lt(k, key, rows), ptx.VarOf(k, key)
						for w := range sum {
							sum[w] = ptx.VarOf(k, scalar.Num(0))
						}
						k.While(func() ptx.Reg[bool] { return ptx.Eq(k, same.Get(), key) }, func() {
							k.If(counts, func() {
								add(at(x, ptx.LoadIf(k, ptx.Eq(k, sorted, scalar.U32(0)), ptx.At(k, order, place.Get()), place.Get())))
							})
							place.Set(ptx.Add(k, place.Get(), scalar.U32(1)))
							same.Set(ptx.LoadIf(k, ptx.Lt(k, place.Get(), end), ptx.At(k, keys, place.Get()), ptx.Not(k, key)))
						})
						lasts := ptx.Eq(k, place.Get(), end)
						k.If(ptx.And(k, first, ptx.Not(k, last)), func() {
							put(slot, key)
							for _, v := range sum { // nothing is left if the key is the piece's last as well
								v.Set(scalar.Num(0))
							}
						})
						k.If(ptx.And(k, lasts, ptx.Not(k, last)), func() { put(ptx.Add(k, slot, scalar.U32(1)), key) }, func() {
							k.If(ptx.And(k, counts, ptx.Or(k, last, ptx.Not(k, first))), func() {
								to := at(y, key)
								add(to)
								store(to)
							})
						})
					})
				})
			})
		}})
}
