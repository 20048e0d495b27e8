package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/softmax"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// buildDecodeCombine joins partial attentions: with the greatest maximum M, the sum is Σ sumᵢ·2^(maxᵢ−M), the result
// Σ accumulatorᵢ·2^(maxᵢ−M) over that.
func buildDecodeCombine(k *ptx.Kernel, p *kit.Params, of *combineParams) {
	f := sequence{scalar.Math{K: k}, p, &of.attentionSizes}
	total, lengths := kit.Read(p, &of.Total), kit.Ptr[int32](p, &of.Lengths)
	pairs, partial, y := kit.Ptr[float32](p, &of.Pairs), kit.Ptr[float32](p, &of.Partial), kit.Ptr[float32](p, &of.Y)

	lane := k.Tid(ptx.X).And(31)
	row := k.Ctaid(ptx.X).Mad(decodeWarps, k.Tid(ptx.X).Shr(5))
	k.ReturnIf(row.Ge(total)) // whole warps
	token, head := p.Divisor(&of.Heads).Split(k, row)
	batch, i := p.Divisor(&of.N).Split(k, token)
	group := f.Divisor(&f.at.Group)
	kvhead, g := group.Split(k, head)
	parts, rows, width := f.Divided(&f.at.Parts), f.U32(&f.at.Rows), f.U32(&f.at.Width)
	count, chunk := f.partsOf(f.inUse(f.length(lengths, batch)))

	unit := batch.Mad(f.Divided(&f.at.KVHeads), kvhead).Mul(parts)
	first := unit.Mad(rows, i.Mad(group.D, g))
	// partAt is the pair of a part, or that of nothing where it is after the last key.
	partAt := func(part ptx.Reg[uint32]) (live ptx.Reg[bool], at ptx.Reg[uint32]) {
		start := part.MulWide(chunk)
		return start.Lt(ptx.Convert[uint64](count)), part.Mad(rows, first)
	}
	pairAt := func(at ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
		return pairs.At(at.MulWide(2))
	}
	online := softmax.OfScores(k, f.Exp2)
	best := ptx.VarOf(k, ptx.F32(math.Inf(-1)))
	ptx.For(k, lane, parts, 32, func(part ptx.Reg[uint32]) {
		live, at := partAt(part)
		best.Set(best.Get().Max(ptx.LoadIf(live, pairAt(at), math.Inf(-1))))
	}, ptx.NoUnroll())
	base := online.Base(threadgroup.WarpReduce(best.Get(), 32, maximum))
	sum := ptx.VarOf(k, ptx.F32(0))
	acc := scalar.Zeros(k, decodeWidth/32)
	ptx.For(k, 0, parts, 1, func(part ptx.Reg[uint32]) {
		live, at := partAt(part)
		k.BreakUnless(live)
		pair := pairAt(at).Load2()
		weight := online.Exp(pair[0], base)
		sum.Set(weight.Fma(pair[1], sum.Get()))
		from := partial.At(at.MadWide(width, ptx.Convert[uint64](lane)))
		for j, a := range acc {
			inside := lane.Add(32 * j).Lt(width)
			a.Set(weight.Fma(ptx.LoadIf(inside, from.At(32*j), 0), a.Get()))
		}
	}, ptx.Unroll(2))
	// Without any key the sum is 0, and so is the accumulator.
	scale, _ := online.Finish(sum.Get())
	out := row.Mad(width, lane)
	half := f.U32(&f.at.Half)
	for j, a := range acc {
		x := a.Get().Mul(scale)
		at := out.Add(32 * j)
		k.If(lane.Add(32*j).Lt(width), func() {
			k.If(half.Eq(0), func() { y.At(at).Store(x) }, func() {
				k.If(half.Eq(1), func() {
					ptx.Cast[ptx.F16](y).At(at).Store(ptx.Convert[ptx.F16](x))
				}, func() { ptx.Cast[uint16](y).At(at).Store(scalar.RoundBF16(k, x)) })
			})
		})
	}
}
