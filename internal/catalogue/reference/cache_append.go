package reference

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func cacheAppendTable() table {
	return table{
		catalogue.KVAppend: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			r, _ := catalogue.KVAppendShape(in[0].Shape, in[1].Shape, in[2].Shape) // checked
			return appendRows(in, r, max(0, r.N-r.Capacity), out, func(b, position int) (int, bool) {
				return b*r.Capacity + position%max(r.Capacity, 1), r.Capacity > 0
			})
		})},
		catalogue.KVAppendPaged: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			r, p, _ := catalogue.KVAppendPagedShape(in[0].Shape, in[1].Shape, in[2].Shape, in[3].Shape) // checked
			table := integers(in[3])
			return appendRows(in, r, 0, out, func(b, position int) (int, bool) { return p.Slot(table, b, position) })
		})},
	}
}

// appendRows is a cache with rows written to the slots that place gives for a sequence and a position, where there is one.
func appendRows(in []Array, r catalogue.CacheRows, first int, out program.Type, place func(b, position int) (int, bool)) []float64 {
	y := slices.Clone(in[0].Data)
	write := func(slot int, row []float64) {
		for c, v := range row {
			y[slot*r.Width+c] = Rounded(v, out.DType)
		}
	}
	if out.DType == compute.Uint32 {
		words := in[0].Shape[2]
		write = func(slot int, row []float64) { packRow(y[slot*words:][:words], row) }
	}
	for b := range r.Batch {
		for i := first; i < r.N; i++ {
			position := int(in[2].Data[b]) + i
			if position < 0 || position > math.MaxInt32 {
				continue
			}
			slot, ok := place(b, position)
			if !ok {
				continue
			}
			write(slot, in[1].Data[(b*r.N+i)*r.Width:][:r.Width])
		}
	}
	return y
}

// packRow makes the words of a packed row of values.
func packRow(words, row []float64) {
	bytes := make([]byte, 4*len(words))
	for b := 0; b < len(row); b += catalogue.CacheBlock {
		block := row[b:][:catalogue.CacheBlock]
		largest, finite := 0.0, true
		for _, x := range block {
			largest = max(largest, math.Abs(x))
			finite = finite && math.Abs(x) <= math.MaxFloat32
		}
		scale := Rounded(float64(float32(largest)*(1.0/127)), compute.Float16)
		bits := float16.Fromfloat32(float32(scale)).Bits()
		if finite = finite && !math.IsInf(scale, 0); !finite {
			bits = 0x7e00
		}
		for i, x := range block {
			if finite && scale > 0 {
				bytes[b+i] = byte(int8(max(-127, min(127, math.Round(x/scale)))))
			}
		}
		binary.LittleEndian.PutUint16(bytes[len(row)+b/catalogue.CacheBlock*2:], bits)
	}
	for i := range words {
		words[i] = float64(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
}
