package simd_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
	"github.com/wavelane/wavelane/simd"
)

// TestHalves: conversions give the bits of compute's, in parts too, and products are those of the widened numbers.
func TestHalves(t *testing.T) {
	t.Run("f16", func(t *testing.T) { checkHalves(t, compute.F16Of, compute.F16.Float32) })
	t.Run("bf16", func(t *testing.T) { checkHalves(t, compute.BF16Of, compute.BF16.Float32) })
}

func checkHalves[T compute.F16 | compute.BF16](t *testing.T, narrow func(float32) T, widen func(T) float32) {
	defer simd.SetThreads(simd.SetThreads(4))
	defer simdtest.SplitEarly()()
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, n := range []int{0, 1, 7, 16, 33, 200, 5000} {
			x, h := make([]float32, n), make([]T, n)
			for i := range x {
				x[i] = math.Float32frombits(r.Uint32()) // NaN, Inf and subnormal numbers too
			}
			simd.Narrow(h, x)
			wide := guard(r, n+1)
			simd.Widen(wide.x[:n], h)
			for i, v := range x {
				require.Equal(t, narrow(v), h[i], v)
				require.Equal(t, math.Float32bits(widen(h[i])), math.Float32bits(wide.x[i]), v)
			}
			wide.x[n] = canary
			wide.check(t, "Widen")
		}
		for range 40 {
			m, k := r.IntN(10), r.IntN(300)
			if r.IntN(20) == 0 {
				m, k = 1+r.IntN(2), 20_000+r.IntN(20_000)
			}
			a, x := make([]T, m*k), numbers(r, k, false)
			simd.Narrow(a, numbers(r, m*k, false))
			want, got := make([]float32, m), poisoned(m)
			for i := range want {
				sum := 0.0
				for j, v := range x {
					sum += float64(widen(a[i*k+j])) * float64(v)
				}
				want[i] = float32(sum)
			}
			simd.MatVecHalf(got, a, x, m, k)
			requireClose(t, want, got)
			for i := range want {
				got[i] = simd.DotHalf(a[i*k:(i+1)*k], x)
			}
			requireClose(t, want, got)
		}
	})
}

func TestHalfErrors(t *testing.T) {
	x, h := make([]float32, 64), make([]compute.F16, 64)
	own := unsafe.Slice((*compute.F16)(unsafe.Pointer(&x[0])), 128)
	for name, f := range map[string]func(){
		"Widen":      func() { simd.Widen(x[:3], h[:4]) },
		"Narrow":     func() { simd.Narrow(h[:3], x[:4]) },
		"DotHalf":    func() { simd.DotHalf(h[:3], x[:4]) },
		"MatVecHalf": func() { simd.MatVecHalf(x[:2], h[:5], x[8:10], 2, 2) },
	} {
		requirePanic(t, name, compute.ErrShape, f)
	}
	for name, f := range map[string]func(){
		"Widen":      func() { simd.Widen(x[:4], own[7:11]) },
		"Narrow":     func() { simd.Narrow(own[7:11], x[:4]) },
		"MatVecHalf": func() { simd.MatVecHalf(x[:2], own[3:7], x[8:10], 2, 2) },
	} {
		requirePanic(t, name, compute.ErrArgument, f)
	}
	simd.Widen(x[:4], own[8:12])
}

func TestHalfAllocations(t *testing.T) {
	defer simd.SetThreads(simd.SetThreads(1))
	x, y, h := make([]float32, 700), make([]float32, 700), make([]compute.BF16, 700*700)
	f := func() {
		simd.Widen(x, h[:700])
		simd.Narrow(h[:700], x)
		y[0] = simd.DotHalf(h[:700], x)
		simd.MatVecHalf(y, h, x, 700, 700)
	}
	f()
	if allocated := testing.AllocsPerRun(5, f); !simdtest.Racing { // a collection may take the buffers
		require.Less(t, allocated, 1.0)
	}
}
