package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func expertTable() table {
	return table{
		catalogue.MatMulExperts: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			return expertProducts(in[0], in, a, out, dequantized)
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				o := a.Options.(compute.ExpertOptions)
				if o.Format == 0 {
					in = []Array{in[0], Absolute(in[1:2])[0], in[2]}
				}
				return expertProducts(yardstick8(in[0], o.Q8), in, a, out, weightYardstick)
			})},
	}
}

// expertProducts multiplies rows of x with the matrices that they choose; packed says what packed weights stand for.
func expertProducts(x Array, in []Array, a program.Attr, out program.Type, packed func(w Array, f compute.BlockFormat) Array) []float64 {
	o := a.Options.(compute.ExpertOptions)
	w := Array{Shape: []int{in[1].Shape[0] * in[1].Shape[1], in[1].Shape[2]}, Data: in[1].Data}
	n, outside := in[1].Shape[1], math.NaN()
	if o.Format != 0 {
		w, outside = packed(w, o.Format), 0
	}
	k := w.Shape[1]
	used := 1
	if len(x.Shape) == len(in[2].Shape) { // x has a row for several
		used = in[2].Shape[len(in[2].Shape)-1]
	}
	y := make([]float64, 0, out.Len())
	for i, e := range in[2].Data {
		for j := range n {
			sum := outside
			if e >= 0 && int(e) < in[1].Shape[0] {
				sum = dot(x.Data[i/used*k:][:k], w.Data[(int(e)*n+j)*k:][:k])
			}
			y = append(y, sum)
		}
	}
	return y
}
