package lz4

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

var lz4Compress = kit.Register(kit.Kernel{Family: "lz4", Name: "lz4_compress", Block: [3]int{catalogue.LZ4Lanes, 1, 1},
	Doc: "One block for each page of 4 KiB: what op.CompressLZ4 does. Parameters: u32* pages, u32* blocks, u32* sizes.",
	Build: func(k *ptx.Kernel) {
		pages, blocks := ptx.PointerParam[uint32](k, "pages", ptx.Align(16)), ptx.PointerParam[uint32](k, "blocks", ptx.Align(16))
		sizes := ptx.PointerParam[uint32](k, "sizes")
		z := &lz4Compressor{lz4Kernel: newLZ4(k, "page", "block"),
			table: ptx.SharedArray[uint32](k, "table", catalogue.LZ4Table, ptx.Align(16))}
		z.read(pages)
		zero := scalar.U32(0)
		z.quads(func(at ptx.Reg[uint32]) {
			ptx.Store4(k, ptx.At(k, z.table, at), [4]ptx.Reg[uint32]{zero, zero, zero, zero})
		})
		z.size, z.anchor = ptx.VarOf(k, zero), ptx.VarOf(k, zero)
		z.sync()
		z.search()
		k.If(ptx.Lt(k, z.size.Get(), scalar.U32(catalogue.LZ4Page)), func() {
			anchor := z.anchor.Get()
			z.sequence(anchor, ptx.Sub(k, scalar.U32(catalogue.LZ4Page), anchor), zero, zero, false)
		})
		z.sync()
		whole := ptx.Ge(k, z.size.Get(), scalar.U32(catalogue.LZ4Page))
		z.Write(blocks, whole)
		k.When(ptx.Eq(k, z.lane, zero), func() {
			ptx.Store(k, ptx.At(k, sizes, k.Ctaid(ptx.X)), ptx.Min(k, z.size.Get(), scalar.U32(catalogue.LZ4Page)))
		})
	}})

// lz4Compressor is the kernel under construction. All but lane is the same in all lanes.
type lz4Compressor struct {
	*lz4Kernel
	table        ptx.Ptr[ptx.Shared, uint32] // for each hash the last position, plus 1
	size, anchor *ptx.Var[uint32]            // of what is made; where the literals begin that are not yet
}

// word is the four bytes at a position below the last four.
func (z *lz4Compressor) word(at ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := z.k
	p := ptx.At(k, z.from, ptx.Shr(k, at, scalar.U32(2)))
	return ptx.ShfR(k, ptx.Load(k, p), ptx.Load(k, p.At(1)), ptx.Shl(k, at, scalar.U32(3)), false) // counts modulo 32
}

// slot is the entry of the table for four bytes.
func (z *lz4Compressor) slot(word ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, uint32] {
	hash := ptx.Shr(z.k, ptx.Mul(z.k, word, ptx.Imm(uint32(catalogue.LZ4Hash))), scalar.U32(catalogue.LZ4Shift))
	return ptx.At(z.k, z.table, hash)
}

// enter enters a position: of several at once the last one stays.
func (z *lz4Compressor) enter(ok ptx.Reg[bool], slot ptx.Ptr[ptx.Shared, uint32], at ptx.Reg[uint32]) {
	z.k.If(ok, func() { ptx.Reduce(z.k, ptx.OpMax, slot, ptx.Add(z.k, at, scalar.U32(1))) })
}

// search writes all sequences but the last.
func (z *lz4Compressor) search() {
	k, all := z.k, ptx.FullWarp()
	at := ptx.VarOf(k, scalar.U32(0))
	k.While(func() ptx.Reg[bool] { return ptx.Le(k, at.Get(), scalar.U32(catalogue.LZ4Last)) }, func() {
		begin := ptx.Copy(k, at.Get())
		p := ptx.Add(k, begin, z.lane)
		active := ptx.Le(k, p, scalar.U32(catalogue.LZ4Last))
		p = ptx.Min(k, p, scalar.U32(catalogue.LZ4Last))
		word := z.word(p)
		slot := z.slot(word)
		seen := ptx.Load(k, slot)
		known, inner := ptx.Ne(k, seen, scalar.U32(0)), ptx.Ne(k, p, scalar.U32(0))
		q := ptx.Select(k, known, ptx.Sub(k, seen, scalar.U32(1)), scalar.U32(0))
		before := ptx.Select(k, inner, ptx.Sub(k, p, scalar.U32(1)), scalar.U32(0))
		known = ptx.And(k, known, ptx.Eq(k, z.word(q), word))
		run := ptx.And(k, inner, ptx.Eq(k, z.word(before), word))
		q = ptx.Select(k, known, q, before)
		hits := k.Ballot(ptx.And(k, active, ptx.Or(k, known, run)), all)
		first := lowest(k, hits)
		z.sync()
		z.enter(ptx.And(k, active, ptx.Le(k, z.lane, first)), slot, p)
		z.sync()
		k.If(ptx.Eq(k, hits, scalar.U32(0)), func() { at.Set(ptx.Add(k, begin, scalar.U32(catalogue.LZ4Lanes))) }, func() {
			p := ptx.Add(k, begin, first)
			q := ptx.Shuffle(k, ptx.ShuffleIndex, q, first, 32, all)
			n := z.match(p, q)
			anchor := z.anchor.Get()
			z.sequence(anchor, ptx.Sub(k, p, anchor), ptx.Sub(k, p, q), n, true)
			end := ptx.Add(k, p, n)
			at.Set(end)
			z.anchor.Set(end)
			k.If(ptx.Ge(k, z.size.Get(), scalar.U32(catalogue.LZ4Page)), func() { k.Break() })
			// The last positions inside the match; end is more than LZ4Lanes wherever there are so many.
			least := ptx.Add(k, p, scalar.U32(1))
			i := ptx.Max(k, ptx.Bitcast[int32](k, least), ptx.Bitcast[int32](k, ptx.Sub(k, end, scalar.U32(catalogue.LZ4Lanes))))
			inside := ptx.Add(k, ptx.Bitcast[uint32](k, i), z.lane)
			ok := ptx.And(k, ptx.Lt(k, inside, end), ptx.Le(k, inside, scalar.U32(catalogue.LZ4Last)))
			inside = ptx.Min(k, inside, scalar.U32(catalogue.LZ4Last))
			z.enter(ok, z.slot(z.word(inside)), inside)
			z.sync()
		})
	})
}

