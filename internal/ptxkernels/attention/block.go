package attention

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// attentionSizes are the parameters that the kernels of attention have in common.
type attentionSizes struct {
	N, Heads, Width int `array:"sizes"` // Heads of queries, Width elements of a head
	Capacity        int // keys of a sequence at most
	Rows            int // of queries that share a head of keys
	Causal, Window  int // Window is 0 for none
	Lengths         int // 1 if there are some
	Ring            int // whether lengths beyond the capacity mean a ring
	Vector          int // whether rows may be accessed by 16 bytes
	Half            int // what q and y are: 0 f32, 1 f16, 2 bf16
	Direct          int // whether the result is written at once: one part, f32. By tiles: whether lse is wanted
	Log             int // of the lanes of a row: 3 to 5
	Tile            int // of keys. On tensor cores: bytes from a key to the next
	Table, Pages    int // entries of a sequence, 0 without pages. On tensor cores Table is the bits of a last factor of scores
	Tiles, Parts    scalar.Divide
	KVHeads, Group  scalar.Divide
	Page            scalar.Divide // keys of a page
}

// sequence is what all kernels know of one.
type sequence struct {
	scalar.Math
	*kit.Params
	at *attentionSizes
}

func (f sequence) signed(field *int) ptx.Reg[int32]            { return ptx.Bitcast[int32](f.U32(field)) }
func (f sequence) flag(field *int) ptx.Reg[bool]               { return f.U32(field).Ne(0) }
func unsigned(k *ptx.Kernel, x ptx.Reg[int32]) ptx.Reg[uint32] { return ptx.Bitcast[uint32](x) }

// length is the keys of sequence b, also those that have been overwritten; inUse those that are there.
func (f sequence) length(lengths ptx.Ptr[ptx.Global, int32], b ptx.Reg[uint32]) ptx.Reg[int32] {
	return ptx.LoadIf(f.flag(&f.at.Lengths), lengths.At(b), f.signed(&f.at.Capacity)).Max(0)
}

func (f sequence) inUse(length ptx.Reg[int32]) ptx.Reg[int32] {
	return length.Min(f.signed(&f.at.Capacity))
}

// oldest is the slot of the oldest key in use.
func (f sequence) oldest(length ptx.Reg[int32]) ptx.Reg[uint32] {
	k, capacity := f.K, f.signed(&f.at.Capacity)
	start := ptx.VarOf(k, ptx.U32(0))
	k.If(f.flag(&f.at.Ring).And(length.Gt(capacity)), func() {
		start.Set(unsigned(k, length).Rem(unsigned(k, capacity)))
	})
	return start.Get()
}

// position is where query i stands among the keys in use.
func (f sequence) position(i, used ptx.Reg[int32]) ptx.Reg[int32] {
	return used.Sub(f.signed(&f.at.N)).Add(i)
}

// rowPosition is the position of the query of row r, of those that share a head of keys.
func (f sequence) rowPosition(r ptx.Reg[uint32], used ptx.Reg[int32]) ptx.Reg[int32] {
	return f.position(ptx.Bitcast[int32](f.Quotient(&f.at.Group, r)), used)
}

// queryOf is the query of row r, of those that share a head of keys, and its head.
func (f sequence) queryOf(r, keyHead ptx.Reg[uint32]) (i, head ptx.Reg[uint32]) {
	group := f.Divisor(&f.at.Group)
	i, g := group.Split(f.K, r)
	return i, keyHead.Mad(group.D, g)
}

// queryRow is where that query's row stands in q and in the result.
func (f sequence) queryRow(batch, i, head ptx.Reg[uint32]) ptx.Reg[uint32] {
	return batch.Mad(f.U32(&f.at.N), i).Mad(f.U32(&f.at.Heads), head)
}

// seenFrom and seenTo are the keys that the query at position p sees.
func (f sequence) seenFrom(p ptx.Reg[int32]) ptx.Reg[uint32] {
	k := f.K
	oldest := p.Max(0).Sub(f.signed(&f.at.Window)).Add(1)
	return unsigned(k, ptx.Select(f.flag(&f.at.Window), oldest.Max(0), 0))
}

