package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// dotHalves is dotRows with numbers that are widened in registers, and reports whether the tier has it. What is left of a row
// after whole vectors AVX2 reads together with elements before.
func dotHalves(y []float32, a Half, ld int, x []float32) bool {
	switch n, tier := len(x), kernels.Active(); {
	case tier == kernels.AVX512 && a.Brain:
		dotRowsBF16AVX512(&y[0], &a.Bits[0], ld, &x[0], n, len(y))
	case tier == kernels.AVX512:
		dotRowsF16AVX512(&y[0], &a.Bits[0], ld, &x[0], n, len(y))
	case tier == kernels.AVX2 && n >= 8 && a.Brain:
		dotRowsBF16AVX2(&y[0], &a.Bits[0], ld, &x[0], n, len(y))
	case tier == kernels.AVX2 && n >= 8:
		dotRowsF16AVX2(&y[0], &a.Bits[0], ld, &x[0], n, len(y))
	default:
		return false
	}
	return true
}

// axpyHalves is axpyRows, likewise.
func axpyHalves(y []float32, a Half, ld int, f []float32) bool {
	switch n, tier := len(y), kernels.Active(); {
	case tier == kernels.AVX512 && a.Brain:
		axpyRowsBF16AVX512(&y[0], &a.Bits[0], ld, &f[0], n, len(f)/8)
	case tier == kernels.AVX512:
		axpyRowsF16AVX512(&y[0], &a.Bits[0], ld, &f[0], n, len(f)/8)
	case tier == kernels.AVX2 && n >= 8 && a.Brain:
		axpyRowsBF16AVX2(&y[0], &a.Bits[0], ld, &f[0], n, len(f)/8)
	case tier == kernels.AVX2 && n >= 8:
		axpyRowsF16AVX2(&y[0], &a.Bits[0], ld, &f[0], n, len(f)/8)
	default:
		return false
	}
	return true
}

//go:noescape
func dotRowsF16AVX2(y *float32, a *uint16, ld int, x *float32, n, rows int)

//go:noescape
func axpyRowsF16AVX2(y *float32, a *uint16, ld int, f *float32, n, eights int)

//go:noescape
func dotRowsBF16AVX2(y *float32, a *uint16, ld int, x *float32, n, rows int)

//go:noescape
func axpyRowsBF16AVX2(y *float32, a *uint16, ld int, f *float32, n, eights int)

//go:noescape
func dotRowsF16AVX512(y *float32, a *uint16, ld int, x *float32, n, rows int)

//go:noescape
func axpyRowsF16AVX512(y *float32, a *uint16, ld int, f *float32, n, eights int)

//go:noescape
func dotRowsBF16AVX512(y *float32, a *uint16, ld int, x *float32, n, rows int)

//go:noescape
func axpyRowsBF16AVX512(y *float32, a *uint16, ld int, f *float32, n, eights int)
