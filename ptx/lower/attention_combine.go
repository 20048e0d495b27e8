package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// buildDecodeCombine joins partial attentions: with the greatest maximum M, the sum is Σ sumᵢ·2^(maxᵢ−M), the result
// Σ accumulatorᵢ·2^(maxᵢ−M) over that.
func buildDecodeCombine(k *ptx.Kernel) {
	f := decodeFrame{calc{k}, ptx.ParamArray[uint32](k, "sizes", decodeSizes)}
	total := ptx.Param[uint32](k, "total")
	counts := ptx.ParamArray[uint32](k, "counts", 2*divisorWords)
	lengths := ptx.PointerParam[int32](k, "lengths")
	pairs := ptx.PointerParam[float32](k, "pairs")
	partial := ptx.PointerParam[float32](k, "partial")
	y := ptx.PointerParam[float32](k, "y")

	lane := ptx.And(k, k.Tid(ptx.X), u32(31))
	row := ptx.Mad(k, k.Ctaid(ptx.X), u32(decodeWarps), ptx.Shr(k, k.Tid(ptx.X), u32(5)))
	k.ReturnIf(ptx.Ge(k, row, total)) // whole warps
	token, head := divisorAt(k, counts, 0).split(k, row)
	batch, i := divisorAt(k, counts, divisorWords).split(k, token)
	group := f.divisor(sizeGroup)
	kvhead, g := group.split(k, head)
	parts, rows, width := f.size(sizeParts), f.size(sizeRows), f.size(sizeWidth)
	count, chunk := f.partsOf(f.inUse(f.length(lengths, batch)))

	unit := ptx.Mul(k, ptx.Mad(k, batch, f.size(sizeKVHeads), kvhead), parts)
	first := ptx.Mad(k, unit, rows, ptx.Mad(k, i, group.d, g))
	// partAt is the pair of a part, or that of nothing where it is behind the last key.
	partAt := func(part ptx.Reg[uint32]) (live ptx.Reg[bool], at ptx.Reg[uint32]) {
		start := ptx.MulWideU32(k, part, chunk)
		return ptx.Lt(k, start, ptx.Convert[uint64](k, count)), ptx.Mad(k, part, rows, first)
	}
	pairAt := func(at ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
		return ptx.At(k, pairs, ptx.MulWideU32(k, at, u32(2)))
	}
	best := ptx.VarOf(k, num(math.Inf(-1)))
	ptx.For(k, lane, parts, u32(32), func(part ptx.Reg[uint32]) {
		live, at := partAt(part)
		best.Set(f.max(best.Get(), ptx.LoadIf(k, live, pairAt(at), num(math.Inf(-1)))))
	}, ptx.NoUnroll())
	exchange := func(x float, d int) float {
		return ptx.Shuffle(k, ptx.ShuffleXor, x, u32(d), 32, ptx.FullWarp())
	}
	for d := 16; d > 0; d /= 2 {
		best.Set(f.max(best.Get(), exchange(best.Get(), d)))
	}
	base := f.where(ptx.Eq(k, best.Get(), num(math.Inf(-1))), num(0), best.Get())
	sum := ptx.VarOf(k, num(0))
	acc := variablesOf(k, constants(make([]float32, decodeWidth/32)))
	ptx.For(k, u32(0), parts, u32(1), func(part ptx.Reg[uint32]) {
		live, at := partAt(part)
		k.BreakUnless(live)
		pair := ptx.Load2(k, pairAt(at))
		weight := f.exp2(f.sub(pair[0], base))
		sum.Set(f.fma(weight, pair[1], sum.Get()))
		from := ptx.At(k, partial, ptx.MadWideU32(k, at, width, ptx.Convert[uint64](k, lane)))
		for j, a := range acc {
			inside := ptx.Lt(k, ptx.Add(k, lane, u32(32*j)), width)
			a.Set(f.fma(weight, ptx.LoadIf(k, inside, from.At(32*j), num(0)), a.Get()))
		}
	}, ptx.UnrollBy(2))
	// Without any key the sum is 0, and so is the accumulator.
	scale := ptx.Rcp(k, f.where(ptx.Eq(k, sum.Get(), num(0)), num(1), sum.Get()))
	out := ptx.Mad(k, row, width, lane)
	half := f.size(sizeHalf)
	for j, a := range acc {
		x := f.mul(a.Get(), scale)
		at := ptx.Add(k, out, u32(32*j))
		k.If(ptx.Lt(k, ptx.Add(k, lane, u32(32*j)), width), func() {
			k.If(ptx.Eq(k, half, u32(0)), func() { ptx.Store(k, ptx.At(k, y, at), x) }, func() {
				k.If(ptx.Eq(k, half, u32(1)), func() {
					ptx.Store(k, ptx.At(k, ptx.Cast[ptx.F16](y), at), ptx.Convert[ptx.F16](k, x))
				}, func() { ptx.Store(k, ptx.At(k, ptx.Cast[uint16](y), at), roundBF16(k, x)) })
			})
		})
	}
}
