//go:build !amd64 && !js

package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

func (s *shape) gather(dst, x []float32, offsets []int32, width, n int) {
	gatherGo(dst, x, offsets, width, n)
}

func (*shape) gatherTwo(_, _ []float32, _ []int32, _, _, _ int) bool { return false }

// taps goes row by row of the operand, with the kernel of the tier.
func taps(y, x, w []float32, offsets []int32, n, rows, ystep, xstep int) {
	for r := range rows {
		y, x := y[r*ystep:][:n], x[r*xstep:]
		clear(y)
		for p, at := range offsets {
			kernels.Axpy(y, y, x[at:][:n], w[p])
		}
	}
}

// Filters says whether there is a tier for which [HasFilter] may be true, Fills whether [Windows.Multiply] may be given fill, apart
// whether columns of C are computed apart.
const (
	Filters = false
	Fills   = true
	apart   = true
)

func hasFilter(int, int) bool { return false }

func filter(_, _, _ []float32, _ []int32, _, _, _, _, _ int) {}

func spreadLines(y, x []float32, n, rows, ystep, xstep, stride, _ int) {
	spreadLinesGo(y, x, n, rows, ystep, xstep, stride)
}