// match is the length of the match at p with what begins at q: each lane compares four bytes of 128.
func (z *lz4Compressor) match(p, q ptx.Reg[uint32]) ptx.Reg[uint32] {
	k, all := z.k, ptx.FullWarp()
	distance := ptx.Sub(k, p, q)
	n := ptx.VarOf(k, scalar.U32(4))
	k.Loop(func() {
		at := ptx.Add(k, ptx.Add(k, p, n.Get()), ptx.Shl(k, z.lane, scalar.U32(2)))
		inside := ptx.Lt(k, at, scalar.U32(catalogue.LZ4End))
		at = ptx.Min(k, at, scalar.U32(catalogue.LZ4End)) // the last one whose word can be read
		differ := ptx.Xor(k, z.word(at), z.word(ptx.Sub(k, at, distance)))
		equal := ptx.Select(k, inside, ptx.Min(k, ptx.Shr(k, lowest(k, differ), scalar.U32(3)), scalar.U32(4)), scalar.U32(0))
		ends := k.Ballot(ptx.Lt(k, equal, scalar.U32(4)), all)
		some := ptx.Ne(k, ends, scalar.U32(0))
		last := lowest(k, ends) // 32 if all are equal
		rest := ptx.Shuffle(k, ptx.ShuffleIndex, equal, ptx.And(k, last, scalar.U32(31)), 32, all)
		rest = ptx.Select(k, some, rest, scalar.U32(0))
		n.Set(ptx.Add(k, ptx.Mad(k, last, scalar.U32(4), rest), n.Get()))
		k.BreakIf(some)
	})
	return ptx.Min(k, n.Get(), ptx.Sub(k, scalar.U32(catalogue.LZ4End), p))
}

// more is the number of bytes behind the token that a length takes.
func (z *lz4Compressor) more(n ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := z.k
	behind := ptx.Add(k, ptx.Div(k, ptx.Sub(k, n, scalar.U32(15)), scalar.U32(255)), scalar.U32(1))
	return ptx.Select(k, ptx.Lt(k, n, scalar.U32(15)), scalar.U32(0), behind)
}

// length writes the bytes of a length behind the token.
func (z *lz4Compressor) length(at, n, more ptx.Reg[uint32]) {
	k := z.k
	k.If(ptx.Lt(k, z.lane, more), func() {
		last := ptx.Eq(k, ptx.Add(k, z.lane, scalar.U32(1)), more)
		full := ptx.Mul(k, z.lane, scalar.U32(255))
		z.put(ptx.Add(k, at, z.lane), ptx.Select(k, last, ptx.Sub(k, ptx.Sub(k, n, scalar.U32(15)), full), scalar.U32(255)))
	})
}

// sequence writes literals from anchor on and, unless it is the last, a match. Where the block would get too large it only
// counts.
func (z *lz4Compressor) sequence(anchor, literals, offset, match ptx.Reg[uint32], matches bool) {
	k := z.k
	begin := ptx.Copy(k, z.size.Get())
	moreLiterals := z.more(literals)
	at := ptx.Add(k, ptx.Add(k, begin, scalar.U32(1)), moreLiterals) // of the literals
	behind := ptx.Add(k, at, literals)
	total := behind
	token := ptx.Shl(k, ptx.Min(k, literals, scalar.U32(15)), scalar.U32(4))
	var rest, moreMatch ptx.Reg[uint32]
	if matches {
		rest = ptx.Sub(k, match, scalar.U32(4))
		moreMatch = z.more(rest)
		total = ptx.Add(k, ptx.Add(k, behind, scalar.U32(2)), moreMatch)
		token = ptx.Or(k, token, ptx.Min(k, rest, scalar.U32(15)))
	}
	z.size.Set(total)
	k.If(ptx.Lt(k, total, scalar.U32(catalogue.LZ4Page)), func() {
		k.If(ptx.Eq(k, z.lane, scalar.U32(0)), func() { z.put(begin, token) })
		z.length(ptx.Add(k, begin, scalar.U32(1)), literals, moreLiterals)
		ptx.For(k, z.lane, literals, scalar.U32(catalogue.LZ4Lanes), func(i ptx.Reg[uint32]) {
			z.put(ptx.Add(k, at, i), z.Load(z.from, ptx.Add(k, anchor, i)))
		}, ptx.NoUnroll())
		if matches {
			k.If(ptx.Lt(k, z.lane, scalar.U32(2)), func() {
				z.put(ptx.Add(k, behind, z.lane), ptx.Shr(k, offset, ptx.Shl(k, z.lane, scalar.U32(3))))
			})
			z.length(ptx.Add(k, behind, scalar.U32(2)), rest, moreMatch)
		}
	})
	z.sync()
}
