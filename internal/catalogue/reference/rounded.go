package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
)

// Rounded is what a device stores of a result v computed in float32: the nearest float32, and of that the nearest value of the
// element type, each with ties to even. Integers stay as they are.
func Rounded(v float64, d compute.DType) float64 {
	switch d {
	case compute.Float32:
		return float64(float32(v))
	case compute.BFloat16:
		return float64(compute.BF16Of(float32(v)).Float32())
	case compute.Uint8:
		if math.IsNaN(v) {
			return 0
		}
		return math.RoundToEven(min(max(v, 0), 255))
	case compute.Float16:
		return roundedHalf(float64(float32(v)))
	}
	return v
}

func roundedHalf(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	const bias, digits, least = 1023, 10, -14
	e := max(math.Float64bits(v)>>52&0x7ff, bias+least) // subnormals have the exponent of the smallest normal number
	unit := math.Float64frombits((e - digits) << 52)    // of the last place
	r := math.RoundToEven(v/unit) * unit
	if math.Abs(r) > 65504 {
		return math.Inf(int(math.Copysign(1, v)))
	}
	return r
}
