package op

import "github.com/wavelane/wavelane/compute"

// Tolerances of elementwise entries. WGSL promises correct rounding for + − ·, 2.5 ULP for division, 3+2|x| ULP for exp.
var (
	exact     = Tolerance{}
	rounded   = Arithmetic
	nearExact = Tolerance{Abs: 2e-6, Rel: 1e-5}
)

func unary(name, method, doc string, tol Tolerance, f func(x float64) float64) *Entry {
	return scalarUnary(name, method, doc, tol, nil, func(x, _ []float64) float64 { return f(x[0]) })
}

func scalarUnary(name, method, doc string, tol Tolerance, scalars []Scalar, f func(x, p []float64) float64) *Entry {
	return register(&Entry{Name: name, Method: method, Class: Unary, Doc: doc, Tol: tol, Scalars: scalars, F: f,
		Inputs: []Input{{Name: "x"}},
		Infer:  func(in []Type, _ Attr) (Type, error) { return in[0], nil }})
}

func broadcasting(class Class, name, method, doc string, tol Tolerance, inputs []Input, f func(x, p []float64) float64) *Entry {
	return register(&Entry{Name: name, Method: method, Class: class, Doc: doc, Tol: tol, Inputs: inputs, F: f,
		Infer: func(in []Type, _ Attr) (Type, error) {
			shapes := make([][]int, len(in))
			for i, t := range in {
				shapes[i] = t.Shape
			}
			s, err := Broadcast(shapes...)
			return Type{compute.Float32, s}, err
		}})
}

func binary(name, method, doc string, tol Tolerance, f func(a, b float64) float64) *Entry {
	return broadcasting(Binary, name, method, doc, tol, []Input{{Name: "a"}, {Name: "b"}},
		func(x, _ []float64) float64 { return f(x[0], x[1]) })
}

func (e *Entry) special(text string) *Entry { e.Special = text; return e }

func (e *Entry) domain(low, high float64) *Entry { e.Domain = [2]float64{low, high}; return e }

func scalar(name string, test ...float32) Scalar { return Scalar{name, test} }
