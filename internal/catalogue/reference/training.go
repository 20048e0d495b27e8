package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func trainingTable() table {
	return table{
		catalogue.SwiGLUBackward: {values: func(in []Array, _ program.Attr, _ []program.Type) [][]float64 {
			return swigluGradients(in, func(gate float64) (slope, value float64) {
				return catalogue.SiLUBackward.F([]float64{gate, 1}, nil), silu(gate)
			})
		},
			magnitudes: func(in []Array, _ program.Attr, _ []program.Type) [][]float64 {
				in = Absolute(in)
				return swigluGradients(in, func(gate float64) (slope, value float64) { return 1, math.Min(gate, 1) })
			}},
		catalogue.Adam: {values: func(in []Array, a program.Attr, _ []program.Type) [][]float64 { return adam(in, a, in, -1) },
			magnitudes: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
				return adam(append(Absolute(in[:4:4]), in[4:]...), a, in, 1)
			}},
	}
}

func swigluGradients(in []Array, f func(gate float64) (slope, value float64)) [][]float64 {
	dgate, dup := make([]float64, len(in[0].Data)), make([]float64, len(in[0].Data))
	for i, gate := range in[0].Data {
		slope, value := f(gate)
		dy := in[2].Data[i]
		dgate[i], dup[i] = dy*in[1].Data[i]*slope, dy*value
	}
	return [][]float64{dgate, dup}
}

// adam is the step from in; what divides is that of from.
func adam(in []Array, a program.Attr, from []Array, sign float64) [][]float64 {
	t := 0.0
	if len(in) == 5 {
		t = max(in[4].Data[0], 1)
	}
	c := catalogue.AdamOf(a.Options.(compute.AdamOptions), t)
	p, m, v := make([]float64, len(in[0].Data)), make([]float64, len(in[0].Data)), make([]float64, len(in[0].Data))
	for i, g := range in[3].Data {
		m[i] = c.Beta1*in[1].Data[i] + (1-c.Beta1)*g
		v[i] = c.Beta2*in[2].Data[i] + (1-c.Beta2)*g*g
		p[i] = c.Decay*in[0].Data[i] + sign*c.Rate*m[i]/(c.Root*math.Sqrt(c.Beta2*from[2].Data[i]+(1-c.Beta2)*g*g)+c.Eps)
	}
	return [][]float64{p, m, v}
}
