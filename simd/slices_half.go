package simd

import (
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/gemm"
)

// Floats of 16 bits, in which vectors and matrices take half the memory. Sums are those of [Dot] and [MatVec] over the widened numbers.

// Widen computes dst[i] = float32(x[i]), exactly. NaN becomes quiet, but for one in BF16. The slices must not overlap.
func Widen[T compute.F16 | compute.BF16](dst []float32, x []T) {
	engine.MustLen("Widen", len(x), len(dst))
	engine.MustApart("Widen", dst, x)
	engine.Widen(dst, halves(x))
}

// Narrow computes dst[i] = T(x[i]): the nearest number, ties to even, ±Inf if x[i] is too large. NaN stays NaN. The slices must not
// overlap.
func Narrow[T compute.F16 | compute.BF16](dst []T, x []float32) {
	engine.MustLen("Narrow", len(x), len(dst))
	engine.MustApart("Narrow", dst, x)
	engine.Narrow(halves(dst), x)
}

// DotHalf returns Σa[i]·x[i], or 0 for empty slices.
func DotHalf[T compute.F16 | compute.BF16](a []T, x []float32) float32 {
	engine.MustLen("DotHalf", len(x), len(a))
	var y [1]float32
	if gemm.SmallHalfMatVec(y[:], halves(a), x, 1, len(a)) {
		return y[0]
	}
	buffer := engine.Borrow(1)
	defer engine.Scratch.Put(buffer)
	runHalf(*buffer, a, x, 1, len(a))
	return (*buffer)[0]
}

// MatVecHalf computes dst = a·x: a is m×k, x has k elements, dst has m. The destination must not overlap operands.
func MatVecHalf[T compute.F16 | compute.BF16](dst []float32, a []T, x []float32, m, k int) {
	const name = "MatVecHalf"
	engine.MustLen(name, len(a), area(name, m, k))
	engine.MustLen(name, len(x), k)
	engine.MustLen(name, len(dst), m)
	engine.MustApart(name, dst, a)
	engine.MustApart(name, dst, x)
	if !gemm.SmallHalfMatVec(dst, halves(a), x, m, k) {
		runHalf(dst, a, x, m, k)
	}
}

func runHalf[T compute.F16 | compute.BF16](dst []float32, a []T, x []float32, m, k int) {
	gemm.Run(&gemm.Product{M: m, N: 1, K: k, AM: k, AK: 1, BK: 1, BN: 1, LDC: 1, Alpha: 1, Batch: 1},
		&gemm.Operands{HalfA: halves(a), B: x, C: dst}, 0)
}

// halves are the bits of elements.
func halves[T compute.F16 | compute.BF16](x []T) gemm.Half {
	_, brain := any(T(0)).(compute.BF16)
	return gemm.Half{Bits: unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x)), Brain: brain}
}
