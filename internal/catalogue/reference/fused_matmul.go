package reference

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func fusedMatmulTable() table {
	return table{
		catalogue.RMSNormMatVec: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			return rowsTimes(Array{Shape: in[0].Shape, Data: rmsNorm(in[:2], a, program.Type{})}, in[2])
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				in = Absolute(in)
				return rowsTimes(Array{Shape: in[0].Shape, Data: rmsNorm(in[:2], a, program.Type{})}, in[2])
			})},
		catalogue.QKV: {values: func(in []Array, _ program.Attr, _ []program.Type) [][]float64 { return threeProducts(in) },
			magnitudes: func(in []Array, _ program.Attr, _ []program.Type) [][]float64 {
				return threeProducts(Absolute(in))
			}},
		catalogue.GateUpSwiGLU: {values: one(func(in []Array, _ program.Attr, _ program.Type) []float64 {
			y := rowsTimes(in[0], in[1])
			for i, up := range rowsTimes(in[0], in[2]) {
				y[i] = silu(y[i]) * up
			}
			return y
		}),
			magnitudes: one(func(in []Array, _ program.Attr, _ program.Type) []float64 {
				in = Absolute(in)
				y := rowsTimes(in[0], in[1])
				for i, up := range rowsTimes(in[0], in[2]) {
					y[i] *= up
				}
				return y
			})},
	}
}

func threeProducts(in []Array) [][]float64 {
	var out [][]float64
	for i, w := range in[1:4] {
		y := rowsTimes(in[0], w)
		if len(in) == 7 {
			for j := range y {
				y[j] += in[4+i].Data[j%w.Shape[0]]
			}
		}
		out = append(out, y)
	}
	return out
}

// rowsTimes is x·wᵀ.
func rowsTimes(x, w Array) []float64 {
	rows, k := program.RowsCols(x.Shape)
	n := w.Shape[0]
	y := make([]float64, rows*n)
	for r := range rows {
		for j := range n {
			y[r*n+j] = dot(x.Data[r*k:(r+1)*k], w.Data[j*k:(j+1)*k])
		}
	}
	return y
}
