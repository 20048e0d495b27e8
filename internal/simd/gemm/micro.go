// Package gemm multiplies float32 matrices: C = act(alpha·A·B + beta·C + bias), with strided and transposed operands.
//
// Large products run over packed panels as in BLIS: blocks of A in panels of at most mr rows, blocks of B in panels of nr
// columns, both with the inner dimension outermost. A micro-kernel keeps a tile of C in registers and reads both panels in
// order. See Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", 2015. Small
// products run the same micro-kernels on the operands as they lie.
package gemm

import (
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Tile is the argument of a micro-kernel: a tile of C and what is multiplied for it. Strides are in elements.
//
//	for i := range Rows {
//		for j := range Cols {
//			sum := float32(0)
//			for p := range K { sum += A[i*AI+p*AK] * B[p*BK+j] } // in this order; FMA where the tier has it
//			if Beta == 0 { C[i*LDC+j] = Alpha*sum } else { C[i*LDC+j] = Alpha*sum + Beta*C[i*LDC+j] }
//		}
//	}
//
// Where the tier has vectors the multiply-add ports limit it: on Zen 3 AVX2 tiles of packed panels reach 0.95 to 0.97 of the peak
// from 256 steps on, as many as A's and B's loads leave idle slots for, since A is fetched to L1 before its use; without that
// 0.79 to 0.90. With NEON a step of a tile of 8×12 has 24 multiply-adds for 5 loads, so that they limit it too; that has not been
// measured. WebAssembly has no multiply-add: multiplications and additions limit it, and products of 64 to 256 reach 17 GFLOPS under
// Node.js 20 on a Xeon of the fifth generation, where SSE2 reaches 20.
//
// What a tier must provide is one function
//
//	//go:noescape
//	func tile<Tier>(t *Tile)
//
// for every 1 ≤ Rows ≤ mr, 1 ≤ Cols ≤ nr and K ≥ 1, and for Rows ≤ slim where Cols is at most a vector, such that
//
//   - AI = 1 or AK = 1 (packed panels of A have AI = 1, AK = Rows). Nothing but the Rows×K elements of A is read.
//   - B is read in whole vectors: Cols rounded up to the tier's lanes. Elements from Cols on are any numbers, their products
//     are dropped.
//   - Only Rows×Cols elements of C are read or written, and with Beta = 0 they are not read. Cols is a multiple of the
//     tier's lanes unless its shape says that the kernel masks columns: Go code gives such tiers a temporary tile instead.
//   - Each element is one chain over p, whatever Rows and Cols, so that the result of a product does not depend on how it is
//     cut into tiles.
type Tile struct {
	A, B, C     *float32
	K           int
	AI, AK, BK  int
	LDC         int
	Rows, Cols  int
	Alpha, Beta float32
	// Ahead is memory that is needed soon, up to AheadEnd, to be prefetched if the tier gains by it; nil for none.
	Ahead, AheadEnd *float32
	// Panels is the number of tiles below each other that are computed with the same B, if the shape says that the kernel has that
	// loop: after each of them C moves by Rows rows, A by NextA elements, and Panels is one less.
	Panels, NextA int
}

// shape is what the driver must know of a tier's micro-kernel.
type shape struct {
	tier   kernels.Tier
	mr, nr int
	slim   int  // rows of a tile of one vector if they may be more
	lanes  int  // float32 in a vector; divides nr
	masked bool // the kernel takes any number of columns
	column bool // the kernel computes Panels tiles
}

// most is the number of rows that a tile of some columns may have.
func (s *shape) most(cols int) int {
	if cols <= s.lanes {
		return max(s.mr, s.slim)
	}
	return s.mr
}

// below computes t.Panels tiles below each other.
func (s *shape) below(t *Tile) {
	if s.column {
		s.tile(t)
		return
	}
	for ; ; t.Panels-- {
		s.tile(t)
		if t.Panels == 1 {
			return
		}
		t.next()
	}
}

// next moves to the tile below.
func (t *Tile) next() {
	t.A = (*float32)(unsafe.Add(unsafe.Pointer(t.A), 4*t.NextA))
	t.C = (*float32)(unsafe.Add(unsafe.Pointer(t.C), 4*t.Rows*t.LDC))
}

// panels cuts m rows into as few panels of at most mr rows as there can be, of heights that differ by at most one: the first
// tall panels have height+1 rows, the others height.
func panels(m, mr int) (count, height, tall int) {
	if m <= mr {
		return 1, m, 0
	}
	count = ceilDiv(m, mr)
	return count, m / count, m % count
}
