package simd

import (
	"math"
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

// exp64 promises 2⁻³¹, and the float32 functions made of it little more than their rounding.
func TestFunctionsAreNearlyRounded(t *testing.T) {
	r := seeded(t)
	for range 200_000 {
		x := r.Float64()*400 - 200
		require.InEpsilon(t, math.Exp(x), exp64(x), 0x1p-31, "exp64(%v)", x)
	}
	for _, c := range []struct {
		name string
		got  func(float32) float32
		want func(float64) float64
		low  float64
		high float64
	}{
		{"exp", expf, math.Exp, -87, 88},
		{"tanh", tanhf, math.Tanh, -10, 10},
		{"tanh near 0", tanhf, math.Tanh, -1e-3, 1e-3},
		{"sigmoid", sigmoidf, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -80, 80},
		{"swish", swishf, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, -80, 80},
		{"gelu", geluf, func(x float64) float64 {
			return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}, -8, 8},
		{"mish", mishf, func(x float64) float64 { return x * math.Tanh(math.Log1p(math.Exp(x))) }, -60, 60},
		{"softplus", softplusf, func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, -60, 60},
	} {
		for range 20_000 {
			x := float32(c.low + r.Float64()*(c.high-c.low))
			want := c.want(float64(x))
			ulp := float64(math.Nextafter32(abs32(float32(want)), math.MaxFloat32) - abs32(float32(want)))
			require.InDelta(t, want, c.got(x), 0.6*ulp+1e-45, "%s(%v)", c.name, x)
		}
	}
}

func TestExp64AtTheEdges(t *testing.T) {
	require.Equal(t, 1.0, exp64(0))
	require.True(t, math.IsNaN(exp64(math.NaN())))
	require.Equal(t, float32(math.Inf(1)), expf(float32(math.Inf(1))))
	require.Zero(t, expf(float32(math.Inf(-1))))
	require.Equal(t, float32(math.Inf(1)), expf(88.8))
	require.Equal(t, float32(math.Exp(-100)), expf(-100)) // subnormal
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
