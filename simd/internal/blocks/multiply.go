package blocks

import "github.com/wavelane/wavelane/simd/internal/kernels"

// Dequantize writes the values of row r from lo on, whole blocks: those of quant.Dequantize, bit for bit.
func (w *Weights) Dequantize(y []float32, r, lo int) {
	m := rooms.Get().(*room)
	m.row = w.rowAt(r)
	for len(y) > 0 {
		n := min(Piece, len(y))
		m.values(y[:n], lo)
		y, lo = y[n:], lo+n
	}
	m.leave()
}

// values writes the values of the room's row from lo on: a piece at most.
func (m *room) values(y []float32, lo int) {
	m.scales(lo, len(y))
	m.expand(y, m.integers(lo, len(y)))
}

// Most is the most rows of x that a call of Multiply or Multiply8 takes: each reads the weights once.
const Most = 8

// Multiply sets y[i·ldy + r], for rows of weights lo ≤ r < hi, to their products with row i of x, of m rows.
func (w *Weights) Multiply(y []float32, ldy int, x []float32, m, lo, hi int) {
	room := rooms.Get().(*room)
	for r := lo; r < hi; r++ {
		var sums [Most]float64
		room.row = w.rowAt(r)
		for at := 0; at < w.Cols; at += Piece {
			n := min(Piece, w.Cols-at)
			if m == 1 {
				sums[0] += float64(room.productFloats(x[at:][:n], at))
				continue
			}
			values := room.y[:n]
			room.values(values, at)
			for i := range m {
				sums[i] += float64(kernels.Dot(values, x[i*w.Cols+at:][:n]))
			}
		}
		for i := range m {
			y[i*ldy+r] = float32(sums[i])
		}
	}
	room.leave()
}

// Multiply8 is Multiply with rows of x in 8 bits, any number of them. What the integers stand above zero, and the minima, are
// subtracted as products with the sums of x.
func (w *Weights) Multiply8(y []float32, ldy int, x []Rounded, lo, hi int) {
	if len(x) > 1 {
		w.multiplySeveral(y, ldy, x, lo, hi)
		return
	}
	room := rooms.Get().(*room)
	for r := lo; r < hi; r++ {
		sum := 0.0
		room.row = w.rowAt(r)
		for at := 0; at < w.Cols; at += most {
			n := min(most, w.Cols-at)
			room.scales(at, n)
			minima := room.weigh(&x[0], at, n)
			sum += float64(room.product(x[0].Q[at:][:n], at, n)) - float64(minima)
		}
		y[r] = float32(sum)
	}
	room.leave()
}

// weigh makes the room's weights those of n values from lo on: scales times those of x. It returns what is to be subtracted from the
// product with x.
func (m *room) weigh(x *Rounded, lo, n int) float32 {
	least, factor, groups := m.a[:], raised(m.format), n/m.width
	if m.affine {
		least, factor = m.b[:], 1
	}
	scale, sum := x.groups(m.width, lo/m.width, groups)
	return factor * weigh(m.s[:groups], m.a[:], scale, least, sum)
}

const (
	// piece8 is how many values of eight rows of x stay in the first cache while they meet rows of weights.
	piece8 = 2048
	// held is how many rows of weights are unpacked before they are multiplied.
	held = 16
)

// multiplySeveral unpacks a piece of some rows of weights once and multiplies it with all rows of x.
func (w *Weights) multiplySeveral(y []float32, ldy int, x []Rounded, lo, hi int) {
	var own [held]*room
	for i := range min(held, hi-lo) {
		own[i] = rooms.Get().(*room)
	}
	for lo < hi {
		part := own[:min(held, hi-lo)]
		for i := 0; w.Cols == 0 && i < len(x); i++ {
			clear(y[i*ldy+lo:][:len(part)])
		}
		for at := 0; at < w.Cols; at += piece8 {
			n := min(piece8, w.Cols-at)
			for r, m := range part {
				m.row = w.rowAt(lo + r)
				m.scales(at, n)
				m.prepare(at, n)
			}
			for i := 0; i < len(x); i += Most {
				x := x[i:min(i+Most, len(x))]
				for r, m := range part {
					var sums [Most]float32
					m.products(&sums, x, at, n)
					for j := range x {
						to := &y[(i+j)*ldy+lo+r]
						if at > 0 {
							sums[j] += *to
						}
						*to = sums[j]
					}
				}
			}
		}
		lo += len(part)
	}
	for _, m := range own {
		if m != nil {
			m.leave()
		}
	}
}

// productsEach is products, one by one.
func (m *room) productsEach(sums *[Most]float32, x []Rounded, lo, n int) {
	for i := range x {
		minima := m.weigh(&x[i], lo, n)
		sums[i] = m.dot(m.unpacked, x[i].Q[lo:][:n]) - minima
	}
}

// expanded is the product of floats with the row's values from lo on, which become floats first.
func (m *room) expanded(x []float32, lo int) float32 {
	values := m.y[:len(x)]
	m.values(values, lo)
	return kernels.Dot(values, x)
}
