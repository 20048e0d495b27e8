package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// dotRows sets y to the dot products of four rows of a with x; see dotRowsGo.
func dotRows(y *[4]float32, a *float32, ld int, x *float32, n int) {
	switch kernels.Active() {
	case kernels.AVX512:
		dotRowsAVX512(&y[0], a, ld, x, n)
	case kernels.AVX2:
		dotRowsAVX2(&y[0], a, ld, x, n)
	case kernels.SSE:
		dotRowsSSE(&y[0], a, ld, x, n)
	default:
		dotRowsGo(y, a, ld, x, n)
	}
}

// axpyRows adds to y eight rows of a, each times a factor; see axpyRowsGo.
func axpyRows(y, a *float32, ld int, f *[8]float32, n int) {
	switch kernels.Active() {
	case kernels.AVX512:
		axpyRowsAVX512(y, a, ld, &f[0], n)
	case kernels.AVX2:
		axpyRowsAVX2(y, a, ld, &f[0], n)
	case kernels.SSE:
		axpyRowsSSE(y, a, ld, &f[0], n)
	default:
		axpyRowsGo(y, a, ld, f, n)
	}
}
