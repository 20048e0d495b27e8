package reference

import "math"

// Array is a tensor in float64. Integer values are held as their float64 equals.
type Array struct {
	Shape []int
	Data  []float64
}

// Absolute returns the absolute values of operands.
func Absolute(in []Array) []Array {
	out := make([]Array, len(in))
	for i, x := range in {
		out[i] = MapArray(x, math.Abs)
	}
	return out
}

// MapArray applies f to each element.
func MapArray(x Array, f func(float64) float64) Array {
	y := make([]float64, len(x.Data))
	for i, v := range x.Data {
		y[i] = f(v)
	}
	return Array{x.Shape, y}
}
