package reference

import (
	"cmp"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func topkTable() table {
	return table{
		catalogue.TopK: {values: func(in []Array, a program.Attr, out []program.Type) [][]float64 {
			k := a.Options.(compute.TopKOptions).K
			rows, cols := program.RowsCols(in[0].Shape)
			values, indices := make([]float64, rows*k), make([]float64, rows*k)
			order := make([]int, cols)
			for r := range rows {
				x := in[0].Data[r*cols : (r+1)*cols]
				for i := range order {
					order[i] = i
				}
				slices.SortFunc(order, func(i, j int) int {
					v, w := x[i], x[j]
					switch {
					case v > w || v != v && w == w:
						return -1
					case v < w || v == v && w != w:
						return 1
					}
					return cmp.Compare(i, j)
				})
				for n, i := range order[:k] {
					values[r*k+n], indices[r*k+n] = x[i], float64(i)
				}
			}
			return [][]float64{values, indices}
		}},
	}
}
