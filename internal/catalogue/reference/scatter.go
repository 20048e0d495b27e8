package reference

import (
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func scatterTable() table {
	return table{
		catalogue.Scatter: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			y := slices.Clone(in[0].Data)
			eachRow(in, func(row, update []float64) { copy(row, update) }, y)
			return y
		})},
		catalogue.ScatterAdd: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			y := slices.Clone(in[0].Data)
			eachRow(in, addRow, y)
			return y
		})},
		catalogue.EmbeddingBackward: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			y := make([]float64, out.Len())
			eachRow(in, addRow, y)
			return y
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				y := make([]float64, out.Len())
				eachRow(Absolute(in), addRow, y)
				return y
			})},
	}
}

func addRow(row, update []float64) {
	for i, v := range update {
		row[i] += v
	}
}

// eachRow calls f with each row of y, of the shape of the first operand, that the second names, and what the third has for it.
func eachRow(in []Array, f func(row, update []float64), y []float64) {
	d := catalogue.GatherRows(in[0].Shape, in[1].Shape)
	for j, id := range in[1].Data {
		if id >= 0 && int(id) < d.Rows {
			f(y[int(id)*d.Inner:][:d.Inner], in[2].Data[j*d.Inner:][:d.Inner])
		}
	}
}
