package lz4

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx"
)

type compressParams struct {
	Pages, Blocks, Sizes kit.Buffer `of:"u32"`
}

var lz4Compress = kit.Define(kit.Kernel{Family: "lz4", Name: "lz4_compress", Block: [3]int{catalogue.LZ4Lanes, 1, 1},
	Doc: "One block for each page of 4 KiB: what op.CompressLZ4 does."},
	func(k *ptx.Kernel, p *kit.Params, at *compressParams) {
		pages, blocks := kit.Ptr[uint32](p, &at.Pages, ptx.Align(16)), kit.Ptr[uint32](p, &at.Blocks, ptx.Align(16))
		sizes := kit.Ptr[uint32](p, &at.Sizes)
		z := &lz4Compressor{lz4Kernel: newLZ4(k, "page", "block"),
			table: ptx.SharedArray[uint32](k, "table", catalogue.LZ4Table, ptx.Align(16))}
		z.read(pages)
		zero := ptx.U32(0)
		z.quads(func(at ptx.Reg[uint32]) {
			z.table.At(at).Store4([4]ptx.Reg[uint32]{zero, zero, zero, zero})
		})
		z.size, z.anchor = ptx.VarOf(k, zero), ptx.VarOf(k, zero)
		z.sync()
		z.search()
		k.If(z.size.Get().Lt(catalogue.LZ4Page), func() {
			anchor := z.anchor.Get()
			z.sequence(anchor, ptx.U32(catalogue.LZ4Page).Sub(anchor), zero, zero, false)
		})
		z.sync()
		whole := z.size.Get().Ge(catalogue.LZ4Page)
		z.Write(blocks, whole)
		k.When(z.lane.Eq(zero), func() {
			sizes.At(k.Ctaid(ptx.X)).Store(z.size.Get().Min(catalogue.LZ4Page))
		})
	})

// lz4Compressor is the kernel under construction. All but lane is the same in all lanes.
type lz4Compressor struct {
	*lz4Kernel
	table        ptx.Ptr[ptx.Shared, uint32] // for each hash the last position, plus 1
	size, anchor *ptx.Var[uint32]            // of what is made; where the literals begin that are not yet
}

// word is the four bytes at a position below the last four.
func (z *lz4Compressor) word(at ptx.Reg[uint32]) ptx.Reg[uint32] {
	p := z.from.At(at.Shr(2))
	return p.Load().ShfR(p.At(1).Load(), at.Shl(3), false) // counts modulo 32
}

// slot is the entry of the table for four bytes.
func (z *lz4Compressor) slot(word ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, uint32] {
	hash := word.Mul(catalogue.LZ4Hash).Shr(catalogue.LZ4Shift)
	return z.table.At(hash)
}

// enter enters a position: of several at once the last one stays.
func (z *lz4Compressor) enter(ok ptx.Reg[bool], slot ptx.Ptr[ptx.Shared, uint32], at ptx.Reg[uint32]) {
	z.k.If(ok, func() { slot.Reduce(ptx.OpMax, at.Add(1)) })
}

// search writes all sequences but the last.
func (z *lz4Compressor) search() {
	k, all := z.k, ptx.FullWarp()
	at := ptx.VarOf(k, ptx.U32(0))
	k.While(func() ptx.Reg[bool] { return at.Get().Le(catalogue.LZ4Last) }, func() {
		begin := at.Get().Copy()
		p := begin.Add(z.lane)
		active := p.Le(catalogue.LZ4Last)
		p = p.Min(catalogue.LZ4Last)
		word := z.word(p)
		slot := z.slot(word)
		seen := slot.Load()
		known, inner := seen.Ne(0), p.Ne(0)
		q := ptx.Select(known, seen.Sub(1), 0)
		before := ptx.Select(inner, p.Sub(1), 0)
		known = known.And(z.word(q).Eq(word))
		run := inner.And(z.word(before).Eq(word))
		q = ptx.Select(known, q, before)
		hits := k.Ballot(active.And(known.Or(run)), all)
		first := lowest(k, hits)
		z.sync()
		z.enter(active.And(z.lane.Le(first)), slot, p)
		z.sync()
		k.If(hits.Eq(0), func() { at.Set(begin.Add(catalogue.LZ4Lanes)) }, func() {
			p := begin.Add(first)
			q := q.Shuffle(ptx.ShuffleIndex, first, 32, all)
			n := z.match(p, q)
			anchor := z.anchor.Get()
			z.sequence(anchor, p.Sub(anchor), p.Sub(q), n, true)
			end := p.Add(n)
			at.Set(end)
			z.anchor.Set(end)
			k.If(z.size.Get().Ge(catalogue.LZ4Page), func() { k.Break() })
			// The last positions inside the match; end is more than LZ4Lanes wherever there are so many.
			least := p.Add(1)
			i := ptx.Bitcast[int32](least).Max(ptx.Bitcast[int32](end.Sub(catalogue.LZ4Lanes)))
			inside := ptx.Bitcast[uint32](i).Add(z.lane)
			ok := inside.Lt(end).And(inside.Le(catalogue.LZ4Last))
			inside = inside.Min(catalogue.LZ4Last)
			z.enter(ok, z.slot(z.word(inside)), inside)
			z.sync()
		})
	})
}

// match is the length of the match at p with what begins at q: each lane compares four bytes of 128.
func (z *lz4Compressor) match(p, q ptx.Reg[uint32]) ptx.Reg[uint32] {
	k, all := z.k, ptx.FullWarp()
	distance := p.Sub(q)
	n := ptx.VarOf(k, ptx.U32(4))
	k.Loop(func() {
		at := p.Add(n.Get()).Add(z.lane.Shl(2))
		inside := at.Lt(catalogue.LZ4End)
		at = at.Min(catalogue.LZ4End) // the last one whose word can be read
		differ := z.word(at).Xor(z.word(at.Sub(distance)))
		equal := ptx.Select(inside, lowest(k, differ).Shr(3).Min(4), 0)
		ends := k.Ballot(equal.Lt(4), all)
		some := ends.Ne(0)
		last := lowest(k, ends) // 32 if all are equal
		rest := equal.Shuffle(ptx.ShuffleIndex, last.And(31), 32, all)
		rest = ptx.Select(some, rest, 0)
		n.Set(last.Mad(4, rest).Add(n.Get()))
		k.BreakIf(some)
	})
	return n.Get().Min(ptx.U32(catalogue.LZ4End).Sub(p))
}

// more is the number of bytes after the token that a length takes.
func (z *lz4Compressor) more(n ptx.Reg[uint32]) ptx.Reg[uint32] {
	bytes := n.Sub(15).Div(255).Add(1)
	return ptx.Select(n.Lt(15), ptx.U32(0), bytes)
}

// length writes the bytes of a length after the token.
func (z *lz4Compressor) length(at, n, more ptx.Reg[uint32]) {
	k := z.k
	k.If(z.lane.Lt(more), func() {
		last := z.lane.Add(1).Eq(more)
		full := z.lane.Mul(255)
		z.put(at.Add(z.lane), ptx.Select(last, n.Sub(15).Sub(full), 255))
	})
}

// sequence writes literals from anchor on and, unless it is the last, a match. Where the block would get too large it only
// counts.
func (z *lz4Compressor) sequence(anchor, literals, offset, match ptx.Reg[uint32], matches bool) {
	k := z.k
	begin := z.size.Get().Copy()
	moreLiterals := z.more(literals)
	at := begin.Add(1).Add(moreLiterals) // of the literals
	afterLiterals := at.Add(literals)
	total := afterLiterals
	token := literals.Min(15).Shl(4)
	var rest, moreMatch ptx.Reg[uint32]
	if matches {
		rest = match.Sub(4)
		moreMatch = z.more(rest)
		total = afterLiterals.Add(2).Add(moreMatch)
		token = token.Or(rest.Min(15))
	}
	z.size.Set(total)
	k.If(total.Lt(catalogue.LZ4Page), func() {
		k.If(z.lane.Eq(0), func() { z.put(begin, token) })
		z.length(begin.Add(1), literals, moreLiterals)
		ptx.For(k, z.lane, literals, catalogue.LZ4Lanes, func(i ptx.Reg[uint32]) {
			z.put(at.Add(i), z.Load(z.from, anchor.Add(i)))
		}, ptx.NoUnroll())
		if matches {
			k.If(z.lane.Lt(2), func() {
				z.put(afterLiterals.Add(z.lane), offset.Shr(z.lane.Shl(3)))
			})
			z.length(afterLiterals.Add(2), rest, moreMatch)
		}
	})
	z.sync()
}
