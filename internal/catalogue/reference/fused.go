package reference

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func fusedTable() table {
	return table{
		catalogue.BiasActivation: {values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
			return activate(addArrays(in[0], in[1]).Data, a.Activation())
		}),
			magnitudes: one(func(in []Array, _ program.Attr, _ program.Type) []float64 {
				in = Absolute(in)
				return addArrays(in[0], in[1]).Data
			})},
	}
}
