package simd

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/op"
)

func TestEveryEntryHasAKernel(t *testing.T) {
	named := map[string]bool{}
	for _, e := range op.All() {
		named[e.Name] = true
		_, elementwise := spans[e.Name]
		_, other := lowerings[e.Name]
		require.True(t, elementwise != other, "%s has no kernel, or two", e.Name)
		require.Equal(t, e.Class.Elementwise(), elementwise, e.Name)
	}
	for name := range spans {
		require.True(t, named[name], "kernel %s has no entry", name)
	}
	for name := range lowerings {
		require.True(t, named[name], "kernel %s has no entry", name)
	}
}

func seeded(t *testing.T) *rand.Rand {
	a, b := rand.Uint64(), rand.Uint64()
	t.Logf("seed %d, %d", a, b)
	return rand.New(rand.NewPCG(a, b))
}

// The packed product is the loop of its doc comment, for every rest of every blocking.
func TestMicroAndPack(t *testing.T) {
	r := seeded(t)
	for m := 1; m <= 2*mr+1; m++ {
		for n := 1; n <= 2*nr+1; n++ {
			for steps := range 7 {
				a, b := make([]float32, m*steps), make([]float32, steps*n)
				for i := range a {
					a[i] = float32(r.IntN(9) - 4)
				}
				for i := range b {
					b[i] = float32(r.IntN(9) - 4)
				}
				want := make([]float32, m*n)
				for i := range m {
					for j := range n {
						want[i*n+j] = 1
						for k := range steps {
							want[i*n+j] += a[i*steps+k] * b[k*n+j]
						}
					}
				}
				left, right := make([]float32, padded(m, mr)*steps), make([]float32, padded(n, nr)*steps)
				pack(left, a, steps, 1, m, steps, mr)
				pack(right, b, 1, n, n, steps, nr)
				got := make([]float32, m*n)
				fillWith(got, 1)
				gemmTile(got, n, m, n, steps, left, right, true)
				require.Equal(t, want, got, "%d×%d×%d", m, steps, n)
				gemmTile(got, n, m, n, steps, left, right, false)
				for i := range want {
					want[i]--
				}
				require.Equal(t, want, got, "%d×%d×%d", m, steps, n)
			}
		}
	}
}
