package gemm

import (
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// dotRowsGo sets y to the dot products of rows of a, ld apart, with x.
//
//	for i := range rows { y[i] = 0; for p := range n { y[i] += a[i*ld+p] * x[p] } }
func dotRowsGo(y, a *float32, ld int, x *float32, n, rows int) {
	m, v := unsafe.Slice(a, (rows-1)*ld+n), unsafe.Slice(x, n)
	to := unsafe.Slice(y, rows)
	for i := range to {
		to[i] = kernels.Dot(v, m[i*ld:][:n])
	}
}

// axpyRowsGo adds to y rows of a, ld apart and a multiple of eight, each times a factor.
//
//	for i := range 8 * eights { for j := range n { y[j] += f[i] * a[i*ld+j] } }
func axpyRowsGo(y, a *float32, ld int, f *float32, n, eights int) {
	to, rows := unsafe.Slice(y, n), unsafe.Slice(a, (8*eights-1)*ld+n)
	for i, v := range unsafe.Slice(f, 8*eights) {
		kernels.Axpy(to, to, rows[i*ld:][:n], v)
	}
}
