package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// flashBlock is what a block of an attention by tiles has to do: rows of queries, of all heads that share a head of keys.
type flashBlock struct {
	decodeFrame
	batch, head, first ptx.Reg[uint32] // head of keys, first row
	used               ptx.Reg[int32]
	front              ptx.Reg[uint32] // slot of the oldest key
	from, to           ptx.Reg[uint32] // keys of the block
}

func newFlashBlock(p *kit.Params, at *attentionSizes) flashBlock {
	return flashBlock{decodeFrame: decodeFrame{scalar.Math{K: p.Kernel}, p, at}}
}

// Place finds out what a block of so many rows is to do.
func (b *flashBlock) Place(lengths ptx.Ptr[ptx.Global, int32], rows int) {
	k := b.K
	tiles := b.Divisor(&b.at.Tiles)
	rest, tile := tiles.Split(k, k.Ctaid(ptx.X))
	tile = tiles.D.Sub(1).Sub(tile) // with causal masks those are the longest
	b.batch, b.head = b.Divisor(&b.at.KVHeads).Split(k, rest)
	length := b.length(lengths, b.batch)
	b.used, b.front = b.inUse(length), b.oldest(length)
	b.first = tile.Mul(rows)
	b.from = b.seenFrom(b.rowPosition(b.first, b.used))
	b.to = b.seenTo(b.rowPosition(b.last(rows), b.used), b.used)
}

// last is the last row of the block.
func (b *flashBlock) last(rows int) ptx.Reg[uint32] {
	return b.first.Add(rows).Min(b.U32(&b.at.Rows)).Sub(1)
}

// rowAt is row r of the block among those that share the head of keys, and among all of q.
func (b *flashBlock) rowAt(r ptx.Reg[uint32]) (number, row ptx.Reg[uint32]) {
	r = b.first.Add(r)
	i, head := b.queryOf(r, b.head)
	return r, b.queryRow(b.batch, i, head)
}

func maximum(x, y scalar.Float) scalar.Float { return x.Max(y) }
func plus(x, y scalar.Float) scalar.Float    { return x.Add(y) }

// largest is the maximum of scores.
func largest(x []scalar.Float) scalar.Float {
	m := x[0]
	for _, v := range x[1:] {
		m = m.Max(v)
	}
	return m
}

// storeLSE writes the logarithm of the sum of what row r of the block saw: of sum·2^best, if that is not none.
func (b *flashBlock) storeLSE(lse ptx.Ptr[ptx.Global, float32], r ptx.Reg[uint32], best, sum scalar.Float, none ptx.Reg[bool]) {
	i, head := b.queryOf(b.first.Add(r), b.head)
	heads := b.batch.Mad(b.U32(&b.at.Heads), head)
	log := best.Add(sum.Lg2(ptx.Approx)).Mul(math.Ln2)
	lse.At(heads.Mad(b.U32(&b.at.N), i)).Store(b.Where(none, ptx.F32(math.Inf(-1)), log))
}
