package reference

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func gatherTable() table {
	return table{
		catalogue.Gather: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			d, _ := catalogue.GatherAxis(in[0].Shape, in[1].Shape, a.Options.(compute.GatherOptions))
			return gatherReference(d, in, Missing(out.DType))
		})},
		catalogue.TakeAlong: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			d, _ := catalogue.TakeAlongDims(in[0].Shape, in[1].Shape)
			return gatherReference(d, in, Missing(out.DType))
		})},
	}
}

// Missing is the element that stands where an index is outside.
func Missing(t compute.DType) float64 {
	if t == compute.Int32 || t == compute.Uint32 {
		return 0
	}
	return math.NaN()
}

func gatherReference(d catalogue.GatherDims, in []Array, missing float64) []float64 {
	y := make([]float64, 0, d.Outer*d.Count*d.Inner)
	for o := range d.Outer {
		ids := in[1].Data
		if d.Own {
			ids = ids[o*d.Count:]
		}
		for _, id := range ids[:d.Count] {
			if id < 0 || int(id) >= d.Rows {
				y = append(y, slices.Repeat([]float64{missing}, d.Inner)...)
				continue
			}
			y = append(y, in[0].Data[(o*d.Rows+int(id))*d.Inner:][:d.Inner]...)
		}
	}
	return y
}
