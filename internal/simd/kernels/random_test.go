package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"
)

// random returns the random numbers of a test.
func random(t testing.TB) *rand.Rand { return testseed.Rand(t) }

// mix says what inputs are made of.
type mix int

const (
	ordinary mix = iota // numbers that the kernel is for
	salted              // with a special one here and there
	special             // special ones only
	anyBits             // anything
	mixes
)

var inf = float32(math.Inf(1))

var specials = []float32{
	0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), -float32(math.NaN()),
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-130, -0x1p-130, 0x1p-126, 0x1.fffffcp-127,
	math.MaxFloat32, -math.MaxFloat32, 1e30, -1e30, 1e-30, 0x1p31, -0x1p31, 0x1p23, 0x1p23 - 0.5, 0x1p24 + 2, 1 << 22, 8192.5,
	-1e5, 1, -1, 0.5, -0.5, 1.5, 2.5, 1 - 0x1p-24, 1 + 0x1p-23, 88.72, 88.73, -87.33, -103.97, -104, -9.01, 9.01, 3, -3, 6, -4,
}

func fill(r *rand.Rand, x []float32, m mix, low, high float32) {
	for i := range x {
		switch {
		case m == anyBits:
			x[i] = math.Float32frombits(r.Uint32())
		case m == special, m == salted && r.IntN(12) == 0:
			x[i] = specials[r.IntN(len(specials))]
		case r.IntN(8) == 0: // ties of roundings
			x[i] = min(max(float32(r.IntN(9)-4)/2, low), high)
		default:
			x[i] = low + (high-low)*r.Float32()
		}
	}
}
