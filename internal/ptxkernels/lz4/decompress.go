package lz4

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

var lz4Decompress = kit.Register(kit.Kernel{Family: "lz4", Name: "lz4_decompress", Block: [3]int{catalogue.LZ4Lanes, 1, 1},
	Doc: "One block for each page of 4 KiB: what op.DecompressLZ4 does. Every length is compared with what is left on either side " +
		"before anything is read or written, and every turn of the loop consumes bytes of the block, so that none is without end. " +
		"Parameters: u32* blocks, u32* sizes, u32* pages, u32* status.",
	Build: func(k *ptx.Kernel) {
		blocks, sizes := ptx.PointerParam[uint32](k, "blocks", ptx.Align(16)), ptx.PointerParam[uint32](k, "sizes")
		pages, status := ptx.PointerParam[uint32](k, "pages", ptx.Align(16)), ptx.PointerParam[uint32](k, "status")
		z := &lz4Decompressor{lz4Kernel: newLZ4(k, "block", "page")}
		z.read(blocks)
		z.size = ptx.Load(k, ptx.At(k, sizes, k.Ctaid(ptx.X)))
		z.at, z.made = ptx.VarOf(k, scalar.U32(0)), ptx.VarOf(k, scalar.U32(0))
		z.status = ptx.VarOf(k, lz4Code(catalogue.LZ4BadSize))
		z.sync()
		k.If(ptx.Lt(k, ptx.Sub(k, z.size, scalar.U32(1)), scalar.U32(catalogue.LZ4Page-1)), z.sequences)
		z.sync()
		whole := ptx.Eq(k, z.size, scalar.U32(catalogue.LZ4Page))
		k.If(whole, func() { z.status.Set(scalar.U32(catalogue.LZ4Page)) })
		k.If(ptx.Gt(k, z.status.Get(), scalar.U32(catalogue.LZ4Page)), func() { // what was made before the error
			zero := scalar.U32(0)
			z.quads(func(at ptx.Reg[uint32]) {
				ptx.Store4(k, ptx.At(k, z.to, at), [4]ptx.Reg[uint32]{zero, zero, zero, zero})
			})
		})
		z.Write(pages, whole)
		k.When(ptx.Eq(k, z.lane, scalar.U32(0)), func() { ptx.Store(k, ptx.At(k, status, k.Ctaid(ptx.X)), z.status.Get()) })
	}})

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
	at := ptx.Copy(z.k, z.at.Get())
	z.at.Set(ptx.Add(z.k, at, scalar.U32(1)))
	return z.Load(z.from, at)
}

// length is a length that begins in the token; one that the block ends in is beyond all limits.
func (z *lz4Decompressor) length(n ptx.Reg[uint32]) *ptx.Var[uint32] {
	k := z.k
	v, more := ptx.VarOf(k, n), ptx.VarOf(k, ptx.Eq(k, n, scalar.U32(15)))
	k.While(func() ptx.Reg[bool] { return more.Get() }, func() {
		left := ptx.Lt(k, z.at.Get(), z.size)
		k.If(left, func() {
			b := z.next()
			v.Set(ptx.Add(k, v.Get(), b))
			more.Set(ptx.Eq(k, b, scalar.U32(255)))
		}, func() {
			v.Set(ptx.Imm(uint32(lz4Endless)))
			more.Set(ptx.Ne(k, scalar.U32(0), scalar.U32(0)))
		})
	})
	return v
}

const lz4Endless = 1 << 30

func (z *lz4Decompressor) sequences() {
	k := z.k
	truncated, overflow := lz4Code(catalogue.LZ4Truncated), lz4Code(catalogue.LZ4Overflow)
	k.Loop(func() {
		z.endIf(ptx.Ge(k, z.at.Get(), z.size), truncated)
		token := z.next()
		literals := z.length(ptx.Shr(k, token, scalar.U32(4))).Get()
		at, made := ptx.Copy(k, z.at.Get()), ptx.Copy(k, z.made.Get())
		z.endIf(ptx.Gt(k, literals, ptx.Sub(k, z.size, at)), truncated)
		z.endIf(ptx.Gt(k, literals, ptx.Sub(k, scalar.U32(catalogue.LZ4Page), made)), overflow)
		ptx.For(k, z.lane, literals, scalar.U32(catalogue.LZ4Lanes), func(i ptx.Reg[uint32]) {
			z.put(ptx.Add(k, made, i), z.Load(z.from, ptx.Add(k, at, i)))
		}, ptx.NoUnroll())
		made = ptx.Add(k, made, literals)
		at = ptx.Add(k, at, literals)
		z.endIf(ptx.Eq(k, at, z.size), made)
		z.endIf(ptx.Gt(k, ptx.Add(k, at, scalar.U32(2)), z.size), truncated)
		offset := ptx.Or(k, z.Load(z.from, at), ptx.Shl(k, z.Load(z.from, ptx.Add(k, at, scalar.U32(1))), scalar.U32(8)))
		z.at.Set(ptx.Add(k, at, scalar.U32(2)))
		length := z.length(ptx.And(k, token, scalar.U32(15))).Get()
		z.endIf(ptx.Eq(k, length, scalar.U32(lz4Endless)), truncated)
		length = ptx.Add(k, length, scalar.U32(4))
		z.endIf(ptx.Ge(k, ptx.Sub(k, offset, scalar.U32(1)), made), lz4Code(catalogue.LZ4BadOffset)) // 0 wraps
		z.endIf(ptx.Gt(k, length, ptx.Sub(k, scalar.U32(catalogue.LZ4Page), made)), overflow)
		z.sync()
		// Every byte comes from what was there before: the offset is the period of what is repeated.
		begin := ptx.Sub(k, made, offset)
		ptx.For(k, z.lane, length, scalar.U32(catalogue.LZ4Lanes), func(i ptx.Reg[uint32]) {
			z.put(ptx.Add(k, made, i), z.Load(z.to, ptx.Add(k, begin, ptx.Rem(k, i, offset))))
		}, ptx.NoUnroll())
		z.made.Set(ptx.Add(k, made, length))
		z.sync()
	})
}
