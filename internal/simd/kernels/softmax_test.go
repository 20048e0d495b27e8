package kernels

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// SoftmaxRows is right within its tolerance for rows of any length, in place or not, and writes nothing beside them.
func TestSoftmaxRows(t *testing.T) {
	r := random(t)
	onTiers(t, func(t *testing.T) {
		for n := 1; n < 300; n++ {
			rows := 1 + r.IntN(3)
			x := make([]float32, rows*n)
			for i := range x {
				x[i] = float32(30 * r.NormFloat64())
			}
			y := slices.Repeat([]float32{7}, len(x)+20)
			if !SoftmaxRows(y[:len(x)], x, n) {
				return
			}
			for _, v := range y[len(x):] {
				require.Equal(t, float32(7), v)
			}
			for row := range rows {
				at := x[row*n:][:n]
				m, sum := slices.Max(at), 0.0 // differences are float32
				for _, v := range at {
					sum += math.Exp(float64(v - m))
				}
				for i, v := range at {
					require.InDelta(t, 1, (float64(y[row*n+i])+1e-30)/(math.Exp(float64(v-m))/sum+1e-30), 1e-6, "%d of %d: %v", i, n, v)
				}
			}
			require.True(t, SoftmaxRows(x, x, n))
			require.Equal(t, y[:len(x)], x)
		}
	})
}

// Rows that have no largest finite element are NaN; −Inf beside others is 0.
func TestSoftmaxRowsSpecial(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	onTiers(t, func(t *testing.T) {
		for n := 1; n < 100; n++ {
			for at := range n {
				x, y := make([]float32, n), make([]float32, n)
				for _, special := range []float32{inf, nan} {
					x[at] = special
					if !SoftmaxRows(y, x, n) {
						return
					}
					for _, v := range y {
						require.True(t, v != v, "%v at %d of %d", special, at, n)
					}
				}
				x[at] = -inf
				require.True(t, SoftmaxRows(y, x, n))
				for i, v := range y {
					switch {
					case n == 1:
						require.True(t, v != v)
					case i == at:
						require.Zero(t, v)
					default:
						require.InDelta(t, 1/float64(n-1), v, 1e-6)
					}
				}
			}
		}
	})
}
