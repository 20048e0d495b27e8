package gemm

import (
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// dotRowsGo sets y to the dot products of rows of a, ld apart and a multiple of four, with x.
//
//	for i := range 4 * fours { y[i] = 0; for p := range n { y[i] += a[i*ld+p] * x[p] } }
func dotRowsGo(y, a *float32, ld int, x *float32, n, fours int) {
	to := unsafe.Slice(y, 4*fours)
	rows, v := unsafe.Slice(a, (len(to)-1)*ld+n), unsafe.Slice(x, n)
	for i := range to {
		to[i] = kernels.Dot(v, rows[i*ld:][:n])
	}
}

// axpyRowsGo adds to y eight rows of a, ld apart, each times a factor.
//
//	for i := range 8 { for j := range n { y[j] += f[i] * a[i*ld+j] } }
func axpyRowsGo(y, a *float32, ld int, f *[8]float32, n int) {
	to, rows := unsafe.Slice(y, n), unsafe.Slice(a, 7*ld+n)
	for i, v := range f {
		kernels.Axpy(to, to, rows[i*ld:][:n], v)
	}
}
