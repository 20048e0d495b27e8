package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// InspectWords is the number of words of a result of [Inspect].
const InspectWords = 4

// Inspect finds what is no finite number. Guards of batches are made of it.
var Inspect = &program.Entry{Name: "inspect", Method: "Inspect", Class: program.Reduce, Options: compute.AllAxes,
	Doc: "four words about the elements: how many are NaN, how many are ±Inf, the lowest index of a NaN and the lowest of an Inf",
	Special: "The words, Int32, are the last axis of the result. An index is −1 where there is no such element. An empty tensor has " +
		"none.",
	Inputs: []program.Input{{Name: "x"}},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		t, err := inferReduce(compute.Int32, true)(in, a)
		t.Shape = append(t.Shape[:len(t.Shape):len(t.Shape)], InspectWords)
		return t, err
	},
}
