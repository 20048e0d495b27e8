package reference

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func elementwiseTable() table {
	slope := entry{magnitudes: one(slopeMagnitude)}
	return table{
		catalogue.Lerp:            {magnitudes: one(lerpMagnitude)},
		catalogue.GELUBackward:    slope,
		catalogue.GELUErfBackward: slope,
		catalogue.SiLUBackward:    slope,
	}
}

// slopeMagnitude is |dy|: slopes are bounded.
func slopeMagnitude(in []Array, a program.Attr, out program.Type) []float64 {
	ones := MapArray(in[0], func(float64) float64 { return 1 })
	return elementwise(catalogue.Mul, []Array{ones, MapArray(in[1], math.Abs)}, a, out)
}

// lerpMagnitude is |a| + |t|·(|b| + |a|), since b − a cancels.
func lerpMagnitude(in []Array, a program.Attr, out program.Type) []float64 {
	x := Absolute(in)
	x[1] = addArrays(x[0], x[1])
	return elementwise(catalogue.FMA, []Array{x[1], x[2], x[0]}, a, out)
}

func silu(x float64) float64 { return catalogue.SiLU.F([]float64{x}, nil) }

// addArrays adds with broadcasting; the shapes are known to fit.
func addArrays(a, b Array) Array {
	s, _ := program.Broadcast(a.Shape, b.Shape)
	return Array{Shape: s, Data: elementwise(catalogue.Add, []Array{a, b}, program.Attr{}, program.F32(s...))}
}
