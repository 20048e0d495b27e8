package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

func (s *shape) gather(dst, x []float32, offsets []int32, width, n int) {
	gatherGo(dst, x, offsets, width, n)
}

func (*shape) gatherTwo(_, _ []float32, _ []int32, _, _, _ int) bool { return false }

func taps(y, x, w []float32, offsets []int32, n, rows, ystep, xstep int) {
	if len(offsets) == 0 || kernels.Active() == kernels.Scalar {
		tapsGo(y, x, w, offsets, n, rows, ystep, xstep)
		return
	}
	kernels.GemmTaps(&y[0], &x[0], &w[0], &offsets[0], len(offsets), n, rows, ystep, xstep)
}

// Filters, Fills and apart are constants so that no page loads what it cannot use.
const (
	Filters = false
	Fills   = false
	apart   = false
)

func hasFilter(int, int) bool { return false }

func filter(_, _, _ []float32, _ []int32, _, _, _, _, _ int) {}

func spreadLines(y, x []float32, n, rows, ystep, xstep, stride, _ int) {
	spreadLinesGo(y, x, n, rows, ystep, xstep, stride)
}
