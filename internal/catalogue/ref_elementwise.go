package catalogue

import (
	"math"

	"github.com/wavelane/wavelane/internal/program"
)

func elementwiseTable() table {
	slope := entry{magnitudes: one(slopeMagnitude)}
	return table{
		Lerp:            {magnitudes: one(lerpMagnitude)},
		GELUBackward:    slope,
		GELUErfBackward: slope,
		SiLUBackward:    slope,
	}
}

// slopeMagnitude is |dy|: slopes are bounded.
func slopeMagnitude(in []program.Array, a program.Attr, out program.Type) []float64 {
	ones := program.MapArray(in[0], func(float64) float64 { return 1 })
	return elementwise(Mul, []program.Array{ones, program.MapArray(in[1], math.Abs)}, a, out)
}

// lerpMagnitude is |a| + |t|·(|b| + |a|), since b − a cancels.
func lerpMagnitude(in []program.Array, a program.Attr, out program.Type) []float64 {
	x := program.Absolute(in)
	x[1] = addArrays(x[0], x[1])
	return elementwise(FMA, []program.Array{x[1], x[2], x[0]}, a, out)
}

func silu(x float64) float64 { return Swish.F([]float64{x}, nil) }

// addArrays adds with broadcasting; the shapes are known to fit.
func addArrays(a, b program.Array) program.Array {
	s, _ := program.Broadcast(a.Shape, b.Shape)
	return program.Array{Shape: s, Data: elementwise(Add, []program.Array{a, b}, program.Attr{}, program.F32(s...))}
}
