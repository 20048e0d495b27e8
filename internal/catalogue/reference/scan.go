package reference

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func scanTable() table {
	return table{
		catalogue.CumSum: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			o := a.Options.(compute.CumSumOptions)
			rows, cols := program.RowsCols(in[0].Shape)
			y := make([]float64, rows*cols)
			for r := range rows {
				s := 0.0
				for j := range cols {
					i := r*cols + j
					if o.Reverse {
						i = r*cols + cols - 1 - j
					}
					before := s
					s += in[0].Data[i]
					if y[i] = s; o.Exclusive {
						y[i] = before
					}
				}
			}
			return y
		})},
	}
}
