package opt

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
)

// quotient does what divide's instructions do.
func (g magic) quotient(x uint64, w int) uint64 {
	mask := ^uint64(0) >> (64 - w)
	hi, lo := bits.Mul64(x>>g.pre, g.multiplier)
	t := hi
	if w < 64 {
		t = hi<<(64-w) | lo>>w
	}
	if g.extra {
		t = ((x-t)&mask>>1 + t) & mask
	}
	return t >> g.post
}

// TestMagic divides: 16-bit numbers by all constants, at all places where the quotient steps (it never falls in between,
// being made of products, sums and shifts that do not) and, for some, everywhere; wider ones at random and at such places.
func TestMagic(t *testing.T) {
	rng := ptxtest.Random(t)
	check := func(g magic, d, x uint64, w int) {
		if got := g.quotient(x, w); got != x/d {
			t.Fatalf("%d bits: %d / %d = %d, not %d with %+v", w, x, d, x/d, got, g)
		}
	}
	for d := uint64(3); d < 1<<16; d++ {
		if d&(d-1) == 0 {
			continue
		}
		g := magicOf(d, 16)
		require.LessOrEqual(t, g.multiplier, uint64(0xffff))
		for x := d; x < 1<<16; x += d {
			check(g, d, x-1, 16)
			check(g, d, x, 16)
		}
		check(g, d, 1<<16-1, 16)
		if rng.IntN(256) == 0 || d < 20 || d > 65500 {
			for x := range uint64(1 << 16) {
				check(g, d, x, 16)
			}
		}
	}
	for _, w := range []int{32, 64} {
		mask := ^uint64(0) >> (64 - w)
		for range 20000 {
			d := rng.Uint64() & mask >> rng.IntN(w-2)
			if d < 3 || d&(d-1) == 0 {
				continue
			}
			g := magicOf(d, w)
			for range 10 {
				x := rng.Uint64() & mask >> rng.IntN(w)
				check(g, d, x, w)
				k := x / d * d
				check(g, d, k, w)
				if k > 0 {
					check(g, d, k-1, w)
				}
			}
			check(g, d, mask, w)
			check(g, d, mask/d*d-1, w)
		}
	}
}
