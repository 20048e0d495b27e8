package catalogue

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// InspectWords is the number of words of a result of [Inspect].
const InspectWords = 4

// Inspect finds what is no finite number. Guards of batches are made of it.
var Inspect = register(&program.Entry{Name: "inspect", Method: "Inspect", Class: program.Reduce, Tol: exact, Options: compute.AllAxes,
	Doc: "four words about the elements: how many are NaN, how many are ±Inf, the lowest index of a NaN and the lowest of an Inf",
	Special: "The words, Int32, are the last axis of the result. An index is −1 where there is no such element. An empty tensor has " +
		"none.",
	Inputs: []program.Input{{Name: "x"}},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		t, err := inferReduce(compute.Int32, true)(in, a)
		t.Shape = append(t.Shape[:len(t.Shape):len(t.Shape)], InspectWords)
		return t, err
	},
	Ref: func(in []program.Array, a program.Attr, out program.Type) []float64 {
		rows, cols := program.ReduceRows(in[0].Shape, a.Options.(compute.Axis))
		y := make([]float64, 0, out.Len())
		for r := range rows {
			word := [InspectWords]float64{0, 0, -1, -1}
			for i, v := range in[0].Data[r*cols : (r+1)*cols] {
				kind := 0
				switch {
				case math.IsInf(v, 0):
					kind = 1
				case v == v:
					continue
				}
				if word[kind]++; word[2+kind] < 0 {
					word[2+kind] = float64(i)
				}
			}
			y = append(y, word[:]...)
		}
		return y
	},
})
