package reference

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func ropeTable() table { return table{catalogue.Rope: turned(1), catalogue.RopeBackward: turned(-1)} }

// turned rotates pairs in a direction.
func turned(direction float64) entry {
	return entry{values: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
		return ropeReference(in, a, func(x, y, angle float64) (float64, float64) {
			sin, cos := math.Sincos(direction * angle)
			return x*cos - y*sin, x*sin + y*cos
		})
	}), magnitudes: one(func(in []Array, a program.Attr, _ program.Type) []float64 {
		return ropeReference(in, a, func(x, y, angle float64) (float64, float64) {
			// Float64 holds an angle to 1e-16 of it; a product of several frequencies is a few times as far off.
			turn := 1e-9 * math.Abs(angle)
			if !a.Options.(compute.RopeOptions).Precise {
				turn = 2 * math.Abs(angle)
			}
			m := (math.Abs(x) + math.Abs(y)) * (1 + turn)
			return m, m
		})
	})}
}

// ropeReference applies f to every pair and its angle.
func ropeReference(in []Array, a program.Attr, f func(x, y, angle float64) (float64, float64)) []float64 {
	o := a.Options.(compute.RopeOptions)
	r, _ := catalogue.RopeShape(in[0].Shape, in[1].Shape, o)
	y := append([]float64(nil), in[0].Data...)
	for t := range r.Tokens {
		position := in[1].Data[t%r.Positions]
		for i := range r.Dims / 2 {
			angle := position * r.Frequency(i)
			if len(in) == 3 {
				angle /= in[2].Data[i]
			}
			for h := range r.Heads {
				head := y[(t*r.Heads+h)*r.D:]
				p, q := r.Pair(i, o.NeoX)
				head[p], head[q] = f(head[p], head[q], angle)
			}
		}
	}
	return y
}
