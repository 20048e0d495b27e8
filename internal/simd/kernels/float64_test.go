package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFloat64Kernels(t *testing.T) {
	r := random(t)
	numbers := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(r.IntN(33) - 16) // sums of their products are exact in any order
		}
		return x
	}
	onTiers(t, func(t *testing.T) {
		for n := range 100 {
			x, y, z := numbers(n + 1)[:n], numbers(n + 1)[:n], numbers(n+1)
			require.Equal(t, dot64Go(x, y), Dot64(x, y), "%d elements", n)
			got, want := append([]float64{}, z...), append([]float64{}, z...)
			Axpy64(got[:n], x, 3)
			axpy64Go(want[:n], x, 3)
			require.Equal(t, want, got, "axpy of %d", n)
			Rank2x64(got[:n], x, y, -2, 5)
			rank2x64Go(want[:n], x, y, -2, 5)
			require.Equal(t, want, got, "rank 2 of %d", n)
		}
		for rows := 1; rows < 9; rows++ {
			for _, wide := range []int{16, 48} {
				z, turns := numbers(rows*wide), numbers(2*(rows-1))
				for i := range turns {
					turns[i] /= 16
				}
				got, want := append([]float64{}, z...), append([]float64{}, z...)
				end := (rows-1)*wide + TurnColumns
				Turn64(got[:end], wide, turns)
				turn64Go(want[:end], wide, turns)
				require.InDeltaSlice(t, want, got, 1e-9, "%d rows", rows)
			}
		}
	})
}
