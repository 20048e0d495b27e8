package reference

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func normTable() table {
	return table{
		catalogue.GatedRMSNorm: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			y := rmsNorm([]Array{in[0], in[2]}, a, program.Type{})
			for i, g := range in[1].Data {
				y[i] *= silu(g)
			}
			return y
		})},
		catalogue.AddRMSNorm: {values: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
			sum := addArrays(in[0], in[1])
			return [][]float64{sum.Data, rmsNorm([]Array{sum, in[2]}, a, program.Type{})}
		}},
		catalogue.AddLayerNorm: {values: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
			sum := addArrays(in[0], in[1])
			return [][]float64{sum.Data, layerNorm([]Array{sum, in[2], in[3]}, a, program.Type{})}
		},
			magnitudes: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
				sum := addArrays(in[0], in[1])
				return [][]float64{MapArray(sum, math.Abs).Data, layerNormMagnitude([]Array{sum, in[2], in[3]}, a, program.Type{})}
			}},
	}
}
