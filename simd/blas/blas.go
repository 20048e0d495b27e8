// Package blas gives gonum wavelane's kernels: an implementation of gonum's blas.Float32, all routines of levels 1, 2 and 3.
//
//	blas32.Use(blas.Implementation{})
//
// From then on blas32, and what stands on it, runs on the instruction set that package simd chose, large products on all
// cores (see simd.SetThreads). Results differ from those of gonum's own implementation by rounding only.
//
// Routines for which there is no kernel go to gonum: rotations, swaps, copies, dot products in float64, banded and packed
// matrices, and vectors with an increment other than 1 where only contiguous ones gain. Arguments that are out of range go
// there too, so that they panic as gonum's users know it. Operands must not overlap results, except where they are the same
// vector.
//
// The package is a module of its own, so that gonum is no dependency of wavelane's other users.
package blas

import (
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Implementation implements gonum's blas.Float32. It has no state and is safe for concurrent use.
type Implementation struct{ gonum.Implementation }

var _ blas.Float32 = Implementation{}

// reference has the routines that are not ours.
var reference gonum.Implementation

// transposed says whether a transpose argument asks for it; ok is false for one that is none of BLAS's.
func transposed(t blas.Transpose) (yes, ok bool) {
	return t == blas.Trans || t == blas.ConjTrans, t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans
}

// fits says whether a slice holds a matrix of rows×cols, neither of them 0, with rows ld apart.
func fits(a []float32, rows, cols, ld int) bool {
	return rows > 0 && cols > 0 && ld >= cols && len(a) >= (rows-1)*ld+cols
}

// apart says whether two vectors are the same or share no element: kernels read and write whole vectors at a time.
func apart(x, y []float32) bool {
	p, q := uintptr(unsafe.Pointer(unsafe.SliceData(x))), uintptr(unsafe.Pointer(unsafe.SliceData(y)))
	return p == q || p+4*uintptr(len(x)) <= q || q+4*uintptr(len(y)) <= p
}

// plain says whether n elements of a vector lie one after the other, and returns them.
func plain(n int, x []float32, inc int) ([]float32, bool) {
	if n < 1 || inc != 1 || len(x) < n {
		return nil, false
	}
	return x[:n], true
}

// holds says whether a slice has room for n ≥ 1 elements of a vector.
func holds(n int, x []float32, inc int) bool {
	return n > 0 && inc != 0 && len(x) > (n-1)*max(inc, -inc)
}

// place is the index of element i of n: a negative increment goes from the end.
func place(i, n, inc int) int {
	if inc < 0 {
		i -= n - 1
	}
	return i * inc
}
