package reference

import (
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func randomTable() table {
	return table{
		catalogue.RandomUniform: {values: drawn(func(w [4]uint32) (y [4]float64) {
			for i, v := range w {
				y[i] = float64(v>>8) * 0x1p-24
			}
			return y
		})},
		catalogue.RandomNormal: {values: drawn(func(w [4]uint32) (y [4]float64) {
			for i := 0; i < 4; i += 2 {
				r := math.Sqrt(-2 * math.Log(float64(w[i]>>8+1)*0x1p-24))
				sin, cos := math.Sincos(2 * math.Pi * 0x1p-24 * float64(w[i+1]>>8))
				y[i], y[i+1] = r*cos, r*sin
			}
			return y
		})},
	}
}

// drawn makes four numbers at a time of the words of Philox.
func drawn(f func(words [4]uint32) [4]float64) function {
	return one(func(in []Array, a program.Attr, out program.Type) []float64 {
		y := make([]float64, 0, out.Len()+3)
		key := [2]uint32{uint32(in[0].Data[0]), uint32(in[0].Data[1])}
		stream := uint32(a.Options.(compute.RandomOptions).Stream)
		for i := uint32(0); len(y) < out.Len(); i++ {
			four := f(Philox([4]uint32{i, 0, stream, 0}, key))
			y = append(y, four[:]...)
		}
		return y[:out.Len()]
	})
}

// Philox returns the four words that Philox4x32-10 makes of a counter and a key: Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", 2011.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for round := range catalogue.PhiloxRounds {
		if round > 0 {
			key[0], key[1] = key[0]+catalogue.PhiloxWeyl0, key[1]+catalogue.PhiloxWeyl1
		}
		high0, low0 := bits.Mul32(catalogue.PhiloxFactor0, counter[0])
		high1, low1 := bits.Mul32(catalogue.PhiloxFactor1, counter[2])
		counter = [4]uint32{high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0}
	}
	return counter
}
