package reference

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func conv1dTable() table {
	return table{
		catalogue.Conv1D: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			return activate(conv1dReference(in, a), a.Activation())
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				return conv1dReference(Absolute(in), a)
			})},
	}
}

func conv1dReference(in []Array, a program.Attr) []float64 {
	d, _ := catalogue.Conv1DShape(in[0].Shape, in[1].Shape, a.Options.(compute.Conv1DOptions))
	return convSums(in, d)
}
