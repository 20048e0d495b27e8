package simd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/simd"
)

// TestEverySliceFunctionIsInTheTable reads the package's source, so that a new function cannot be forgotten.
func TestEverySliceFunctionIsInTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, f := range sliceFunctions {
		require.False(t, known[f.name], f.name)
		known[f.name] = true
	}
	n := 0
	for _, file := range []string{"slices_elementwise.go", "slices_reduce.go", "slices_rows.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
				require.True(t, known[f.Name.Name], "%s is not in the table", f.Name.Name)
				n++
			}
		}
	}
	require.Equal(t, len(sliceFunctions), n)
}

func newRand(t testing.TB) *rand.Rand {
	return testseed.Rand(t)
}

// inOneThread leaves a test out under the race detector, which takes long and has nothing to see in it: the test starts no
// goroutines, and those that do run the same code.
func inOneThread(t *testing.T) {
	if simdtest.Racing {
		t.Skip("starts no goroutines")
	}
}

// atSizes are lengths around all rests of vectors and unrolled loops, blocks, and parts.
func atSizes(r *rand.Rand) []int {
	sizes := []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257,
		1023, 1025, 2049, 8192, 8193}
	return append(sizes, 1+r.IntN(1000), 9000+r.IntN(9000))
}

// guarded is memory with values around a slice that must stay.
type guarded struct{ memory, x []float32 }

const canary = 12345.5

func guard(r *rand.Rand, n int) guarded {
	at := 16 + r.IntN(16) // any alignment
	g := guarded{memory: make([]float32, n+64)}
	for i := range g.memory {
		g.memory[i] = canary
	}
	g.x = g.memory[at : at+n : at+n]
	return g
}

func (g guarded) check(t *testing.T, name string) {
	at := 0
	for ; &g.memory[at] != &g.x[0]; at++ {
		if g.memory[at] != canary {
			require.Fail(t, "wrote before its destination", name)
		}
	}
	for _, v := range g.memory[at+len(g.x):] {
		if v != canary {
			require.Fail(t, "wrote beyond its destination", name)
		}
	}
}

func (f *sliceFunction) inputs(r *rand.Rand, n int) [][]float32 {
	in := make([][]float32, f.operands())
	for k := range in {
		in[k] = guard(r, n).x
		for i := range in[k] {
			in[k][i] = f.low + (f.high-f.low)*r.Float32()
		}
	}
	return in
}

// Results are those of float64 arithmetic, at every length and alignment, with nothing written beside them, in place too.
func TestSliceFunctions(t *testing.T) {
	inOneThread(t)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, f := range sliceFunctions {
			for _, n := range atSizes(r) {
				in := f.inputs(r, n)
				want := f.want(n, in)
				dst := guard(r, n)
				f.check(t, n, in, want, f.call(dst.x, in))
				if !f.stores() {
					continue
				}
				dst.check(t, f.name)
				if f.name == "Axpy" {
					continue // always in place
				}
				for k := range in {
					own := append([][]float32{}, in...)
					place := guard(r, n)
					copy(place.x, in[k])
					own[k] = place.x
					f.check(t, n, in, want, f.call(place.x, own))
					place.check(t, f.name)
				}
			}
		}
	})
}

func (f *sliceFunction) check(t *testing.T, n int, in [][]float32, want, got []float64) {
	t.Helper()
	require.Len(t, got, len(want), f.name)
	for i, w := range want {
		if g := got[i]; !(math.Abs(g-w) <= f.abs+f.rel*math.Abs(w) || g == w || g != g && w != w) {
			t.Fatalf("%s of %d elements: element %d is %v, not %v", f.name, n, i, g, w)
		}
	}
}

// A destination may begin before an operand and reach into it, on however many threads; not the other way round.
func TestSliceOverlaps(t *testing.T) {
	defer simd.SetThreads(simd.SetThreads(4))
	defer simdtest.SplitEarly()()
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, f := range sliceFunctions {
			if !f.stores() || f.name == "Axpy" || f.operands() == 0 {
				continue
			}
			for _, n := range []int{3, 50, 2000, 40_000} {
				for k := range f.operands() {
					in := f.inputs(r, n)
					shift := 1 + r.IntN(min(n-1, 40))
					memory := make([]float32, n+shift)
					copy(memory[shift:], in[k])
					want := f.want(n, in)
					in[k] = memory[shift:]
					f.check(t, n, in, want, f.call(memory[:n], in))
					in[k] = memory[:n]
					requirePanic(t, f.name, compute.ErrArgument, func() { f.call(memory[shift:], in) })
				}
			}
		}
	})
}

func requirePanic(t *testing.T, name string, want error, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, ok := recover().(error)
		require.True(t, ok, "%s does not panic with an error", name)
		require.ErrorIs(t, err, want, name)
		require.ErrorContains(t, err, "simd."+name)
	}()
	f()
}

func TestSliceLengths(t *testing.T) {
	r := newRand(t)
	for _, f := range sliceFunctions {
		if f.operands() == 0 {
			continue
		}
		for k := range f.operands() {
			if !f.stores() && f.operands() == 1 {
				continue
			}
			in := f.inputs(r, 10)
			for _, n := range []int{0, 9, 11} {
				in[k] = make([]float32, n)
				requirePanic(t, f.name, compute.ErrShape, func() { f.call(make([]float32, 10), in) })
			}
		}
	}
}

// Empty slices, of nil too.
func TestEmptySlices(t *testing.T) {
	for _, f := range sliceFunctions {
		in := make([][]float32, f.operands())
		switch f.empty {
		case panics:
			requirePanic(t, f.name, compute.ErrShape, func() { f.call(nil, in) })
		case nan:
			got := f.call(nil, in)
			require.Len(t, got, 1, f.name)
			require.True(t, math.IsNaN(got[0]), f.name)
		case zero:
			require.Equal(t, []float64{0}, f.call(nil, in), f.name)
		default:
			require.Empty(t, f.call(nil, in), f.name)
		}
	}
}

// Results have the same bits on however many threads.
func TestThreadsDoNotShow(t *testing.T) {
	defer simd.SetThreads(simd.SetThreads(1))
	defer simdtest.SplitEarly()()
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, f := range sliceFunctions {
			n := 40_000 + r.IntN(10_000)
			in := f.inputs(r, n)
			dst := make([]float32, n)
			var want []float64
			for _, threads := range []int{1, 2, 3, 7} {
				simd.SetThreads(threads)
				if f.name == "Axpy" {
					clear(dst)
				}
				got := f.call(dst, in)
				if want == nil {
					want = got
				}
				for i := range want {
					if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
						t.Fatalf("%s: element %d of %d is %v on %d threads, %v on one", f.name, i, n, got[i], threads, want[i])
					}
				}
			}
		}
	})
}

func TestSliceCallsAllocateNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	inOneThread(t)
	defer simd.SetThreads(simd.SetThreads(1))
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, f := range sliceFunctions {
			for _, n := range []int{100, 40_000} {
				in, dst := f.inputs(r, n), make([]float32, n)
				call := f.bind(dst, in)
				call()
				require.Zero(t, testing.AllocsPerRun(3, call), "%s of %d elements", f.name, n)
			}
		}
	})
}

func TestSetThreads(t *testing.T) {
	was := simd.SetThreads(5)
	require.Equal(t, 5, simd.SetThreads(-1))
	require.Zero(t, simd.SetThreads(was))
}

// Special values, where the catalogue names them.
func TestExtremes(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, n := range []int{1, 2, 10, 70, 1000, 100_000} {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(r.IntN(5)) // many equal ones
			}
			check := func() {
				t.Helper()
				high, low, firstNaN := 0, 0, -1
				for i, v := range x {
					if v > x[high] {
						high = i
					}
					if v < x[low] {
						low = i
					}
					if v != v && firstNaN < 0 {
						firstNaN = i
					}
				}
				if firstNaN >= 0 {
					high, low = firstNaN, firstNaN
				}
				require.Equal(t, high, simd.ArgMax(x), "%d elements", n)
				require.Equal(t, low, simd.ArgMin(x), "%d elements", n)
				require.True(t, simd.Max(x) == x[high] || firstNaN >= 0 && math.IsNaN(float64(simd.Max(x))))
				require.True(t, simd.Min(x) == x[low] || firstNaN >= 0 && math.IsNaN(float64(simd.Min(x))))
				require.Equal(t, firstNaN >= 0, math.IsNaN(float64(simd.NormLInf(x))))
			}
			check()
			x[r.IntN(n)], x[r.IntN(n)] = inf, -inf
			check()
			x[r.IntN(n)], x[r.IntN(n)] = inf, -inf
			check()
			for range 3 {
				x[r.IntN(n)] = nan
				check()
			}
			for i := range x {
				x[i] = float32(math.Copysign(0, float64(i%2)-0.5))
			}
			check()
			for i := range x {
				x[i] = -inf
			}
			check()
		}
	})
}

