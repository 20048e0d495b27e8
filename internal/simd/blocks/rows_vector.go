//go:build amd64 || arm64

package blocks

import (
	"slices"
	"sync"
	"unsafe"
)

// A rowFunction multiplies rows of n blocks, stride bytes apart, with a row of x, integers or floats; see internal/simd/asmgen.
type rowFunction = func(y *float32, x *byte, scale, sum *float32, w *byte, stride, plane1, plane2, n, rows int)

func (w *Weights) multiplyRows(f rowFunction, y []float32, x *byte, scale, sum *float32, lo int) {
	n := w.Cols / w.block
	plane1 := n * w.size[0]
	f(&y[0], x, scale, sum, &w.data[w.RowBytes()*lo], w.RowBytes(), plane1, plane1+n*w.size[1], n, len(y))
}

// multiplySummed is multiplyRows with a function that adds up products with floats by group, and needs the sums of x.
func (w *Weights) multiplySummed(f rowFunction, y, x []float32, lo int) {
	sums := groupSums(x, w.width)
	w.multiplyRows(f, y, bytesAt(x), nil, &(*sums)[0], lo)
	spareSums.Put(sums)
	w.finite(y, x, lo)
}

var spareSums = sync.Pool{New: func() any { return new([]float32) }}

// groupSums are the sums of groups of x, in memory that goes back to spareSums.
func groupSums(x []float32, width int) *[]float32 {
	n, sums := len(x)/width, spareSums.Get().(*[]float32)
	*sums = slices.Grow((*sums)[:0], n)[:n]
	if width == 16 {
		groupSums16(&(*sums)[0], &x[0], n)
	} else {
		groupSums32(&(*sums)[0], &x[0], n)
	}
	return sums
}

// finite computes anew what is not finite: sums of x times integers may be too large where their products with scales are not.
func (w *Weights) finite(y, x []float32, lo int) {
	for r, v := range y {
		if v-v == 0 {
			continue
		}
		m, sum := rooms.Get().(*room), 0.0
		m.enter(w, lo+r)
		for at := 0; at < len(x); at += Piece {
			sum += float64(m.expanded(x[at:min(at+Piece, len(x))], at))
		}
		y[r] = float32(sum)
		m.leave()
	}
}

func bytesAt(x []float32) *byte { return (*byte)(unsafe.Pointer(&x[0])) }
