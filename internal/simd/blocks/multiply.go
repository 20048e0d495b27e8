package blocks

import (
	"sync"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Dequantize writes the values of row r from lo on, whole blocks: those of quant.Dequantize, bit for bit.
func (w *Weights) Dequantize(y []float32, r, lo int) {
	if w.sideDequantize(y, r, lo) {
		return
	}
	m := rooms.Get().(*room)
	m.enter(w, r)
	for len(y) > 0 {
		n := min(Piece, len(y))
		m.values(y[:n], lo)
		y, lo = y[n:], lo+n
	}
	m.leave()
}

// DequantizeRows writes n values, at most [Piece], of each of some rows from lo on, whole blocks. Those of rows below 0 are zeros.
func (w *Weights) DequantizeRows(y []float32, rows []int, lo, n int) {
	m := rooms.Get().(*room)
	for i, r := range rows {
		to := y[i*n:][:n]
		switch {
		case r < 0:
			clear(to)
		case w.sideDequantize(to, r, lo):
		default:
			m.enter(w, r)
			m.values(to, lo)
		}
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
	if m == 1 && w.rowsFloats(y[lo:hi], x, lo) {
		return
	}
	room := rooms.Get().(*room)
	for r := lo; r < hi; r++ {
		var sums [Most]float64
		room.enter(w, r)
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

// Many8 says whether Multiply8 of many rows is faster than products of floats.
func Many8() bool { return inLanes() || side() }

// Multiply8 is Multiply with rows of x in 8 bits, any number of them. What the integers stand above zero, and the minima, are
// subtracted as products with the sums of x.
func (w *Weights) Multiply8(y []float32, ldy int, x RoundedRows, lo, hi int) {
	if w.sideMultiply8(y, ldy, x, lo, hi) {
		return
	}
	if x.Rows > 1 {
		w.multiplySeveral(y, ldy, x, lo, hi)
		return
	}
	row := x.Row(0)
	if w.rows8(y[lo:hi], &row, lo) {
		return
	}
	room := rooms.Get().(*room)
	for r := lo; r < hi; r++ {
		sum := 0.0
		room.enter(w, r)
		for at := 0; at < w.Cols; at += most {
			n := min(most, w.Cols-at)
			room.scales(at, n)
			minima := room.weigh(&row, room.a[:], room.b[:], at, n)
			sum += float64(room.product(row.Q[at:][:n], at, n)) - float64(minima)
		}
		y[r] = float32(sum)
	}
	room.leave()
}

// weigh makes the room's weights those of n values from lo on: scales a times those of x. It returns what is to be subtracted
// from the product with x.
func (m *room) weigh(x *Rounded, a, b []float32, lo, n int) float32 {
	least, factor, groups := m.minima(a, b), m.raise(), n/m.width
	scale, sum := x.groups(m.width, lo/m.width, groups)
	return factor * weigh(m.s[:groups], a, scale, least, sum)
}

// minima are what is subtracted for each group, divided by raise.
func (m *room) minima(a, b []float32) []float32 {
	if m.affine {
		return b
	}
	return a
}

func (m *room) raise() float32 {
	if m.affine {
		return 1
	}
	return raised(m.format)
}

const (
	// piece8 is how many values of eight rows of x stay in L1 while they meet rows of weights: a multiple of all
	// blocks.
	piece8 = 4096
	// Held is how many rows of weights are unpacked before many rows of x are multiplied with them; for few rows of x they
	// are few, and for two so few that they stay in L1 beside them.
	Held    = 64
	heldFew = 8
	heldTwo = 2
)

// unpacked is a piece of a row that several rows of x are multiplied with.
type unpacked struct {
	q    [piece8]int8
	a, b [piece8/16 + 16]float32
	_    [32]byte // sizes are multiples of 64, and there are no pointers, so that vectors are aligned
}

var pieces = sync.Pool{New: func() any { return new([Held]unpacked) }}

// multiplySeveral unpacks a piece of some rows of weights once and multiplies it with all rows of x.
func (w *Weights) multiplySeveral(y []float32, ldy int, x RoundedRows, lo, hi int) {
	room, own := rooms.Get().(*room), pieces.Get().(*[Held]unpacked)
	held := Held
	switch {
	case x.Rows == 2:
		held = heldTwo
	case x.Rows <= Most:
		held = heldFew
	}
	for lo < hi {
		part := own[:min(held, hi-lo)]
		for i := 0; w.Cols == 0 && i < x.Rows; i++ {
			clear(y[i*ldy+lo:][:len(part)])
		}
		for at := 0; at < w.Cols; at += piece8 {
			n := min(piece8, w.Cols-at)
			for r := range part {
				u := &part[r]
				room.enter(w, lo+r)
				room.unpackScales(u.a[:n/w.width], u.b[:n/w.width], at/w.block)
				room.prepare(u, at, n)
			}
			for i := 0; i < x.Rows; i += Most {
				room.products(part, x, i, at, n)
				for j := range min(Most, x.Rows-i) {
					to, sums := y[(i+j)*ldy+lo:][:len(part)], room.sums[:len(part)]
					if at > 0 {
						for r := range sums {
							to[r] += sums[r][j]
						}
						continue
					}
					for r := range sums {
						to[r] = sums[r][j]
					}
				}
			}
		}
		lo += len(part)
	}
	pieces.Put(own)
	room.leave()
}

// prepareAsStored unpacks n integers of the room's row, from lo on.
func (m *room) prepareAsStored(u *unpacked, lo, n int) {
	if m.quants == nil {
		copy(u.q[:n], int8s(m.planes[0][lo:]))
		return
	}
	m.unpackQuants(u.q[:n], lo/m.block)
}

// productsEach is products, one by one.
func (m *room) productsEach(u []unpacked, x RoundedRows, first, lo, n int) {
	for i := range min(Most, x.Rows-first) {
		row := x.Row(first + i)
		for r := range u {
			minima := m.weigh(&row, u[r].a[:], u[r].b[:], lo, n)
			m.sums[r][i] = m.dot(u[r].q[:n], row.Q[lo:][:n]) - minima
		}
	}
}

// expanded is the product of floats with the row's values from lo on, which become floats first.
func (m *room) expanded(x []float32, lo int) float32 {
	values := m.y[:len(x)]
	m.values(values, lo)
	return kernels.Dot(values, x)
}
