package blocks

import "github.com/wavelane/wavelane/internal/simd/kernels"

const (
	// Strip is the most columns that MultiplyColumns takes: a multiple of all blocks.
	Strip = 256
	// steps is how many rows are added up before their sum is added to others, so that sums stay short.
	steps = 512
)

// MultiplyColumns sets y[i·ldy + j], for columns lo ≤ j < hi of whole blocks, to the products of row i of x with column j,
// for m rows of x. Each row of weights is read once and added to the sums as often as there are rows of x.
func (w *Weights) MultiplyColumns(y []float32, ldy int, x []float32, m, lo, hi int) {
	room := rooms.Get().(*room)
	sums := room.y[:Strip*m]
	var values [Strip]float32
	n := hi - lo
	for i := range m {
		clear(y[i*ldy+lo:][:n])
	}
	for first := 0; first < w.Rows; first += steps {
		end := min(first+steps, w.Rows)
		clear(sums)
		if !w.sideColumns(sums, x, m, first, end, lo, hi) {
			for r := first; r < end; r++ {
				room.enter(w, r)
				room.values(values[:n], lo)
				for i := range m {
					sum := sums[i*Strip:][:n]
					kernels.Axpy(sum, sum, values[:n], x[i*w.Rows+r])
				}
			}
		}
		for i := range m {
			to := y[i*ldy+lo:][:n]
			kernels.Add(to, to, sums[i*Strip:][:n])
		}
	}
	room.leave()
}
