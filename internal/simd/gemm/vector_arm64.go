package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// dotRows sets y to the dot products of rows of a with x; see dotRowsGo.
func dotRows(y, a *float32, ld int, x *float32, n, rows int) {
	if kernels.Active() == kernels.NEON {
		dotRowsNEON(y, a, ld, x, n, rows)
	} else {
		dotRowsGo(y, a, ld, x, n, rows)
	}
}

// dotHalves is dotRows with numbers that are widened in registers, and reports whether the tier has it.
func dotHalves(y []float32, a Half, ld int, x []float32) bool {
	switch {
	case kernels.Active() != kernels.NEON:
		return false
	case a.Brain:
		dotRowsBF16NEON(&y[0], &a.Bits[0], ld, &x[0], len(x), len(y))
	default:
		dotRowsF16NEON(&y[0], &a.Bits[0], ld, &x[0], len(x), len(y))
	}
	return true
}

func hasColumns() bool { return false }

func columns(_, _ *float32, _ int, _ *float32, _, _ int) {}

// axpyRows adds to y rows of a, eight at a time, each times a factor; see axpyRowsGo.
func axpyRows(y, a *float32, ld int, f *float32, n, eights int) {
	if kernels.Active() == kernels.NEON {
		axpyRowsNEON(y, a, ld, f, n, eights)
	} else {
		axpyRowsGo(y, a, ld, f, n, eights)
	}
}

// axpyHalves is axpyRows, likewise.
func axpyHalves(y []float32, a Half, ld int, f []float32) bool {
	switch {
	case kernels.Active() != kernels.NEON:
		return false
	case a.Brain:
		axpyRowsBF16NEON(&y[0], &a.Bits[0], ld, &f[0], len(y), len(f)/8)
	default:
		axpyRowsF16NEON(&y[0], &a.Bits[0], ld, &f[0], len(y), len(f)/8)
	}
	return true
}
