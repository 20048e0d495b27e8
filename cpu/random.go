package cpu

import (
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// random has a unit for each counter, of ns nanoseconds. Make computes the elements whose first is that of a counter.
func random(ns float64, make func(y []float32, p philox)) func(c *call) work {
	return func(c *call) work {
		n, stream := c.out.Len(), uint32(c.attr.Options.(compute.RandomOptions).Stream)
		return one(engine.CeilDiv(n, 4), ns, func(a *args, lo, hi int) {
			seed := a.in[0].u32()
			make(a.out.f32()[4*lo:min(4*hi, n)], philox{uint32(lo), stream, [catalogue.RandomSeed]uint32{seed[0], seed[1]}})
		})
	}
}

// philox is a position in the words of Philox4x32-10: see [reference.Philox].
type philox struct {
	counter, stream uint32
	key             [catalogue.RandomSeed]uint32
}

// next returns the words of two counters, whose chains of multiplications run in parallel, and advances by two.
func (p *philox) next() (w [8]uint32) {
	a0, a1, a2, a3 := p.counter, uint32(0), p.stream, uint32(0)
	b0, b1, b2, b3 := p.counter+1, uint32(0), p.stream, uint32(0)
	k0, k1 := p.key[0], p.key[1]
	for range catalogue.PhiloxRounds {
		ah0, al0 := bits.Mul32(catalogue.PhiloxFactor0, a0)
		bh0, bl0 := bits.Mul32(catalogue.PhiloxFactor0, b0)
		ah2, al2 := bits.Mul32(catalogue.PhiloxFactor1, a2)
		bh2, bl2 := bits.Mul32(catalogue.PhiloxFactor1, b2)
		a0, a1, a2, a3 = ah2^a1^k0, al2, ah0^a3^k1, al0
		b0, b1, b2, b3 = bh2^b1^k0, bl2, bh0^b3^k1, bl0
		k0, k1 = k0+catalogue.PhiloxWeyl0, k1+catalogue.PhiloxWeyl1
	}
	p.counter += 2
	return [8]uint32{a0, a1, a2, a3, b0, b1, b2, b3}
}

func fraction(word uint32) float32 { return float32(int32(word>>8)) * 0x1p-24 }

func uniform(y []float32, p philox) {
	for len(y) >= 8 {
		w := p.next()
		for i, v := range w {
			y[i] = fraction(v)
		}
		y = y[8:]
	}
	if len(y) > 0 {
		w := p.next()
		for i := range y {
			y[i] = fraction(w[i])
		}
	}
}

// normalBlock holds the inputs of Box and Muller's transform for a block of pairs.
type normalBlock struct{ radius, angle, sine [256]float32 }

var normalBlocks engine.FreeList[normalBlock]

func normal(y []float32, p philox) {
	b := normalBlocks.Take()
	defer normalBlocks.Give(b)
	for len(y) > 0 {
		n := min(len(y), 2*len(b.radius))
		pairs := (n + 7) / 8 * 4
		r, t, s := b.radius[:pairs], b.angle[:pairs], b.sine[:pairs]
		for i := 0; i < pairs; i += 4 {
			w := p.next()
			for j := range 4 {
				r[i+j] = float32(int32(w[2*j]>>8)+1) * 0x1p-24
				t[i+j] = float32(int32(w[2*j+1])>>8) * (2 * math.Pi * 0x1p-24) // from −π on
			}
		}
		kernels.Log(r, r)
		kernels.Scale(r, r, -2)
		kernels.Sqrt(r, r)
		kernels.Sin(s, t)
		kernels.Mul(s, s, r)
		kernels.Cos(t, t)
		kernels.Mul(t, t, r)
		for i := range n {
			if y[i] = t[i/2]; i%2 == 1 {
				y[i] = s[i/2]
			}
		}
		y = y[n:]
	}
}
