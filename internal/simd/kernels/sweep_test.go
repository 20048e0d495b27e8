package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
)

// Every length to 257, every offset of every operand from a multiple of 64 bytes.
func TestLengthsAndOffsets(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		r := random(t)
		for n := range 258 {
			if testing.Short() && n > 70 && n%29 != 0 {
				continue
			}
			tr := newTrial(t, k, r, n, mix(n)%mixes)
			for o := range 16 {
				tr.run(t, place{offsets: [4]int{o, (3*o + n) % 16, (5*o + 1) % 16, (7*o + n/16) % 16}})
			}
			newTrial(t, k, r, n, ordinary).run(t, randomPlace(r))
		}
	})
}

func randomPlace(r *rand.Rand) place {
	return place{offsets: [4]int{r.IntN(16), r.IntN(16), r.IntN(16), r.IntN(16)}}
}

func TestLarge(t *testing.T) {
	lengths := []int{1000, 4095, 4096, 4097, 1<<16 + 3}
	if testing.Short() {
		lengths = []int{1000, 4095, 4097}
	}
	eachKernel(t, func(t *testing.T, k *kernel) {
		r := random(t)
		for _, n := range lengths {
			newTrial(t, k, r, n, ordinary).run(t, randomPlace(r))
			newTrial(t, k, r, n, salted).run(t, randomPlace(r))
		}
		if !testing.Short() && (testseed.Whole() || r.IntN(4) == 0) { // those that are long share how they loop
			tr := newTrial(t, k, r, 1<<13+1, salted)
			tr.repeat(70) // more than 1 << 19
			p := randomPlace(r)
			tr.run(t, p)
			if k.store { // long results may be written around the caches, unless they overlap
				p.over = 1 + r.IntN(k.inputs)
				tr.run(t, p)
				p.by = 1 + r.IntN(100)
				tr.run(t, p)
			}
		}
	})
}

// Y as an input, and beginning before one that it overlaps.
func TestOverlap(t *testing.T) {
	lengths := []int{1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 192, 257, 400}
	shifts := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127}
	eachKernel(t, func(t *testing.T, k *kernel) {
		if !k.store {
			return
		}
		r := random(t)
		for _, n := range lengths {
			if testing.Short() && n > 140 {
				break
			}
			tr := newTrial(t, k, r, n, mix(r.IntN(int(mixes))))
			for _, by := range shifts {
				for over := 1; over <= k.inputs && by < n; over++ {
					p := randomPlace(r)
					p.over, p.by = over, by
					tr.run(t, p)
				}
			}
			for j := range k.inputs {
				tr.x[j] = tr.x[0]
			}
			tr.expect()
			tr.run(t, place{over: 1, same: true})
			tr.run(t, place{over: 1, same: true, by: n / 2})
		}
	})
}

// A kernel with a guard meets an element that stops it at every place of its loop.
func TestStops(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		if !k.guard {
			return
		}
		r := random(t)
		n := 4*Lanes + 13
		if testing.Short() {
			n = 2*Lanes + 5
		}
		tr := newTrial(t, k, r, n, ordinary)
		for at := range n {
			j := r.IntN(k.inputs)
			before := tr.x[j][at]
			tr.x[j][at] = specials[r.IntN(len(specials))]
			if k.search() {
				tr.x[j][at] = map[string]float32{"Find": tr.p[0], "FindNaN": canary}[k.name]
			}
			tr.expect()
			if k.search() {
				require.LessOrEqual(t, tr.want.n, at)
			}
			tr.run(t, randomPlace(r))
			if k.store {
				tr.run(t, place{over: 1 + j, by: r.IntN(Lanes)})
			}
			tr.x[j][at] = before
		}
	})
}

// Ordinary inputs are none of those that a guard leaves to the portable fallback, or the kernel would be no faster than that.
func TestGuardsLetOrdinaryInputsPass(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		if !k.guard || k.search() || Active() == Scalar {
			return
		}
		tr := newTrial(t, k, random(t), 1000, ordinary)
		c := tr.want
		require.Contains(t, stops, k.name)
		require.Equal(t, tr.n, stops[k.name](&c))
	})
}
