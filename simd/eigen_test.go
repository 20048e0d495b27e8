package simd_test

import (
	"math"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
	"github.com/wavelane/wavelane/simd"
)

// symmetric is a symmetric matrix of normally distributed numbers.
func symmetric(r *rand.Rand, n int) []float32 {
	a := make([]float32, n*n)
	for i := range n {
		for j := range i + 1 {
			v := float32(r.NormFloat64())
			a[i*n+j], a[j*n+i] = v, v
		}
	}
	return a
}

// checkEigen requires that e is the decomposition of a, but for a few float32 roundings of the largest value.
func checkEigen(t *testing.T, a []float32, n int, e *simd.Eigen) {
	t.Helper()
	require.Equal(t, n, e.N())
	require.Len(t, e.Values(), n)
	require.Len(t, e.Vectors(), n*n)
	largest := 0.0
	for i, v := range e.Values() {
		require.False(t, i > 0 && e.Values()[i-1] < v, "values are not descending: %v", e.Values())
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range n {
		for j := range i + 1 {
			dot := 0.0
			for k := range n {
				dot += float64(e.Vector(i)[k]) * float64(e.Vector(j)[k])
			}
			want := 0.0
			if i == j {
				want = 1
			}
			if !(math.Abs(want-dot) <= 3e-7) {
				require.InDelta(t, want, dot, 3e-7, "vectors %d and %d of %d", i, j, n)
			}
		}
	}
	count := 0
	for value, vector := range e.All() {
		for i := range n {
			s := 0.0
			for j, v := range vector {
				s += float64(a[i*n+j]) * float64(v)
			}
			want := float64(value) * float64(vector[i])
			if !(math.Abs(want-s) <= 1e-6*largest) {
				require.InDelta(t, want, s, 1e-6*largest, "row %d of A·v for value %d, %v", i, count, value)
			}
		}
		count++
	}
	require.Equal(t, n, count)
	again := make([]float32, n*n)
	e.Reconstruct(again)
	for i, v := range a {
		require.InDelta(t, v, again[i], 1e-6*largest, "element %d of %d×%d", i, n, n)
	}
}

func TestSymmetricEigen(t *testing.T) {
	inOneThread(t)
	r := newRand(t)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		var reused simd.Eigen
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 50, 64, 100, 130} {
			a := symmetric(r, n)
			e, err := simd.SymmetricEigen(a, n)
			require.NoError(t, err)
			checkEigen(t, a, n, e)
			require.NoError(t, reused.Decompose(a, n))
			require.Equal(t, e.Values(), reused.Values())
			require.Equal(t, e.Vectors(), reused.Vectors())
		}
	})
}

// Matrices that are hard for one or the other step.
func TestSymmetricEigenSpecial(t *testing.T) {
	r := newRand(t)
	const n = 24
	matrix := func(f func(i, j int) float64) []float32 {
		a := make([]float32, n*n)
		for i := range n {
			for j := range i + 1 {
				a[i*n+j] = float32(f(i, j))
				a[j*n+i] = a[i*n+j]
			}
		}
		return a
	}
	x := make([]float64, 3*n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			a    []float32
		}{
			{"zero", matrix(func(i, j int) float64 { return 0 })},
			{"identity", matrix(func(i, j int) float64 { return max(0, 1-math.Abs(float64(i-j))) })},
			{"ones", matrix(func(i, j int) float64 { return 1 })},
			{"rank 3", matrix(func(i, j int) float64 { return x[i]*x[j] + x[n+i]*x[n+j] - x[2*n+i]*x[2*n+j] })},
			{"two blocks", matrix(func(i, j int) float64 {
				if i/10 != j/10 {
					return 0
				}
				return x[i] + x[j]
			})},
			{"anti-diagonal", matrix(func(i, j int) float64 { return max(0, 1-math.Abs(float64(i+j-n+1))) })},
			{"graded", matrix(func(i, j int) float64 { return math.Pow(10, -float64(i+j)/4) * (1 + x[i]*x[j]) })},
			{"huge", matrix(func(i, j int) float64 { return (x[i] + x[j]) * 1e37 / n })},
			{"denormal", matrix(func(i, j int) float64 { return math.Trunc(99*(x[i]+x[j])) * math.SmallestNonzeroFloat32 })},
		} {
			e, err := simd.SymmetricEigen(c.a, n)
			require.NoError(t, err, c.name)
			if c.name != "denormal" { // its vectors are fine, its values have few digits
				checkEigen(t, c.a, n, e)
			}
		}
		diagonal := matrix(func(i, j int) float64 { return max(0, 1-math.Abs(float64(i-j))) * float64(i%5) })
		e, err := simd.SymmetricEigen(diagonal, n)
		require.NoError(t, err)
		require.Equal(t, []float32{4, 4, 4, 4, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}, e.Values())
		// The second difference has the values 2 − 2·cos(kπ/(n+1)).
		e, err = simd.SymmetricEigen(matrix(func(i, j int) float64 { return [n]float64{2, -1}[i-j] }), n)
		require.NoError(t, err)
		for i, v := range e.Values() {
			require.InDelta(t, 2-2*math.Cos(float64(n-i)*math.Pi/(n+1)), v, 1e-6, "value %d", i)
		}
	})
}

func TestSymmetricEigenErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		a    []float32
		n    int
		want error
		text string
	}{
		{[]float32{1, 2, 3}, 2, compute.ErrShape, "3 elements"},
		{nil, -1, compute.ErrShape, "-1"},
		{make([]float32, 4), math.MaxInt, compute.ErrShape, "4 elements"},
		{[]float32{1, nan, 2, 3}, 2, compute.ErrArgument, "[0, 1] is NaN"},
		{[]float32{1, 2, 2, inf}, 2, compute.ErrArgument, "[1, 1] is -Inf"},
		{[]float32{1, 2, 2.5, 3}, 2, compute.ErrArgument, "0.5 apart, the largest is 3"},
		{[]float32{1000, 2, 2.011, 3}, 2, compute.ErrArgument, "[1, 0] and [0, 1]"},
	} {
		e, err := simd.SymmetricEigen(c.a, c.n)
		require.ErrorIs(t, err, c.want, "%v", c.a)
		require.ErrorContains(t, err, c.text)
		require.Nil(t, e)
	}
	e := &simd.Eigen{}
	require.NoError(t, e.Decompose([]float32{1000, 2, 2.009, 3}, 2), "asymmetry within the tolerance")
	require.Error(t, e.Decompose([]float32{1, nan, nan, 1}, 2))
	require.Zero(t, e.N())
	require.Empty(t, e.Values())
	require.NoError(t, e.Decompose([]float32{0, 1, 1, 0}, 2))
	require.InDeltaSlice(t, []float32{1, -1}, e.Values(), 1e-7)
	requirePanic(t, "Eigen.Reconstruct", compute.ErrShape, func() { e.Reconstruct(make([]float32, 3)) })
	for v := range e.All() {
		require.InDelta(t, 1, v, 1e-7)
		break
	}
}

func TestSymmetricEigenAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	a := symmetric(newRand(t), 40)
	e, err := simd.SymmetricEigen(a, 40)
	require.NoError(t, err)
	dst := make([]float32, 40*40)
	require.Zero(t, testing.AllocsPerRun(5, func() {
		if e.Decompose(a, 40) != nil {
			t.Error("decompose")
		}
	}))
	require.NoError(t, e.Decompose(a, 40))
	require.Zero(t, testing.AllocsPerRun(5, func() { e.Reconstruct(dst) }))
}