func (f sequence) seenTo(p, used ptx.Reg[int32]) ptx.Reg[uint32] {
	k, window := f.K, f.signed(&f.at.Window)
	to := ptx.Select(f.flag(&f.at.Causal), used.Min(p.Add(1)), used)
	ahead := p.Min(used.Sub(window)).Add(window) // p + window without overflow
	to = ptx.Select(f.flag(&f.at.Window), to.Min(ahead), to)
	return unsigned(k, to.Max(0))
}

// partsOf says how the keys that queries see are cut: count of them, the last ones in use, chunk to a part.
func (f sequence) partsOf(used ptx.Reg[int32]) (count, chunk ptx.Reg[uint32]) {
	k := f.K
	from := f.seenFrom(f.position(scalar.S32(0), used))
	count = unsigned(k, used).Sub(from)
	parts, tile := f.Divided(&f.at.Parts), f.U32(&f.at.Tile)
	each := f.Quotient(&f.at.Parts, count.Add(parts.Sub(1)))
	less := tile.Sub(1) // a power of two, less one
	return count, each.Add(less).And(less.Not()).Max(tile)
}

// block is what a block of any attention has to do: rows of queries, of all heads that share a head of keys, and which keys they see.
type block struct {
	sequence
	scale, cap         scalar.Float // of scores
	lengths            ptx.Ptr[ptx.Global, int32]
	batch, head, first ptx.Reg[uint32] // head of keys, first row
	used               ptx.Reg[int32]
	front              ptx.Reg[uint32] // slot of the oldest key
	from, to           ptx.Reg[uint32] // keys of the block
}

func newBlock(p *kit.Params, at *attentionSizes, scale, softCap *float32) block {
	return block{sequence: sequence{scalar.Math{K: p.Kernel}, p, at}, scale: kit.Read(p, scale), cap: kit.Read(p, softCap)}
}

// find finds out what there is of a sequence.
func (b *block) find(batch, head ptx.Reg[uint32]) {
	b.batch, b.head = batch, head
	length := b.length(b.lengths, batch)
	b.used, b.front = b.inUse(length), b.oldest(length)
}

// slot is where key t of those in use lies in its sequence's ring, of that capacity.
func (b *block) slot(t, capacity ptx.Reg[uint32]) ptx.Reg[uint32] {
	slot := b.front.Add(t)
	return slot.Sub(ptx.Select(slot.Ge(capacity), capacity, 0))
}

// Place finds out what a block of so many rows is to do.
func (b *block) Place(rows int) {
	k := b.K
	tiles := b.Divisor(&b.at.Tiles)
	rest, tile := tiles.Split(k, k.Ctaid(ptx.X))
	tile = tiles.D.Sub(1).Sub(tile) // with causal masks those are the longest
	b.find(b.Divisor(&b.at.KVHeads).Split(k, rest))
	b.first = tile.Mul(rows)
	b.from = b.seenFrom(b.rowPosition(b.first, b.used))
	b.to = b.seenTo(b.rowPosition(b.last(rows), b.used), b.used)
}

// last is the last row of the block.
func (b *block) last(rows int) ptx.Reg[uint32] {
	return b.first.Add(rows).Min(b.U32(&b.at.Rows)).Sub(1)
}

// rowAt is row r of the block among those that share the head of keys, and among all of q.
func (b *block) rowAt(r ptx.Reg[uint32]) (number, row ptx.Reg[uint32]) {
	r = b.first.Add(r)
	i, head := b.queryOf(r, b.head)
	return r, b.queryRow(b.batch, i, head)
}

func maximum(x, y scalar.Float) scalar.Float { return x.Max(y) }

// largest is the maximum of scores.
func largest(x []scalar.Float) scalar.Float {
	m := x[0]
	for _, v := range x[1:] {
		m = m.Max(v)
	}
	return m
}

// storeLSE writes the logarithm of the sum of what row r of the block saw: of sum·2^best, if that is not none.
func (b *block) storeLSE(lse ptx.Ptr[ptx.Global, float32], r ptx.Reg[uint32], best, sum scalar.Float, none ptx.Reg[bool]) {
	i, head := b.queryOf(b.first.Add(r), b.head)
	heads := b.batch.Mad(b.U32(&b.at.Heads), head)
	log := best.Add(sum.Lg2(ptx.Approx)).Mul(math.Ln2)
	lse.At(heads.Mad(b.U32(&b.at.N), i)).Store(b.Where(none, ptx.F32(math.Inf(-1)), log))
}
