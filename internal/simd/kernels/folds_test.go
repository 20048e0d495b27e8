package kernels

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bits of a sum depend on the elements alone, not on where in memory they lie.
func TestSumsDoNotDependOnPlace(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		if k.accumulators == 0 {
			return
		}
		r := random(t)
		for _, n := range []int{1, 15, 100, 257, 300, 1000, 4099} {
			tr := newTrial(t, k, r, n, ordinary)
			var first call
			for o := range 16 {
				c := call{p: tr.p}
				for j := range k.inputs {
					c.in[j] = newField(n)[margin+(o*(j+1))%16:][:n]
					copy(c.in[j], tr.x[j])
				}
				if k.store {
					c.y = newField(n)[margin+(5*o)%16:][:n]
				}
				k.run(&c)
				if o == 0 {
					first = c
				}
				require.Equal(t, first.out, c.out, "%d elements, offset %d", n, o)
				require.Equal(t, first.lanes, c.lanes, "%d elements, offset %d", n, o)
			}
		}
	})
}

// The portable fallbacks of folds that are no sums, which other tests compare with, against package slices.
func TestTwinsOfExtremes(t *testing.T) {
	r := random(t)
	for n := range 70 {
		a := make([]float32, n)
		fill(r, a, mix(n)%mixes, -10, 10)
		nan := slices.IndexFunc(a, func(x float32) bool { return x != x })
		if nan < 0 {
			require.Equal(t, n, findNaNGo(a))
			for i, v := range a {
				require.Equal(t, slices.Index(a, v), findGo(a, v))
				require.LessOrEqual(t, findGo(a, v), i)
			}
		} else {
			require.Equal(t, nan, findNaNGo(a))
			require.True(t, math.IsNaN(float64(maxGo(a))) && math.IsNaN(float64(minGo(a))) && math.IsNaN(float64(maxAbsGo(a))))
			continue
		}
		if n == 0 {
			require.Equal(t, []float32{-inf, inf, 0}, []float32{maxGo(a), minGo(a), maxAbsGo(a)})
			continue
		}
		require.Equal(t, slices.Max(a), maxGo(a))
		require.Equal(t, slices.Min(a), minGo(a))
		require.Equal(t, max(slices.Max(a), -slices.Min(a)), maxAbsGo(a))
	}
}

// The portable fallbacks' sums, and all that dispatch does on a machine without SIMD.
func TestScalar(t *testing.T) {
	before := Active()
	defer func() { require.NoError(t, SetTier(before)) }()
	require.NoError(t, SetTier(Scalar))
	r := random(t)
	for i := range table {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 31, 100, 257} {
			newTrial(t, &table[i], r, n, ordinary).run(t, randomPlace(r))
			newTrial(t, &table[i], r, n, salted).run(t, randomPlace(r))
		}
	}
}

func TestKahanTotal(t *testing.T) {
	var lanes [2 * Lanes]float32
	SumKahan(&lanes, []float32{1e8, 1, -1e8, 1})
	require.Equal(t, 2.0, KahanTotal(&lanes))
	lanes = [2 * Lanes]float32{}
	SumKahan(&lanes, []float32{math.MaxFloat32, math.MaxFloat32, inf, 1})
	require.True(t, math.IsInf(KahanTotal(&lanes), 1))
	lanes = [2 * Lanes]float32{}
	SumKahan(&lanes, []float32{1, inf, -inf})
	require.True(t, math.IsNaN(KahanTotal(&lanes)))
}
