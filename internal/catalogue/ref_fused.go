package catalogue

import "github.com/wavelane/wavelane/internal/program"

func fusedTable() table {
	return table{
		BiasActivation: {values: one(func(in []program.Array, a program.Attr, _ program.Type) []float64 {
			return activate(addArrays(in[0], in[1]).Data, a.Activation())
		}),
			magnitudes: one(func(in []program.Array, _ program.Attr, _ program.Type) []float64 {
				in = program.Absolute(in)
				return addArrays(in[0], in[1]).Data
			})},
	}
}
