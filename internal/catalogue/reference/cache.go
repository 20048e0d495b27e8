package reference

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func cacheTable() table {
	return table{
		catalogue.PagedAttention: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			in = unpackedCaches(in, 4)
			return attended(out, in[2], func(f func(r queryRow)) { eachPagedQuery(in, a, f) })
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				in = unpackedCaches(in, 4)
				return attendedMagnitude(out, in[2], func(f func(r queryRow)) { eachPagedQuery(in, a, f) })
			})},
	}
}

// unpackedCaches are the operands of an attention with keys and values as numbers, of so many axes.
func unpackedCaches(in []Array, axes int) []Array {
	if len(in[1].Shape) == axes {
		return in
	}
	in = slices.Clone(in)
	d := in[0].Shape[len(in[0].Shape)-1]
	for i := 1; i < 3; i++ {
		lead := in[i].Shape[:axes-2]
		rows := 1
		for _, n := range lead {
			rows *= n
		}
		w := dequantized(Array{[]int{rows, in[i].Shape[axes-2]}, in[i].Data}, catalogue.CacheFormat)
		in[i] = Array{append(slices.Clone(lead), w.Shape[1]/d, d), w.Data}
	}
	return in
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
