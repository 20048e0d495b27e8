package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// buildDecodeCombine joins partial attentions: with the greatest maximum M, the sum is Σ sumᵢ·2^(maxᵢ−M), the result
// Σ accumulatorᵢ·2^(maxᵢ−M) over that.
func buildDecodeCombine(k *ptx.Kernel) {
	f := decodeFrame{scalar.Math{K: k}, ptx.ParamArray[uint32](k, "sizes", decodeSizes)}
	total := ptx.Param[uint32](k, "total")
	counts := ptx.ParamArray[uint32](k, "counts", 2*scalar.DivisorWords)
	lengths := ptx.PointerParam[int32](k, "lengths")
	pairs := ptx.PointerParam[float32](k, "pairs")
	partial := ptx.PointerParam[float32](k, "partial")
	y := ptx.PointerParam[float32](k, "y")

	lane := ptx.And(k, k.Tid(ptx.X), scalar.U32(31))
	row := ptx.Mad(k, k.Ctaid(ptx.X), scalar.U32(decodeWarps), ptx.Shr(k, k.Tid(ptx.X), scalar.U32(5)))
	k.ReturnIf(ptx.Ge(k, row, total)) // whole warps
	token, head := scalar.DivisorAt(k, counts, 0).Split(k, row)
	batch, i := scalar.DivisorAt(k, counts, scalar.DivisorWords).Split(k, token)
	group := f.divisor(sizeGroup)
	kvhead, g := group.Split(k, head)
	parts, rows, width := f.size(sizeParts), f.size(sizeRows), f.size(sizeWidth)
	count, chunk := f.partsOf(f.inUse(f.length(lengths, batch)))

	unit := ptx.Mul(k, ptx.Mad(k, batch, f.size(sizeKVHeads), kvhead), parts)
	first := ptx.Mad(k, unit, rows, ptx.Mad(k, i, group.D, g))
	// partAt is the pair of a part, or that of nothing where it is behind the last key.
	partAt := func(part ptx.Reg[uint32]) (live ptx.Reg[bool], at ptx.Reg[uint32]) {
		start := ptx.MulWideU32(k, part, chunk)
		return ptx.Lt(k, start, ptx.Convert[uint64](k, count)), ptx.Mad(k, part, rows, first)
	}
	pairAt := func(at ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
		return ptx.At(k, pairs, ptx.MulWideU32(k, at, scalar.U32(2)))
	}
	best := ptx.VarOf(k, scalar.Num(math.Inf(-1)))
	ptx.For(k, lane, parts, scalar.U32(32), func(part ptx.Reg[uint32]) {
		live, at := partAt(part)
		best.Set(f.Max(best.Get(), ptx.LoadIf(k, live, pairAt(at), scalar.Num(math.Inf(-1)))))
	}, ptx.NoUnroll())
	exchange := func(x scalar.Float, d int) scalar.Float {
		return ptx.Shuffle(k, ptx.ShuffleXor, x, scalar.U32(d), 32, ptx.FullWarp())
	}
	for d := 16; d > 0; d /= 2 {
		best.Set(f.Max(best.Get(), exchange(best.Get(), d)))
	}
	base := f.Where(ptx.Eq(k, best.Get(), scalar.Num(math.Inf(-1))), scalar.Num(0), best.Get())
	sum := ptx.VarOf(k, scalar.Num(0))
	acc := scalar.VariablesOf(k, scalar.Constants(make([]float32, decodeWidth/32)))
	ptx.For(k, scalar.U32(0), parts, scalar.U32(1), func(part ptx.Reg[uint32]) {
		live, at := partAt(part)
		k.BreakUnless(live)
		pair := ptx.Load2(k, pairAt(at))
		weight := f.Exp2(f.Sub(pair[0], base))
		sum.Set(f.Fma(weight, pair[1], sum.Get()))
		from := ptx.At(k, partial, ptx.MadWideU32(k, at, width, ptx.Convert[uint64](k, lane)))
		for j, a := range acc {
			inside := ptx.Lt(k, ptx.Add(k, lane, scalar.U32(32*j)), width)
			a.Set(f.Fma(weight, ptx.LoadIf(k, inside, from.At(32*j), scalar.Num(0)), a.Get()))
		}
	}, ptx.UnrollBy(2))
	// Without any key the sum is 0, and so is the accumulator.
	scale := ptx.Rcp(k, f.Where(ptx.Eq(k, sum.Get(), scalar.Num(0)), scalar.Num(1), sum.Get()))
	out := ptx.Mad(k, row, width, lane)
	half := f.size(sizeHalf)
	for j, a := range acc {
		x := f.Mul(a.Get(), scale)
		at := ptx.Add(k, out, scalar.U32(32*j))
		k.If(ptx.Lt(k, ptx.Add(k, lane, scalar.U32(32*j)), width), func() {
			k.If(ptx.Eq(k, half, scalar.U32(0)), func() { ptx.Store(k, ptx.At(k, y, at), x) }, func() {
				k.If(ptx.Eq(k, half, scalar.U32(1)), func() {
					ptx.Store(k, ptx.At(k, ptx.Cast[ptx.F16](y), at), ptx.Convert[ptx.F16](k, x))
				}, func() { ptx.Store(k, ptx.At(k, ptx.Cast[uint16](y), at), scalar.RoundBF16(k, x)) })
			})
		})
	}
}
