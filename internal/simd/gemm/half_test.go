package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// narrowed rounds x to numbers of 16 bits and returns their bits.
func narrowed(x []float32, brain bool) Half {
	h := Half{make([]uint16, len(x)), brain}
	if brain {
		kernels.NarrowBF16(h.Bits, x)
	} else {
		kernels.NarrowF16(h.Bits, x)
	}
	h.widen(x, 0)
	return h
}

// planned runs a plan.
func planned(pl *Plan, o *Operands) {
	scratch := poisoned(pl.Scratch())
	for i := range pl.Phases() {
		units, _ := pl.Phase(i)
		for u := 0; u < units; u += 3 {
			pl.Do(i, u, min(u+3, units), o, scratch, nil)
		}
	}
}

// checkHalves compares a product of numbers of 16 bits with that of the same numbers in 32, to the bit.
func checkHalves(t *testing.T, r *rand.Rand, m, n, k, batch int, la, lb layout) (a, b bool) {
	p := newProblem(r, m, n, k, batch, la, lb, 1, 0)
	brain := r.IntN(2) == 0
	halfA, halfB := narrowed(p.A, brain), narrowed(p.B, brain)
	pl := NewPlan(&p.Product, 1+r.IntN(3))
	planned(&pl, &p.Operands)
	half := p.Operands
	half.C = poisoned(len(p.C))
	a, b = pl.Halves()
	if a {
		half.A, half.HalfA = nil, halfA
	}
	if b {
		half.B, half.HalfB = nil, halfB
	}
	planned(&pl, &half)
	for i := range p.C {
		if math.Float32bits(p.C[i]) != math.Float32bits(half.C[i]) {
			require.Equal(t, p.C[i], half.C[i], "%d×%d×%d, batch %d, layouts %d %d, bf16 %t, halves %t %t: element %d",
				m, k, n, batch, la, lb, brain, a, b, i)
		}
	}
	return a, b
}

func TestHalves(t *testing.T) {
	inOneThread(t)
	tiers(t, func(t *testing.T) {
		r := random(t)
		defer func(was caches) { machine = was }(machine)
		machine = caches{16 << 10, 128 << 10} // so that small products are of every kind
		seen := map[string]int{}
		count := 300
		if testing.Short() {
			count = 60
		}
		for i := range count {
			la, lb := layout(r.IntN(2)), layout(r.IntN(2))
			m, n, k := 1+r.IntN(200), 1+r.IntN(200), 1+r.IntN(300)
			switch i % 4 {
			case 0:
				m, n, k = 1, 1+r.IntN(1500), 1+r.IntN(300)
			case 1:
				m, n, k = 1+r.IntN(300), 1, 1+r.IntN(1200)
			case 2:
				m, n, k = 2+r.IntN(10), 100+r.IntN(400), 1+r.IntN(400)
			}
			a, b := checkHalves(t, r, m, n, k, 1+r.IntN(2), la, lb)
			seen[fmt.Sprint(a, b)]++
		}
		require.Len(t, seen, 4, "%v", seen)
		// A long inner dimension in parts.
		checkHalves(t, r, 3, 1, 40_000, 1, rowMajor, rowMajor)
		checkHalves(t, r, 1, 3, 40_000, 1, rowMajor, columnMajor)
		checkHalves(t, r, 1, 9, 40_000, 1, rowMajor, rowMajor)
		checkHalves(t, r, 5, 1, 8195, 1, rowMajor, rowMajor)
	})
}

// Rows of every length, whose ends vectors do not read together with elements before.
func TestHalfRows(t *testing.T) {
	inOneThread(t)
	tiers(t, func(t *testing.T) {
		r := random(t)
		for n := 1; n < 80; n++ {
			checkHalves(t, r, 4, 1, n, 1, rowMajor, rowMajor)
			checkHalves(t, r, 1, n, 8, 1, rowMajor, rowMajor)
		}
	})
}
