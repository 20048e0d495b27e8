package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// run feeds a fold element by element and returns its accumulators.
func run(b *ir.Body, in [][]float32, params []float32) (acc []float32) {
	x := make([]float32, len(in))
	for i := range in[0] {
		for k := range in {
			x[k] = in[k][i]
		}
		acc = b.Eval(x, params, acc).Acc
	}
	return acc
}

func TestFolds(t *testing.T) {
	r := rand.New(rand.NewPCG(seed(t), 0))
	const n = 777
	a, c := make([]float32, n), make([]float32, n)
	for i := range a {
		a[i], c[i] = float32(r.NormFloat64()*3), float32(r.NormFloat64())
	}
	p := []float64{float64(float32(r.NormFloat64())), float64(float32(r.NormFloat64()))}
	terms := map[string]func(x, y float64) float64{
		"Sum":         func(x, _ float64) float64 { return x },
		"SumAbs":      func(x, _ float64) float64 { return math.Abs(x) },
		"SumSquares":  func(x, _ float64) float64 { return x * x },
		"Dot":         func(x, y float64) float64 { return x * y },
		"SumSqDiff":   func(x, _ float64) float64 { return (x - p[0]) * (x - p[0]) },
		"SumProdDiff": func(x, y float64) float64 { return (x - p[0]) * (y - p[1]) },
		"ExpSub":      func(x, _ float64) float64 { return math.Exp(x - p[0]) },
		"SumExpSub":   func(x, _ float64) float64 { return math.Exp(x - p[0]) },
	}
	for name, term := range terms {
		k := kernel(t, name)
		want, size := 0.0, 0.0
		for i := range a {
			v := term(float64(a[i]), float64(c[i]))
			want, size = want+v, size+math.Abs(v)
		}
		for _, s := range featureSets {
			in := [][]float32{a, c}[:len(k.Inputs)]
			got := run(k.Build(s.Features), in, []float32{float32(p[0]), float32(p[1])}[:len(k.Params)])
			require.InDelta(t, want, got[0], size*n*0x1p-25, "%s %s", name, s.name)
		}
	}
	nan := slices.Concat(a[:100], []float32{float32(math.NaN())}, a[100:])
	for _, s := range featureSets {
		extreme := func(name string, x []float32) float32 {
			return run(kernel(t, name).Build(s.Features), [][]float32{x}, nil)[0]
		}
		require.Equal(t, slices.Max(a), extreme("Max", a))
		require.Equal(t, slices.Min(a), extreme("Min", a))
		require.Equal(t, max(slices.Max(a), -slices.Min(a)), extreme("MaxAbs", a))
		for _, name := range []string{"Max", "Min", "MaxAbs"} {
			require.True(t, math.IsNaN(float64(extreme(name, nan))), name)
		}
	}
}

// The sum of numbers that a plain loop loses in a large one.
func TestSumKahan(t *testing.T) {
	x := []float32{1e8}
	for range 1000 {
		x = append(x, 0.25, 1e-3)
	}
	x = append(x, -1e8)
	want := 0.0
	for _, v := range x {
		want += float64(v)
	}
	for _, s := range featureSets {
		acc := run(kernel(t, "SumKahan").Build(s.Features), [][]float32{x}, nil)
		require.InEpsilon(t, want, float64(acc[0])+float64(acc[1]), 1e-4, s.name)
		require.NotEqual(t, float32(0), acc[1])
		acc = run(kernel(t, "SumKahan").Build(s.Features), [][]float32{{1, float32(math.Inf(1)), 2}}, nil)
		require.Equal(t, float32(math.Inf(1)), acc[0])
	}
}

func TestSearches(t *testing.T) {
	nan := float32(math.NaN())
	for _, s := range featureSets {
		find := kernel(t, "Find").Build(s.Features)
		require.True(t, find.Eval([]float32{2}, []float32{2}, nil).Guard)
		require.True(t, find.Eval([]float32{0}, []float32{float32(math.Copysign(0, -1))}, nil).Guard)
		require.False(t, find.Eval([]float32{2}, []float32{3}, nil).Guard)
		require.False(t, find.Eval([]float32{nan}, []float32{nan}, nil).Guard)
		findNaN := kernel(t, "FindNaN").Build(s.Features)
		require.True(t, findNaN.Eval([]float32{nan}, nil, nil).Guard)
		require.False(t, findNaN.Eval([]float32{float32(math.Inf(1))}, nil, nil).Guard)
	}
}

// Every kernel is in a test, has a comment that begins with its name, and a name of its own.
func TestAll(t *testing.T) {
	tested := map[string]bool{"Sum": true, "SumAbs": true, "SumSquares": true, "Dot": true, "SumSqDiff": true,
		"SumProdDiff": true, "SumExpSub": true, "Max": true, "Min": true, "MaxAbs": true, "SumKahan": true, "Find": true,
		"FindNaN": true}
	for _, fn := range slices.Concat(functions, fastFunctions) {
		tested[fn.name] = true
	}
	for _, s := range simples {
		tested[s.name] = true
	}
	seen := map[string]bool{}
	for _, k := range All {
		require.True(t, tested[k.Name], k.Name)
		require.False(t, seen[k.Name], k.Name)
		require.Regexp(t, "^"+k.Name+" ", k.Doc)
		seen[k.Name] = true
		for _, s := range featureSets {
			b := k.Build(s.Features)
			require.True(t, b.Store != nil || b.Guard != nil || len(b.Accumulators) > 0, k.Name)
		}
	}
}
