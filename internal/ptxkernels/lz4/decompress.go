package lz4

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx"
)

type decompressParams struct {
	Blocks, Sizes, Pages, Status kit.Buffer `of:"u32"`
}

var lz4Decompress = kit.Define(kit.Kernel{Family: "lz4", Name: "lz4_decompress", Block: [3]int{catalogue.LZ4Lanes, 1, 1},
	Doc: "One block for each page of 4 KiB: what op.DecompressLZ4 does. Every length is compared with what is left on either side " +
		"before anything is read or written, and every iteration of the loop consumes bytes of the block, so that none is without end."},
	func(k *ptx.Kernel, p *kit.Params, at *decompressParams) {
		blocks, sizes := kit.Ptr[uint32](p, &at.Blocks, ptx.Align(16)), kit.Ptr[uint32](p, &at.Sizes)
		pages, status := kit.Ptr[uint32](p, &at.Pages, ptx.Align(16)), kit.Ptr[uint32](p, &at.Status)
		z := &lz4Decompressor{lz4Kernel: newLZ4(k, "block", "page")}
		z.read(blocks)
		z.size = sizes.At(k.Ctaid(ptx.X)).Load()
		z.at, z.made = ptx.VarOf(k, ptx.U32(0)), ptx.VarOf(k, ptx.U32(0))
		z.status = ptx.VarOf(k, lz4Code(catalogue.LZ4BadSize))
		z.sync()
		k.If(z.size.Sub(1).Lt(catalogue.LZ4Page-1), z.sequences)
		z.sync()
		whole := z.size.Eq(catalogue.LZ4Page)
		k.If(whole, func() { z.status.Set(catalogue.LZ4Page) })
		k.If(z.status.Get().Gt(catalogue.LZ4Page), func() { // what was made before the error
			zero := ptx.U32(0)
			z.quads(func(at ptx.Reg[uint32]) {
				z.to.At(at).Store4([4]ptx.Reg[uint32]{zero, zero, zero, zero})
			})
		})
		z.Write(pages, whole)
		k.When(z.lane.Eq(0), func() { status.At(k.Ctaid(ptx.X)).Store(z.status.Get()) })
	})

// lz4Decompressor is the kernel under construction. All but lane is the same in all lanes.
type lz4Decompressor struct {
	*lz4Kernel
	size     ptx.Reg[uint32]  // of the block
	at, made *ptx.Var[uint32] // bytes of the block that are read, of the page that are there
	status   *ptx.Var[uint32]
}

func lz4Code(code int) ptx.Reg[uint32] { return ptx.Imm(uint32(int32(code))) }

// endIf ends the loop with a status.
func (z *lz4Decompressor) endIf(p ptx.Reg[bool], status ptx.Reg[uint32]) {
	z.k.If(p, func() {
		z.status.Set(status)
		z.k.Break()
	})
}

// next is the next byte of the block, which has one.
func (z *lz4Decompressor) next() ptx.Reg[uint32] {
	at := z.at.Get().Copy()
	z.at.Set(at.Add(1))
	return z.Load(z.from, at)
}

// length is a length that begins in the token; one that the block ends in is beyond all limits.
func (z *lz4Decompressor) length(n ptx.Reg[uint32]) *ptx.Var[uint32] {
	k := z.k
	v, more := ptx.VarOf(k, n), ptx.VarOf(k, n.Eq(15))
	k.While(func() ptx.Reg[bool] { return more.Get() }, func() {
		left := z.at.Get().Lt(z.size)
		k.If(left, func() {
			b := z.next()
			v.Set(v.Get().Add(b))
			more.Set(b.Eq(255))
		}, func() {
			v.Set(lz4Endless)
			more.Set(ptx.ConstIn(k, uint32(0)).Ne(0))
		})
	})
	return v
}

const lz4Endless = 1 << 30

func (z *lz4Decompressor) sequences() {
	k := z.k
	truncated, overflow := lz4Code(catalogue.LZ4Truncated), lz4Code(catalogue.LZ4Overflow)
	k.Loop(func() {
		z.endIf(z.at.Get().Ge(z.size), truncated)
		token := z.next()
		literals := z.length(token.Shr(4)).Get()
		at, made := z.at.Get().Copy(), z.made.Get().Copy()
		z.endIf(literals.Gt(z.size.Sub(at)), truncated)
		z.endIf(literals.Gt(ptx.U32(catalogue.LZ4Page).Sub(made)), overflow)
		ptx.For(k, z.lane, literals, catalogue.LZ4Lanes, func(i ptx.Reg[uint32]) {
			z.put(made.Add(i), z.Load(z.from, at.Add(i)))
		}, ptx.NoUnroll())
		made = made.Add(literals)
		at = at.Add(literals)
		z.endIf(at.Eq(z.size), made)
		z.endIf(at.Add(2).Gt(z.size), truncated)
		offset := z.Load(z.from, at).Or(z.Load(z.from, at.Add(1)).Shl(8))
		z.at.Set(at.Add(2))
		length := z.length(token.And(15)).Get()
		z.endIf(length.Eq(lz4Endless), truncated)
		length = length.Add(4)
		z.endIf(offset.Sub(1).Ge(made), lz4Code(catalogue.LZ4BadOffset)) // 0 wraps
		z.endIf(length.Gt(ptx.U32(catalogue.LZ4Page).Sub(made)), overflow)
		z.sync()
		// Every byte comes from what was there before: the offset is the period of what is repeated.
		begin := made.Sub(offset)
		ptx.For(k, z.lane, length, catalogue.LZ4Lanes, func(i ptx.Reg[uint32]) {
			z.put(made.Add(i), z.Load(z.to, begin.Add(i.Rem(offset))))
		}, ptx.NoUnroll())
		z.made.Set(made.Add(length))
		z.sync()
	})
}
