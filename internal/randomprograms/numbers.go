package randomprograms

import (
	"math"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
)

var (
	edges    = []float32{0, 1, -1, 0.5, -0.5, 2, -2, 3, 1.5, -2.5}
	specials = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1)), math.MaxFloat32,
		-math.MaxFloat32, 1e20, -1e-20, math.SmallestNonzeroFloat32}
)

// numbers converts a slice of any element type.
func numbers(data any) []float64 {
	switch x := data.(type) {
	case []float32:
		return converted(x, func(v float32) float64 { return float64(v) })
	case []int32:
		return converted(x, func(v int32) float64 { return float64(v) })
	case []uint32:
		return converted(x, func(v uint32) float64 { return float64(v) })
	case []compute.F16:
		return converted(x, func(v compute.F16) float64 { return float64(float16.Frombits(uint16(v)).Float32()) })
	case []uint8:
		return converted(x, func(v uint8) float64 { return float64(v) })
	case []compute.BF16:
		return converted(x, func(v compute.BF16) float64 { return float64(v.Float32()) })
	}
	panic("no element type of a program")
}

func converted[E any](x []E, f func(E) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

func halfBits(v float64) compute.F16 { return compute.F16(float16.Fromfloat32(float32(v)).Bits()) }
