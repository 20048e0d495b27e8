package reference

import (
	"math"
	"slices"

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
			for c, v := range in[1].Data[(b*r.N+i)*r.Width:][:r.Width] {
				y[slot*r.Width+c] = Rounded(v, out.DType)
			}
		}
	}
	return y
}
