package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func conv1dTable() table {
	return table{
		Conv1D: {values: one(func(in []program.Array, a program.Attr, out program.Type) []float64 {
			return activate(conv1dReference(in, a), a.Activation())
		}),
			magnitudes: one(func(in []program.Array, a program.Attr, out program.Type) []float64 {
				return conv1dReference(program.Absolute(in), a)
			})},
	}
}

func conv1dReference(in []program.Array, a program.Attr) []float64 {
	d, _ := Conv1DShape(in[0].Shape, in[1].Shape, a.Options.(compute.Conv1DOptions))
	return convSums(in, d)
}
