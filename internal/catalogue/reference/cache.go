package reference

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func cacheTable() table {
	return table{
		catalogue.PagedAttention: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			return attended(out, in[2], func(f func(r queryRow)) { eachPagedQuery(in, a, f) })
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				return attendedMagnitude(out, in[2], func(f func(r queryRow)) { eachPagedQuery(in, a, f) })
			})},
	}
}

// eachPagedQuery is eachQuery over pages.
func eachPagedQuery(in []Array, a program.Attr, f func(r queryRow)) {
	d, p, _ := catalogue.PagedShape(in[0].Shape, in[1].Shape, in[2].Shape, in[3].Shape, in[4].Shape, a.Options.(compute.AttentionOptions)) // checked
	table := integers(in[3])
	for b := range d.Batch {
		used := min(max(int(in[4].Data[b]), 0), d.NK)
		eachOf(d, b, used, in[0], in[1], func(head, t int) (int, bool) {
			slot, ok := p.Slot(table, b, t)
			return (slot*d.KVHeads + head) * d.D, ok
		}, f)
	}
}

func integers(x Array) []int32 {
	n := make([]int32, len(x.Data))
	for i, v := range x.Data {
		n[i] = int32(v)
	}
	return n
}
