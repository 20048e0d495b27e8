package cpu

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

func kvAppend(c *call) work {
	r, _ := catalogue.KVAppendShape(c.in[0].Shape, c.in[1].Shape, c.in[2].Shape) // checked
	return appendRows(c, r, max(0, r.N-r.Capacity), func(_ *args, sequence, position int) (int, bool) {
		return sequence*r.Capacity + position%r.Capacity, true
	})
}

func kvAppendPaged(c *call) work {
	r, p, _ := catalogue.KVAppendPagedShape(c.in[0].Shape, c.in[1].Shape, c.in[2].Shape, c.in[3].Shape) // checked
	return appendRows(c, r, 0, func(a *args, sequence, position int) (int, bool) {
		return p.Slot(a.in[3].i32(), sequence, position)
	})
}

// appendRows writes rows from number first on to their slots in the result, which holds the cache already.
func appendRows(c *call, r catalogue.CacheRows, first int, place func(a *args, sequence, position int) (slot int, ok bool)) work {
	n := r.N - first
	from, to := c.in[1].DType, c.out.DType
	words := c.out.Shape[len(c.out.Shape)-1] // of a row, if it is packed
	return one(r.Batch*n, 10+float64(r.Width), func(a *args, lo, hi int) {
		for u := lo; u < hi; u++ {
			sequence, i := u/n, first+u%n
			position := int(a.in[2].i32()[sequence]) + i
			if position < 0 || position > math.MaxInt32 {
				continue
			}
			slot, ok := place(a, sequence, position)
			if !ok {
				continue
			}
			at, row := slot*r.Width, (sequence*r.N+i)*r.Width
			switch {
			case to == compute.Uint32:
				packRow(a.out.u32()[slot*words:][:words], a.in[1].f32()[row:][:r.Width])
			case from == to:
				size := to.Size()
				copy(a.out.bytes(to)[at*size:], a.in[1].bytes(from)[row*size:][:r.Width*size])
			default:
				narrow(a.out, to, at, a.in[1].f32()[row:][:r.Width])
			}
		}
	})
}

// packRow makes a packed row of values: their bytes, the scales of blocks, zeros.
func packRow(words []uint32, x []float32) {
	quants, scales := words[:len(x)/4], words[len(x)/4:]
	clear(scales)
	for b := 0; b < len(x); b += catalogue.CacheBlock {
		block := x[b:][:catalogue.CacheBlock]
		largest, finite := float32(0), true
		for _, v := range block {
			v = abs(v)
			largest = max(largest, v)
			finite = finite && v <= math.MaxFloat32 // not NaN
		}
		scale := compute.F16Of(largest * (1.0 / 127))
		if finite = finite && scale < infinite16; !finite {
			scale = nan16
		}
		at := b / catalogue.CacheBlock
		scales[at/2] |= uint32(scale) << (16 * (at % 2))
		packBlock(quants[b/4:][:catalogue.CacheBlock/4], block, scale.Float32(), finite)
	}
}

// Halves.
const (
	infinite16 compute.F16 = 0x7c00
	nan16      compute.F16 = 0x7e00
)

func packBlock(quants []uint32, x []float32, scale float32, finite bool) {
	if !finite || scale == 0 {
		clear(quants)
		return
	}
	for i := range quants {
		word := uint32(0)
		for j, v := range x[4*i:][:4] {
			// The quotient of what has 24 bits and what has 11 is nowhere so near a half that float64 would round it to one.
			n := int32(min(math.Abs(float64(v))/float64(scale)+0.5, 127))
			if v < 0 {
				n = -n
			}
			word |= uint32(uint8(n)) << (8 * j)
		}
		quants[i] = word
	}
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }
