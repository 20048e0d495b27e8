package catalogue

import (
	"math"

	"github.com/wavelane/wavelane/internal/program"
)

func normTable() table {
	return table{
		GatedRMSNorm: {values: one(func(in []program.Array, a program.Attr, _ program.Type) []float64 {
			y := rmsNorm([]program.Array{in[0], in[2]}, a, program.Type{})
			for i, g := range in[1].Data {
				y[i] *= silu(g)
			}
			return y
		})},
		AddRMSNorm: {values: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
			sum := addArrays(in[0], in[1])
			return [][]float64{sum.Data, rmsNorm([]program.Array{sum, in[2]}, a, program.Type{})}
		}},
		AddLayerNorm: {values: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
			sum := addArrays(in[0], in[1])
			return [][]float64{sum.Data, layerNorm([]program.Array{sum, in[2], in[3]}, a, program.Type{})}
		},
			magnitudes: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
				sum := addArrays(in[0], in[1])
				return [][]float64{program.MapArray(sum, math.Abs).Data, layerNormMagnitude([]program.Array{sum, in[2], in[3]}, a, program.Type{})}
			}},
	}
}
