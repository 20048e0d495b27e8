package blocks

import "github.com/wavelane/wavelane/simd/internal/kernels"

// Dequantize writes the values of row r from lo on, whole blocks: those of quant.Dequantize, bit for bit.
func (w *Weights) Dequantize(y []float32, r, lo int) {
	if w.sideDequantize(y, r, lo) {
		return
	}
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
	if w.sideMultiply(y, ldy, x, m, lo, hi) {
		return
	}
	room := rooms.Get().(*room)
	for r := lo; r < hi; r++ {
		var sums [Most]float64
		room.row = w.rowAt(r)
		for at := 0; at < w.Cols; at += Piece {
			n := min(Piece, w.Cols-at)
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

// Multiply8 is Multiply with rows of x in 8 bits. What the integers stand above zero, and the minima, are subtracted as products with
// the sums of x.
func (w *Weights) Multiply8(y []float32, ldy int, x []Rounded, lo, hi int) {
	if w.sideMultiply8(y, ldy, x, lo, hi) {
		return
	}
	room := rooms.Get().(*room)
	least, factor := room.a[:], raised(w.format)
	if w.affine {
		least, factor = room.b[:], 1
	}
	for r := lo; r < hi; r++ {
		var sums [Most]float64
		room.row = w.rowAt(r)
		for at := 0; at < w.Cols; at += most {
			n := min(most, w.Cols-at)
			groups := n / w.width
			room.scales(at, n)
			var q []int8
			if len(x) > 1 {
				q = room.integers(at, n)
			}
			for i := range x {
				scale, sum := x[i].groups(w.width, at/w.width, groups)
				minima := weigh(room.s[:groups], room.a[:], scale, least, sum)
				x, part := x[i].Q[at:][:n], float32(0)
				if q == nil {
					part = room.product(x, at, n)
				} else {
					part = room.dot(q, x)
				}
				sums[i] += float64(part) - float64(factor*minima)
			}
		}
		for i := range x {
			y[i*ldy+r] = float32(sums[i])
		}
	}
	room.leave()
}
