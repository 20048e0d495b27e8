package peaks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
)

// TestFlops: as many operations as asked for, in a time that grows with them, which no fewer than a few in a cycle would explain.
func TestFlops(t *testing.T) {
	simdtest.OnEveryTier(t, func(t *testing.T) {
		require.Positive(t, Flops(0))
		n := Flops(1000)
		require.GreaterOrEqual(t, n, 1000)
		require.Less(t, n, 2000)
		start := time.Now()
		done := Flops(20_000_000)
		rate := float64(done) / time.Since(start).Seconds()
		require.Less(t, rate, 1e12, "%s", kernels.Active()) // a core's: nothing was left out
	})
}

// TestRead: slices of all lengths up to some loops, of which nothing is read beyond the last element; see the tests of kernels for memory
// that ends there.
func TestRead(t *testing.T) {
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for n := range 300 {
			Read(make([]float32, n))
		}
	})
}
