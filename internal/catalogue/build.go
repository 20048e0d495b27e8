package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Tolerances of elementwise entries. WGSL promises correct rounding for + − ·, 2.5 ULP for division, 3+2|x| ULP for exp.
var (
	exact     = program.Tolerance{}
	rounded   = program.Arithmetic
	nearExact = program.Tolerance{Abs: 2e-6, Rel: 1e-5}
)

func unary(name, method, doc string, tol program.Tolerance, f func(x float64) float64) *program.Entry {
	return scalarUnary(name, method, doc, tol, nil, func(x, _ []float64) float64 { return f(x[0]) })
}

func scalarUnary(name, method, doc string, tol program.Tolerance, scalars []program.Scalar, f func(x, p []float64) float64) *program.Entry {
	return register(&program.Entry{Name: name, Method: method, Class: program.Unary, Doc: doc, Tol: tol, Scalars: scalars, F: f,
		Inputs: []program.Input{{Name: "x"}},
		Infer:  func(in []program.Type, _ program.Attr) (program.Type, error) { return in[0], nil }})
}

func broadcasting(class program.Class, name, method, doc string, tol program.Tolerance, inputs []program.Input, f func(x, p []float64) float64) *program.Entry {
	return register(&program.Entry{Name: name, Method: method, Class: class, Doc: doc, Tol: tol, Inputs: inputs, F: f,
		Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
			shapes := make([][]int, len(in))
			for i, t := range in {
				shapes[i] = t.Shape
			}
			s, err := program.Broadcast(shapes...)
			return program.Type{DType: compute.Float32, Shape: s}, err
		}})
}

func binary(name, method, doc string, tol program.Tolerance, f func(a, b float64) float64) *program.Entry {
	return broadcasting(program.Binary, name, method, doc, tol, []program.Input{{Name: "a"}, {Name: "b"}},
		func(x, _ []float64) float64 { return f(x[0], x[1]) })
}

func scalar(name string, test ...float32) program.Scalar {
	return program.Scalar{Name: name, Test: test}
}
