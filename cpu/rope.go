package cpu

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// rope rotates the pairs of each token's heads. Angles are reduced in float64, whichever variant is requested: beside the
// heads that share them they cost little.
func rope(direction float64) func(c *call) work {
	return func(c *call) work {
		o := c.attr.Options.(compute.RopeOptions)
		d, _ := catalogue.RopeShape(c.in[0].Shape, c.in[1].Shape, o) // checked
		turns := make([]float64, d.Dims/2)                           // per position, of pairs without factors
		for i := range turns {
			turns[i] = direction * d.Frequency(i) / (2 * math.Pi)
		}
		width := d.Heads * d.D
		return one(d.Tokens, 5*float64(len(turns))+0.5*float64(width), func(a *args, lo, hi int) {
			r := rotation{RopeDims: d, neox: o.NeoX, turns: turns}
			if len(a.in) == 3 {
				r.factors = a.in[2].f32()
			}
			buffers := engine.Borrow(5 * len(turns))
			defer engine.Scratch.Put(buffers)
			for i, p := range []*[]float32{&r.cos, &r.sin, &r.negative, &r.first, &r.second} {
				*p = (*buffers)[i*len(turns):][:len(turns)]
			}
			for t := lo; t < hi; t++ {
				r.at(float64(a.in[1].i32()[t%d.Positions]))
				for h := t * width; h < (t+1)*width; h += d.D {
					r.head(a.out.f32()[h:h+d.D], a.in[0].f32()[h:h+d.D])
				}
			}
		})
	}
}

// rotation rotates heads by the angles of one position.
type rotation struct {
	catalogue.RopeDims
	neox               bool
	turns              []float64
	factors            []float32 // or nil
	cos, sin, negative []float32 // of each pair's angle; −sin
	first, second      []float32
}

// at makes the angles of a position.
func (r *rotation) at(position float64) {
	for i, f := range r.turns {
		turns := position * f
		if r.factors != nil {
			turns /= float64(r.factors[i])
		}
		r.first[i] = float32(2 * math.Pi * (turns - math.RoundToEven(turns)))
	}
	kernels.Sin(r.sin, r.first)
	kernels.Cos(r.cos, r.first)
	kernels.Neg(r.negative, r.sin)
}

func (r *rotation) head(y, x []float32) {
	n := len(r.turns)
	if r.neox {
		kernels.Mul(r.first, x[n:2*n], r.negative)
		kernels.Mul(r.second, x[:n], r.sin)
		kernels.MulAdd(y[:n], x[:n], r.cos, r.first)
		kernels.MulAdd(y[n:2*n], x[n:2*n], r.cos, r.second)
	} else {
		cos, sin := r.cos, r.sin[:len(r.cos)]
		for i, c := range cos {
			p, q := x[2*i], x[2*i+1]
			y[2*i], y[2*i+1] = p*c-q*sin[i], p*sin[i]+q*c
		}
	}
	copy(y[2*n:], x[2*n:])
}
