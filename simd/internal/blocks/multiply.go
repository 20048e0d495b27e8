package blocks

import (
	"sync"

	"github.com/wavelane/wavelane/simd/internal/kernels"
)

var rooms = sync.Pool{New: func() any { return new(room) }}

// Dequantize writes the values of row r from lo on, whole blocks: those of quant.Dequantize, bit for bit.
func (w *Weights) Dequantize(y []float32, r, lo int) {
	m := rooms.Get().(*room)
	x := w.rowAt(r)
	for len(y) > 0 {
		n := min(Piece, len(y))
		expand(y[:n], x.piece(m, lo, n), m, w.format)
		y, lo = y[n:], lo+n
	}
	rooms.Put(m)
}

// Most is the most rows of x that a call of Multiply or Multiply8 takes: each reads the weights once.
const Most = 8

// Multiply sets y[i·ldy + r], for rows of weights lo ≤ r < hi, to their products with row i of x, of m rows.
func (w *Weights) Multiply(y []float32, ldy int, x []float32, m, lo, hi int) {
	room := rooms.Get().(*room)
	for r := lo; r < hi; r++ {
		var sums [Most]float64
		weights := w.rowAt(r)
		for at := 0; at < w.Cols; at += Piece {
			n := min(Piece, w.Cols-at)
			values := room.y[:n]
			expand(values, weights.piece(room, at, n), room, w.format)
			for i := range m {
				sums[i] += float64(kernels.Dot(values, x[i*w.Cols+at:][:n]))
			}
		}
		for i := range m {
			y[i*ldy+r] = float32(sums[i])
		}
	}
	rooms.Put(room)
}

// Multiply8 is Multiply with rows of x in 8 bits.
func (w *Weights) Multiply8(y []float32, ldy int, x []Rounded, lo, hi int) {
	room := rooms.Get().(*room)
	for r := lo; r < hi; r++ {
		var sums [Most]float64
		weights := w.rowAt(r)
		for at := 0; at < w.Cols; at += Piece {
			n := min(Piece, w.Cols-at)
			q, groups := weights.piece(room, at, n), n/w.width
			for i := range x {
				scale, sum := x[i].groups(w.width, at/w.width, groups)
				kernels.Mul(room.s[:groups], room.a[:groups], scale)
				sums[i] += float64(dot(q, x[i].Q[at:][:n], room, w.format))
				switch {
				case w.affine:
					sums[i] -= float64(kernels.Dot(room.b[:groups], sum))
				case w.offset != 0:
					sums[i] -= float64(w.offset * kernels.Dot(room.a[:groups], sum))
				}
			}
		}
		for i := range x {
			y[i*ldy+r] = float32(sums[i])
		}
	}
	rooms.Put(room)
}

func expand(y []float32, q []int8, m *room, f *format) { expandGo(y, q, m.a[:], m.b[:], f) }

func dot(q, x []int8, m *room, f *format) float32 { return dotGo(q, x, m.s[:], f.width) }
