package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Tolerances of elementwise entries. WGSL promises correct rounding for + − ·, 2.5 ULP for division, 3+2|x| ULP for exp.
var (
	rounded   = program.Arithmetic
	nearExact = program.Tolerance{Abs: 2e-6, Rel: 1e-5}
)

// elementwise completes an entry of operands that are broadcast.
func elementwise(e program.Entry) *program.Entry {
	e.Infer = inferBroadcast
	return &e
}

func inferBroadcast(in []program.Type, _ program.Attr) (program.Type, error) {
	shapes := make([][]int, len(in))
	for i, t := range in {
		shapes[i] = t.Shape
	}
	s, err := program.Broadcast(shapes...)
	return program.Type{DType: compute.Float32, Shape: s}, err
}

func unary(e program.Entry, f func(x float64) float64) *program.Entry {
	e.Class, e.Inputs, e.F = program.Unary, []program.Input{{Name: "x"}}, func(x, _ []float64) float64 { return f(x[0]) }
	return elementwise(e)
}

func binary(e program.Entry, f func(a, b float64) float64) *program.Entry {
	e.Class, e.Inputs = program.Binary, []program.Input{{Name: "a"}, {Name: "b"}}
	e.F = func(x, _ []float64) float64 { return f(x[0], x[1]) }
	return elementwise(e)
}

func scalar(name string, test ...float32) program.Scalar {
	return program.Scalar{Name: name, Test: test}
}
