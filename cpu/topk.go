package cpu

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/simd"
)

// topK lowers top_k: each row by itself or, if it is long, by parts, whose largest are then chosen among. Of equal ones those of an
// earlier part have lower indices, and within a part they come in their order.
func topK(c *call) work {
	k := c.attr.Options.(compute.TopKOptions).K
	rows, cols := program.RowsCols(c.in[0].Shape)
	part := max(1<<16, 4*k)
	parts := engine.CeilDiv(cols, part)
	const ns = 0.5
	results := func(a *args, row int) ([]float32, []int32) {
		return a.outs[0].f32()[row*k : (row+1)*k], a.outs[1].i32()[row*k : (row+1)*k]
	}
	if parts == 1 {
		return one(rows, 50+20*float64(k)+ns*float64(cols), func(a *args, lo, hi int) {
			for row := lo; row < hi; row++ {
				values, indices := results(a, row)
				simd.TopK(values, indices, a.in[0].f32()[row*cols:(row+1)*cols])
			}
		})
	}
	// What parts of a row give lies one after the other; the last may have fewer than k.
	units := rows * parts
	last := min(k, cols-(parts-1)*part)
	kept := (parts-1)*k + last
	found := func(a *args) ([]float32, []int32) {
		w := words32(a)
		return w[:rows*kept], view{a.scratch.p, 2 * a.scratch.n}.i32()[rows*kept : 2*rows*kept]
	}
	return work{scratch: 8 * rows * kept, phases: []phase{
		{units: units, ns: 20*float64(k) + ns*float64(part), do: func(a *args, lo, hi int) {
			values, indices := found(a)
			for u := lo; u < hi; u++ {
				row, p := u/parts, u%parts
				from, n := p*part, k
				if p == parts-1 {
					n = last
				}
				at := row*kept + p*k
				simd.TopK(values[at:at+n], indices[at:at+n], a.in[0].f32()[row*cols+from:row*cols+min(from+part, cols)])
				for i := at; i < at+n; i++ {
					indices[i] += int32(from)
				}
			}
		}},
		{units: rows, ns: 40 * float64(kept), do: func(a *args, lo, hi int) {
			values, indices := found(a)
			for row := lo; row < hi; row++ {
				y, at := results(a, row)
				simd.TopK(y, at, values[row*kept:(row+1)*kept])
				for i, j := range at {
					at[i] = indices[row*kept+int(j)]
				}
			}
		}},
	}}
}