// Rows with infinities and NaN, short and long.
func TestSoftmaxOfSpecialValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, n := range []int{3, 100, 100_000} {
			for name, prepare := range map[string]func(x []float32){
				"NaN":      func(x []float32) { x[r.IntN(n)] = nan },
				"+Inf":     func(x []float32) { x[r.IntN(n)] = inf },
				"all −Inf": func(x []float32) { simd.Fill(x, -inf) },
			} {
				x := make([]float32, n)
				prepare(x)
				y := make([]float32, n)
				for _, f := range []func(dst, x []float32){simd.Softmax, simd.LogSoftmax} {
					f(y, x)
					for i, v := range y {
						if v == v {
							t.Fatalf("%s: element %d is %v", name, i, v)
						}
					}
				}
			}
			x := make([]float32, n) // nothing but −Inf over whole blocks
			simd.Fill(x, -inf)
			at := r.IntN(n)
			x[at] = -1000
			y := make([]float32, n)
			simd.Softmax(y, x)
			for i, v := range y {
				if i == at && v != 1 || i != at && v != 0 {
					t.Fatalf("element %d is %v", i, v)
				}
			}
			simd.LogSoftmax(y, x)
			require.Zero(t, y[at])
			require.Equal(t, -inf, y[(at+1)%n])
		}
	})
}

// Sums of many equal numbers round the same way in every addition.
func TestSumsStayWithinTheirBound(t *testing.T) {
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		x := make([]float32, 200_000)
		for range 20 {
			v := 1 + r.Float32()
			simd.Fill(x, v)
			n := 1 + r.IntN(len(x))
			want := float64(v) * float64(n)
			require.InEpsilon(t, want, simd.Sum(x[:n]), 2e-6)
			require.InEpsilon(t, want, simd.NormL1(x[:n]), 2e-6)
			require.InEpsilon(t, want*float64(v), simd.Dot(x[:n], x[:n]), 2e-6)
			require.InEpsilon(t, want*float64(v), simd.SumSquares(x[:n]), 2e-6)
			require.InEpsilon(t, want, simd.SumKahan(x[:n]), 1.2e-7)
			require.InEpsilon(t, v, simd.Mean(x[:n]), 2e-6)
			require.Zero(t, simd.Variance(x[:n]), "of %d times %v", n, v)
		}
		x[5] = float32(math.Inf(-1))
		require.Equal(t, float32(math.Inf(-1)), simd.SumKahan(x))
	})
}

// The spread of numbers that differ in their last digits only.
func TestVarianceBesideALargeMean(t *testing.T) {
	simdtest.OnEveryTier(t, func(t *testing.T) {
		r := newRand(t)
		for _, n := range []int{10, 1000, 100_000} {
			x, exact := make([]float32, n), make([]float64, n)
			mean := 0.0
			for i := range x {
				x[i] = 10_000 + float32(r.IntN(64))/1024
				exact[i] = float64(x[i])
				mean += exact[i] / float64(n)
			}
			want := 0.0
			for _, v := range exact {
				want += (v - mean) * (v - mean) / float64(n)
			}
			require.InEpsilon(t, want, simd.Variance(x), 1e-5)
			require.InEpsilon(t, math.Sqrt(want), simd.StdDev(x), 1e-5)
			require.InEpsilon(t, want, simd.Covariance(x, x), 1e-5)
			require.InEpsilon(t, 1, simd.Correlation(x, x), 1e-6)
			simd.ZScore(x, x)
			require.InDelta(t, 0, simd.Mean(x), 0.0006/math.Sqrt(want)) // the mean is rounded to a float32, 0.001 apart there
			require.InEpsilon(t, 1, simd.StdDev(x), 1e-4)
		}
	})
}
