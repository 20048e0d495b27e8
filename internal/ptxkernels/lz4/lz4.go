package lz4

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// A page is a warp's, which is a block: with page, table and block it has 12 KiB of shared memory.

func LZ4Compress(s *kit.Step) error {
	s.Launch(lz4Compress, [3]int{s.Operands[0].Shape[0], 1, 1}, kit.In(0), kit.OutAt(0), kit.OutAt(1))
	return nil
}

func LZ4Decompress(s *kit.Step) error {
	s.Launch(lz4Decompress, [3]int{s.Operands[0].Shape[0], 1, 1}, kit.In(0), kit.In(1), kit.OutAt(0), kit.OutAt(1))
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
		f(ptx.Add(z.k, ptx.Shl(z.k, z.lane, scalar.U32(2)), scalar.U32(128*j)))
	}
}

// row is the block's row of pages in global memory.
func (z *lz4Kernel) row(p ptx.Ptr[ptx.Global, uint32]) ptx.Ptr[ptx.Global, uint32] {
	return ptx.AtByte(z.k, p, ptx.MulWideU32(z.k, z.k.Ctaid(ptx.X), scalar.U32(catalogue.LZ4Page)))
}

// read fills what is read from global memory, and what is made with zeros.
func (z *lz4Kernel) read(p ptx.Ptr[ptx.Global, uint32]) {
	row, zero := z.row(p), scalar.U32(0)
	z.quads(func(at ptx.Reg[uint32]) {
		ptx.Store4(z.k, ptx.At(z.k, z.from, at), ptx.Load4(z.k, ptx.At(z.k, row, at)))
		ptx.Store4(z.k, ptx.At(z.k, z.to, at), [4]ptx.Reg[uint32]{zero, zero, zero, zero})
	})
}

// Write writes a page to global memory: where whole, what was read, else what was made.
func (z *lz4Kernel) Write(p ptx.Ptr[ptx.Global, uint32], whole ptx.Reg[bool]) {
	k, row := z.k, z.row(p)
	z.quads(func(at ptx.Reg[uint32]) {
		made, read := ptx.Load4(k, ptx.At(k, z.to, at)), ptx.Load4(k, ptx.At(k, z.from, at))
		var v [4]ptx.Reg[uint32]
		for i := range v {
			v[i] = ptx.Select(k, whole, read[i], made[i])
		}
		ptx.Store4(k, ptx.At(k, row, at), v)
	})
}

// Load is a byte of a page, put is that.
func (z *lz4Kernel) Load(p ptx.Ptr[ptx.Shared, uint32], at ptx.Reg[uint32]) ptx.Reg[uint32] {
	return ptx.Convert[uint32](z.k, ptx.Load(z.k, ptx.At(z.k, ptx.Cast[uint8](p), at)))
}

func (z *lz4Kernel) put(at, v ptx.Reg[uint32]) {
	ptx.Store(z.k, ptx.At(z.k, ptx.Cast[uint8](z.to), at), ptx.Convert[uint8](z.k, v))
}

// lowest is the number of zeros below the lowest one of x; 32 if there is none.
func lowest(k *ptx.Kernel, x ptx.Reg[uint32]) ptx.Reg[uint32] { return ptx.Clz(k, ptx.Brev(k, x)) }
