package lz4

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx"
)

// A page is a warp's, which is a block: with page, table and block it has 12 KiB of shared memory.

// LZ4Compress lowers the compression of pages.
func LZ4Compress(s *kit.Step) error {
	s.Launch(lz4Compress, [3]int{s.Operands[0].Shape[0], 1, 1}, compressParams{kit.In(0), kit.OutAt(0), kit.OutAt(1)})
	return nil
}

// LZ4Decompress lowers the decompression of pages.
func LZ4Decompress(s *kit.Step) error {
	s.Launch(lz4Decompress, [3]int{s.Operands[0].Shape[0], 1, 1}, decompressParams{kit.In(0), kit.In(1), kit.OutAt(0), kit.OutAt(1)})
	return nil
}

const lz4Words = catalogue.LZ4Page / 4

// lz4Kernel is what both kernels have: the warp, and two pages in shared memory.
type lz4Kernel struct {
	k        *ptx.Kernel
	lane     ptx.Reg[uint32]
	from, to ptx.Ptr[ptx.Shared, uint32] // what is read and what is made
}

func newLZ4(k *ptx.Kernel, from, to string) *lz4Kernel {
	return &lz4Kernel{k, k.Tid(ptx.X), ptx.SharedArray[uint32](k, from, lz4Words, ptx.Align(16)),
		ptx.SharedArray[uint32](k, to, lz4Words, ptx.Align(16))}
}

// sync orders the warp's accesses to shared memory.
func (z *lz4Kernel) sync() { z.k.WarpSync(ptx.FullWarp()) }

// quads calls f with the place of each of the lane's parts of 16 bytes of a page.
func (z *lz4Kernel) quads(f func(at ptx.Reg[uint32])) {
	for j := range lz4Words / 128 {
		f(z.lane.Shl(2).Add(128 * j))
	}
}

// row is the block's row of pages in global memory.
func (z *lz4Kernel) row(p ptx.Ptr[ptx.Global, uint32]) ptx.Ptr[ptx.Global, uint32] {
	return p.Bytes(z.k.Ctaid(ptx.X).MulWide(catalogue.LZ4Page))
}

// read fills what is read from global memory, and what is made with zeros.
func (z *lz4Kernel) read(p ptx.Ptr[ptx.Global, uint32]) {
	row, zero := z.row(p), ptx.U32(0)
	z.quads(func(at ptx.Reg[uint32]) {
		z.from.At(at).Store4(row.At(at).Load4())
		z.to.At(at).Store4([4]ptx.Reg[uint32]{zero, zero, zero, zero})
	})
}

// Write writes a page to global memory: where whole, what was read, else what was made.
func (z *lz4Kernel) Write(p ptx.Ptr[ptx.Global, uint32], whole ptx.Reg[bool]) {
	row := z.row(p)
	z.quads(func(at ptx.Reg[uint32]) {
		made, read := z.to.At(at).Load4(), z.from.At(at).Load4()
		var v [4]ptx.Reg[uint32]
		for i := range v {
			v[i] = ptx.Select(whole, read[i], made[i])
		}
		row.At(at).Store4(v)
	})
}

// Load is a byte of a page, put is that.
func (z *lz4Kernel) Load(p ptx.Ptr[ptx.Shared, uint32], at ptx.Reg[uint32]) ptx.Reg[uint32] {
	return ptx.Convert[uint32](ptx.Cast[uint8](p).At(at).Load())
}

func (z *lz4Kernel) put(at, v ptx.Reg[uint32]) {
	ptx.Cast[uint8](z.to).At(at).Store(ptx.Convert[uint8](v))
}

// lowest is the number of zeros below the lowest one of x; 32 if there is none.
func lowest(k *ptx.Kernel, x ptx.Reg[uint32]) ptx.Reg[uint32] { return x.Brev().Clz() }
