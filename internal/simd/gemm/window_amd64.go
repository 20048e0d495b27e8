package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// gather copies n elements for each offset, at most two vectors, to dst, width apart.
func (s *shape) gather(dst, x []float32, offsets []int32, width, n int) {
	_ = dst[(len(offsets)-1)*width+n-1] // offsets are the caller's to get right
	switch s.tier {
	case kernels.AVX512:
		gatherAVX512(&dst[0], &x[0], &offsets[0], len(offsets), width, n)
	case kernels.AVX2:
		gatherAVX2(&dst[0], &x[0], &offsets[0], len(offsets), width, n)
	case kernels.SSE:
		gatherSSE(&dst[0], &x[0], &offsets[0], len(offsets), width, n)
	default:
		gatherGo(dst, x, offsets, width, n)
	}
}

func taps(y, x, w []float32, offsets []int32, n, rows, ystep, xstep int) {
	k := len(offsets)
	tier := kernels.Active()
	if k == 0 {
		tier = kernels.Scalar
	}
	switch tier {
	case kernels.AVX512:
		tapsAVX512(&y[0], &x[0], &w[0], &offsets[0], k, n, rows, ystep, xstep)
	case kernels.AVX2:
		tapsAVX2(&y[0], &x[0], &w[0], &offsets[0], k, n, rows, ystep, xstep)
	case kernels.SSE:
		tapsSSE(&y[0], &x[0], &w[0], &offsets[0], k, n, rows, ystep, xstep)
	default:
		tapsGo(y, x, w, offsets, n, rows, ystep, xstep)
	}
}
