package blocks

import "github.com/wavelane/wavelane/simd/internal/kernels"

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
	clear(sums)
	for r := range w.Rows {
		room.enter(w, r)
		room.values(values[:n], lo)
		last := r%steps == steps-1 || r == w.Rows-1
		for i := range m {
			sum := sums[i*Strip:][:n]
			kernels.Axpy(sum, sum, values[:n], x[i*w.Rows+r])
			if last {
				to := y[i*ldy+lo:][:n]
				kernels.Add(to, to, sum)
				clear(sum)
			}
		}
	}
	room.leave()
}
