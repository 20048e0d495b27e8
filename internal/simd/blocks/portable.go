package blocks

import (
	"encoding/binary"
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// The first step in portable Go. Package quant says what the bits are.

func int8s(b []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

func half(b []byte) float32 { return kernels.Half(binary.LittleEndian.Uint16(b)) }

// nibbles is for the formats of 32 values. Those of five bits have their own plane for the fifth.
func nibbles(q []int8, w *row, lo int) {
	for ; len(q) > 0; q, lo = q[32:], lo+1 {
		high := uint32(0)
		if w.size[1] == 4 && w.size[2] > 0 {
			high = binary.LittleEndian.Uint32(w.planes[1][4*lo:])
		}
		low, x := (*[16]byte)(w.planes[0][16*lo:]), (*[32]int8)(q)
		for j, b := range low {
			x[j] = int8(b&15) | int8(high>>j&1<<4)
			x[j+16] = int8(b>>4) | int8(high>>(j+16)&1<<4)
		}
	}
}

// halfScales is for blocks that have a half as scale in their last plane, followed by another half that is added.
func halfScales(a, b []float32, w *row, lo int) {
	last := 1
	if w.size[2] > 0 {
		last = 2
	}
	size := w.size[last]
	plane := w.planes[last][size*lo:]
	if !w.affine {
		kernels.WidenF16(a, unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(plane))), len(a)))
		return
	}
	for i := range a {
		a[i], b[i] = half(plane[4*i:]), -half(plane[4*i+2:])
	}
}

func quantsQ2K(q []int8, w *row, lo int) {
	for ; len(q) > 0; q, lo = q[256:], lo+1 {
		block := w.planes[0][w.size[0]*lo:]
		for s := range 16 {
			pairs(q[16*s:], block[quant.Q2_KQuants:], s)
		}
	}
}

// pairs is the two bits of sub-block s in Q2_K and Q3_K.
func pairs(q []int8, quants []byte, s int) {
	low, x, shift := (*[16]byte)(quants[s/8*32+s&1*16:]), (*[16]int8)(q), s%8/2*2
	for l := range x {
		x[l] = int8(low[l] >> shift & 3)
	}
}

func scalesQ2K(a, b []float32, w *row, lo int) {
	for ; len(a) > 0; a, b, lo = a[16:], b[16:], lo+1 {
		d, m := half(w.planes[1][4*lo:]), half(w.planes[1][4*lo+2:])
		for s, v := range w.planes[0][w.size[0]*lo:][:16] {
			a[s], b[s] = d*float32(v&15), m*float32(v>>4)
		}
	}
}

func quantsQ3K(q []int8, w *row, lo int) {
	for ; len(q) > 0; q, lo = q[256:], lo+1 {
		block := w.planes[0][w.size[0]*lo:]
		for s := range 16 {
			pairs(q[16*s:], block[quant.Q3_KQuants:], s)
			high, x := (*[16]byte)(block[s&1*16:]), (*[16]int8)(q[16*s:])
			for l := range x {
				x[l] |= int8(high[l] >> (s / 2) & 1 << 2)
			}
		}
	}
}

func scalesQ3K(a, _ []float32, w *row, lo int) {
	for ; len(a) > 0; a, lo = a[16:], lo+1 {
		d := half(w.planes[2][2*lo:])
		for s, v := range quant.UnpackScalesQ3K((*[12]byte)(w.planes[1][12*lo:])) {
			a[s] = d * float32(v)
		}
	}
}

// quantsK4 is for Q4_K and Q5_K.
func quantsK4(q []int8, w *row, lo int) {
	for ; len(q) > 0; q, lo = q[256:], lo+1 {
		block := w.planes[0][w.size[0]*lo:][:w.size[0]]
		low := block[len(block)-128:]
		for g := range 4 {
			low, x := (*[32]byte)(low[32*g:]), (*[64]int8)(q[64*g:])
			for l, b := range low {
				x[l], x[l+32] = int8(b&15), int8(b>>4)
			}
		}
		if w.Type == quant.Q5_K {
			high := (*[32]byte)(block[quant.Q5_KHigh:])
			for s := range 8 {
				x := (*[32]int8)(q[32*s:])
				for l := range x {
					x[l] |= int8(high[l] >> s & 1 << 4)
				}
			}
		}
	}
}

func scalesK4(a, b []float32, w *row, lo int) {
	for ; len(a) > 0; a, b, lo = a[8:], b[8:], lo+1 {
		block := w.planes[0][w.size[0]*lo:]
		d, m := half(block[quant.Q4_KScale:]), half(block[quant.Q4_KMin:])
		scales, mins := quant.UnpackScalesK4((*[12]byte)(block[quant.Q4_KScales:]))
		for s := range scales {
			a[s], b[s] = d*float32(scales[s]), m*float32(mins[s])
		}
	}
}

func quantsQ6K(q []int8, w *row, lo int) {
	for ; len(q) > 0; q, lo = q[256:], lo+1 {
		block := w.planes[0][w.size[0]*lo:]
		for h := range 2 {
			low, high := (*[64]byte)(block[quant.Q6_KLow+64*h:]), (*[32]byte)(block[quant.Q6_KHigh+32*h:])
			x := (*[128]int8)(q[128*h:])
			for l, u := range high {
				a, b := low[l], low[l+32]
				x[l], x[l+32] = int8(a&15|u&3<<4), int8(b&15|u>>2&3<<4)
				x[l+64], x[l+96] = int8(a>>4|u>>4&3<<4), int8(b>>4|u>>6<<4)
			}
		}
	}
}

func scalesQ6K(a, _ []float32, w *row, lo int) {
	for ; len(a) > 0; a, lo = a[16:], lo+1 {
		d := half(w.planes[1][2*lo:])
		for s, v := range w.planes[0][w.size[0]*lo+quant.Q6_KScales:][:16] {
			a[s] = d * float32(int8(v))
		}
	}
}

// expandGo writes values, a·(q − offset) − b. Without minima, b is not read.
func expandGo(y []float32, q []int8, a, b []float32, f *format) {
	for s := range len(y) / f.width {
		y, q, a := y[s*f.width:][:f.width], q[s*f.width:][:f.width], a[s]
		if f.affine {
			for i, v := range q {
				y[i] = float32(a*float32(v)) - b[s]
			}
			continue
		}
		for i, v := range q {
			y[i] = a * (float32(v) - f.offset)
		}
	}
}

// dotGo is the sum over groups of s times the integers' product.
func dotGo(q, x []int8, s []float32, width int) float32 {
	sum := float32(0)
	for i := 0; i < len(q); i += width {
		q, x, part := q[i:i+width], x[i:i+width], int32(0)
		for j, v := range q {
			part += int32(v) * int32(x[j])
		}
		sum += float32(float32(part) * s[i/width])
	}
	return sum
}

// weighGo sets s to a·scale, and returns the sum of b·sum.
func weighGo(s, a, scale, b, sum []float32) float32 {
	total := float32(0)
	for i := range s {
		s[i] = a[i] * scale[i]
		total += float32(b[i] * sum[i])
	}
	return total
}
