package gemm

import (
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// shapeGo: 2×4 accumulators and their operands fit the 16 registers that scalar code has on amd64.
var shapeGo = shape{tier: kernels.Scalar, mr: 2, nr: 4, lanes: 1, masked: true}

// tileGo computes a tile of at most 2×4 elements.
func tileGo(t *Tile) {
	a := unsafe.Slice(t.A, (t.Rows-1)*t.AI+(t.K-1)*t.AK+1)
	b := unsafe.Slice(t.B, (t.K-1)*t.BK+t.Cols)
	var sum [8]float32
	switch {
	case t.Rows == 2 && t.Cols == 4:
		tile2x4(&sum, a, b, t)
	default:
		for i := range t.Rows {
			for j := range t.Cols {
				s := float32(0)
				for p := range t.K {
					s += a[i*t.AI+p*t.AK] * b[p*t.BK+j]
				}
				sum[i*4+j] = s
			}
		}
	}
	c := unsafe.Slice(t.C, (t.Rows-1)*t.LDC+t.Cols)
	for i := range t.Rows {
		y, from := c[i*t.LDC:][:t.Cols], sum[i*4:]
		if t.Beta == 0 {
			for j := range y {
				y[j] = t.Alpha * from[j]
			}
		} else {
			for j := range y {
				y[j] = t.Beta*y[j] + t.Alpha*from[j]
			}
		}
	}
}

func tile2x4(sum *[8]float32, a, b []float32, t *Tile) {
	var c00, c01, c02, c03, c10, c11, c12, c13 float32
	step := t.AK
	for at, k := 0, 0; k < t.K; k++ {
		a0, a1 := a[at], a[at+t.AI]
		r := b[k*t.BK:][:4]
		b0, b1, b2, b3 := r[0], r[1], r[2], r[3]
		c00 += a0 * b0
		c01 += a0 * b1
		c02 += a0 * b2
		c03 += a0 * b3
		c10 += a1 * b0
		c11 += a1 * b1
		c12 += a1 * b2
		c13 += a1 * b3
		at += step
	}
	*sum = [8]float32{c00, c01, c02, c03, c10, c11, c12, c13}
}

// transposeGo packs lanes whose steps are contiguous, as many as the tier's vectors have: step p of lane i, rows[i][p], to
// dst[p*width+i]. Tiers write a whole vector for each p in ascending order, also where it reaches into the next step's lanes.
//
//	for p := range k { for i := range lanes { dst[p*width+i] = rows[i][p] } }
func transposeGo(dst *float32, rows **float32, width, k int) {
	to, from := unsafe.Slice(dst, (k-1)*width+1), unsafe.Slice(*rows, k)
	for p, v := range from {
		to[p*width] = v
	}
}

// copyPanelsGo packs panels of nr contiguous columns: k rows of panels*nr elements, ld apart.
//
//	for p := range k { for j := range panels { copy(dst[(j*k+p)*nr:][:nr], x[p*ld+j*nr:]) } }
func copyPanelsGo(dst, x *float32, ld, panels, k, nr int) {
	to, from := unsafe.Slice(dst, panels*k*nr), unsafe.Slice(x, (k-1)*ld+panels*nr)
	for p := range k {
		for j := range panels {
			copy(to[(j*k+p)*nr:][:nr], from[p*ld+j*nr:])
		}
	}
}

// copyRimGo packs a panel of at most nr contiguous lanes. Tiers write whole vectors, also where they reach into the next row.
//
//	for p := range k { copy(dst[p*width:], x[p*ld:][:cols]); clear(dst[p*width+cols:][:width-cols]) }
func copyRimGo(dst, x *float32, ld, cols, width, k int) {
	to, from := unsafe.Slice(dst, k*width), unsafe.Slice(x, (k-1)*ld+cols)
	for p := range k {
		row := to[p*width:][:width]
		for i, v := range from[p*ld:][:cols] {
			row[i] = v
		}
		clear(row[cols:])
	}
}
