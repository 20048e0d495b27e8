package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// dotRows sets y to the dot products of rows of a with x; see dotRowsGo.
func dotRows(y, a *float32, ld int, x *float32, n, rows int) {
	switch kernels.Active() {
	case kernels.AVX512:
		dotRowsAVX512(y, a, ld, x, n, rows)
	case kernels.AVX2:
		dotRowsAVX2(y, a, ld, x, n, rows)
	case kernels.SSE:
		dotRowsSSE(y, a, ld, x, n, rows)
	default:
		dotRowsGo(y, a, ld, x, n, rows)
	}
}

// hasColumns reports whether the tier has columns.
func hasColumns() bool { return kernels.Active() >= kernels.AVX2 }

// columns sets y to the sum of rows of a, each times a factor.
//
//	for j := range n { y[j] = 0; for p := range rows { y[j] += f[p] * a[p*ld+j] } }
func columns(y, a *float32, ld int, f *float32, rows, n int) {
	if kernels.Active() == kernels.AVX512 {
		columnsAVX512(y, a, ld, f, rows, n)
	} else {
		columnsAVX2(y, a, ld, f, rows, n)
	}
}

// axpyRows adds to y rows of a, eight at a time, each times a factor; see axpyRowsGo.
func axpyRows(y, a *float32, ld int, f *float32, n, eights int) {
	switch kernels.Active() {
	case kernels.AVX512:
		axpyRowsAVX512(y, a, ld, f, n, eights)
	case kernels.AVX2:
		axpyRowsAVX2(y, a, ld, f, n, eights)
	case kernels.SSE:
		axpyRowsSSE(y, a, ld, f, n, eights)
	default:
		axpyRowsGo(y, a, ld, f, n, eights)
	}
}
