package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// InspectWords is the number of words of a result of [Inspect].
const InspectWords = 4

// Inspect counts elements that are not finite. Guards of batches use it.
var Inspect = &program.Entry{Name: "inspect", Method: "Inspect", Class: program.Reduce, Options: compute.AllAxes,
	Doc: "how many elements are NaN, how many are ±Inf, and the lowest index of each",
	Special: "The four numbers are Int32 and form the last axis of the result, in this order. An " +
		"index is −1 where there is no such element, as in an empty tensor.",
	Inputs: []program.Input{{Name: "x"}},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		t, err := inferReduce(compute.Int32, true)(in, a)
		t.Shape = append(t.Shape[:len(t.Shape):len(t.Shape)], InspectWords)
		return t, err
	},
}
