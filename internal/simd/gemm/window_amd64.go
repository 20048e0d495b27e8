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

// gatherTwo packs a panel of n columns, more than a vector, of which those from first on are of the next line, gap elements further; it
// reports whether the tier has it.
func (s *shape) gatherTwo(dst, x []float32, offsets []int32, first, gap, n int) bool {
	if s.tier != kernels.AVX512 || n <= s.lanes {
		return false
	}
	_ = dst[len(offsets)*2*s.lanes-1] // offsets are the caller's to get right
	gatherTwoAVX512(&dst[0], &x[0], &offsets[0], len(offsets), first, gap, n)
	return true
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

// Filters says whether there is a tier for which [HasFilter] may be true, Fills whether [Windows.Multiply] may be given fill, apart
// whether columns of C are computed apart.
const (
	Filters = true
	Fills   = true
	apart   = true
)

func hasFilter(size, stride int) bool {
	tier := kernels.Active()
	if tier != kernels.AVX2 && tier != kernels.AVX512 {
		return false
	}
	return (size == 3 || size == 5) && (stride == 1 || stride == 2) || size == 7 && stride == 1
}

func filter(y, x, w []float32, offsets []int32, n, rows, ystep, xstep, stride int) {
	size := len(offsets)
	if kernels.Active() == kernels.AVX512 {
		switch {
		case size == 3 && stride == 1:
			filter3AVX512(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
		case size == 5 && stride == 1:
			filter5AVX512(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
		case size == 7 && stride == 1:
			filter7AVX512(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
		case size == 3 && stride == 2:
			filter3by2AVX512(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
		case size == 5 && stride == 2:
			filter5by2AVX512(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
		}
		return
	}
	switch {
	case size == 3 && stride == 1:
		filter3AVX2(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
	case size == 5 && stride == 1:
		filter5AVX2(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
	case size == 7 && stride == 1:
		filter7AVX2(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
	case size == 3 && stride == 2:
		filter3by2AVX2(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
	case size == 5 && stride == 2:
		filter5by2AVX2(&y[0], &x[0], &w[0], &offsets[0], n, rows, ystep, xstep)
	}
}

func spreadLines(y, x []float32, n, rows, ystep, xstep, stride, ahead int) {
	tier := kernels.Active()
	switch {
	case stride > 2:
		spreadLinesGo(y, x, n, rows, ystep, xstep, stride)
	case stride == 2 && tier >= kernels.AVX2:
		spread2AVX2(&y[0], &x[0], n, rows, ystep, xstep, ahead)
	case stride == 2 && tier == kernels.SSE:
		spread2SSE(&y[0], &x[0], n, rows, ystep, xstep, ahead)
	case tier == kernels.AVX512:
		spread1AVX512(&y[0], &x[0], n, rows, ystep, xstep, ahead)
	case tier == kernels.AVX2:
		spread1AVX2(&y[0], &x[0], n, rows, ystep, xstep, ahead)
	case tier == kernels.SSE:
		spread1SSE(&y[0], &x[0], n, rows, ystep, xstep, ahead)
	default:
		spreadLinesGo(y, x, n, rows, ystep, xstep, stride)
	}
}
