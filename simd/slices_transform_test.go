package simd_test

import (
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
	"github.com/wavelane/wavelane/simd"
)

var (
	notANumber = float32(math.NaN())
	infinite   = float32(math.Inf(1))
)

// numbers are n random ones, every sixth of them special if salted.
func numbers(r *rand.Rand, n int, salted bool) []float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), notANumber, infinite, -infinite, 0x1p-149, -1e9, 1}
	x := make([]float32, n)
	for i := range x {
		if x[i] = 2*r.Float32() - 1; salted && r.IntN(6) == 0 {
			x[i] = special[r.IntN(len(special))]
		}
	}
	return x
}

// poisoned is a destination that nothing can be mistaken for.
func poisoned(n int) []float32 { return slices.Repeat([]float32{-12345.678}, n) }

// same requires equal bits, but for those of NaN.
func same(t *testing.T, want, got []float32, msg ...any) {
	t.Helper()
	require.Len(t, got, len(want), msg...)
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) && (want[i] == want[i] || got[i] == got[i]) {
			require.Failf(t, "differs", "element %d is %v, want %v; %v", i, got[i], want[i], msg)
		}
	}
}

// manyThreads makes slice functions use several threads.
func manyThreads(t *testing.T, n int) {
	before := simd.SetThreads(n)
	t.Cleanup(func() { simd.SetThreads(before) })
}

func TestTranspose(t *testing.T) {
	r := newRand(t)
	manyThreads(t, 3)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		sizes := [][2]int{{0, 0}, {0, 5}, {1, 1}, {1, 9}, {9, 1}, {3, 200}, {17, 33}, {64, 64}, {100, 101}, {600, 300}}
		for _, s := range sizes {
			rows, cols := s[0], s[1]
			x, dst := numbers(r, rows*cols, true), poisoned(rows*cols)
			simd.Transpose(dst, x, rows, cols)
			want := make([]float32, len(x))
			for i := range rows {
				for j := range cols {
					want[j*rows+i] = x[i*cols+j]
				}
			}
			same(t, want, dst, s)
			if rows == cols {
				simd.Transpose(x, x, rows, cols)
				same(t, want, x, s)
			}
		}
	})
	x := make([]float32, 12)
	requirePanic(t, "Transpose", compute.ErrShape, func() { simd.Transpose(x, x, 3, 5) })
	requirePanic(t, "Transpose", compute.ErrArgument, func() { simd.Transpose(x, x, 3, 4) })
	requirePanic(t, "Transpose", compute.ErrArgument, func() { simd.Transpose(x[:9], x[1:10], 3, 3) })
	requirePanic(t, "Transpose", compute.ErrShape, func() { simd.Transpose(x, x, -3, -4) })
	requirePanic(t, "Transpose", compute.ErrShape, func() { simd.Transpose(nil, nil, 1<<62, 4) })
}

func TestIdentity(t *testing.T) {
	for n := range 6 {
		dst := poisoned(n * n)
		simd.Identity(dst, n)
		for i, v := range dst {
			require.Equal(t, i/n == i%n, v == 1, "%d of %d×%d", i, n, n)
			require.True(t, v == 0 || v == 1)
		}
	}
	requirePanic(t, "Identity", compute.ErrShape, func() { simd.Identity(make([]float32, 5), 2) })
}

func TestPadGatherEmbedding(t *testing.T) {
	r := newRand(t)
	for range 200 {
		shape := make([]int, r.IntN(5))
		o := compute.PadOptions{Value: 7, Before: make([]int, len(shape)), After: make([]int, len(shape))}
		for i := range shape {
			shape[i], o.Before[i], o.After[i] = r.IntN(5), r.IntN(3), r.IntN(3)
		}
		in := program.F32(shape...)
		out, err := catalogue.Pad.Infer([]program.Type{in}, program.Attr{Options: o})
		require.NoError(t, err)
		x, dst := numbers(r, in.Len(), false), poisoned(out.Len())
		want := reference.Of(catalogue.Pad, []reference.Array{array(in, x)}, program.Attr{Options: o}, []program.Type{out})[0].Data
		simd.Pad(dst, x, shape, o)
		same(t, rounded(want), dst, shape, o)
	}
	requirePanic(t, "Pad", compute.ErrArgument, func() { simd.Pad(nil, nil, []int{1}, compute.PadOptions{}) })
	requirePanic(t, "Pad", compute.ErrArgument, func() {
		simd.Pad(nil, nil, []int{1}, compute.PadOptions{Before: []int{-1}, After: []int{1}})
	})
	requirePanic(t, "Pad", compute.ErrShape, func() {
		simd.Pad(make([]float32, 3), make([]float32, 1), []int{1}, compute.PadOptions{Before: []int{1}, After: []int{0}})
	})

	manyThreads(t, 3)
	x := numbers(r, 100, true)
	ids := []int32{99, 0, -1, 100, 50, 50, math.MaxInt32, math.MinInt32}
	dst := poisoned(len(ids))
	simd.Gather(dst, x, ids)
	same(t, []float32{x[99], x[0], notANumber, notANumber, x[50], x[50], notANumber, notANumber}, dst)
	for _, width := range []int{1, 5, 20, 100} {
		many := slices.Repeat(ids, 1+40_000/width)
		dst := poisoned(len(many) * width)
		simd.Embedding(dst, x, many, width)
		want := make([]float32, 0, len(dst))
		for _, id := range many {
			if id < 0 || int(id) >= len(x)/width {
				want = append(want, slices.Repeat([]float32{notANumber}, width)...)
			} else {
				want = append(want, x[int(id)*width:][:width]...)
			}
		}
		same(t, want, dst, width)
	}
	simd.Embedding(nil, nil, ids, 0)
	requirePanic(t, "Embedding", compute.ErrShape, func() { simd.Embedding(make([]float32, 7*len(ids)), x, ids, 7) })
	requirePanic(t, "Gather", compute.ErrShape, func() { simd.Gather(dst[:3], x, ids) })
	requirePanic(t, "Gather", compute.ErrArgument, func() { simd.Gather(x[:len(ids)], x, ids) })

	require.Equal(t, []int32{7, -1, 2, 3, 9}, simd.UniqueIDs([]int32{7}, []int32{3, 9, -1, 3, 2, 9, 9}))
	require.Empty(t, simd.UniqueIDs(nil, nil))
}

func rounded(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func TestTopK(t *testing.T) {
	r := newRand(t)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for range 300 {
			x := numbers(r, r.IntN(700), r.IntN(2) == 0)
			if r.IntN(2) == 0 {
				for i := range x {
					x[i] = float32(math.Trunc(float64(x[i]) * 9)) // ties
				}
			}
			order := make([]int32, len(x))
			for i := range order {
				order[i] = int32(i)
			}
			slices.SortStableFunc(order, func(i, j int32) int {
				v, w := x[i], x[j]
				switch {
				case v > w || v != v && w == w:
					return -1
				case v < w || w != w && v == v:
					return 1
				}
				return 0
			})
			k := r.IntN(len(x) + 1)
			values, indices := poisoned(k), make([]int32, k)
			simd.TopK(values, indices, x)
			require.Equal(t, order[:k], indices)
			for i, j := range indices {
				same(t, x[j:j+1], values[i:i+1])
			}
		}
	})
	x := make([]float32, 4)
	requirePanic(t, "TopK", compute.ErrShape, func() { simd.TopK(make([]float32, 5), make([]int32, 5), x) })
	requirePanic(t, "TopK", compute.ErrShape, func() { simd.TopK(make([]float32, 2), make([]int32, 3), x) })
	requirePanic(t, "TopK", compute.ErrArgument, func() { simd.TopK(x[:2], make([]int32, 2), x) })
}

// randomPool is a pooling of random sizes that is possible.
func randomPool(r *rand.Rand) (h, w int, o compute.PoolOptions) {
	for {
		h, w = r.IntN(40), r.IntN(70)
		for i := range 2 {
			o.Size[i] = 1 + r.IntN(1+r.IntN(30))
			o.Pad[i] = r.IntN(o.Size[i]/2 + 1)
			o.Stride[i] = r.IntN(4)
		}
		if _, _, err := simd.Pool2DShape(h, w, o); err == nil {
			return h, w, o
		}
	}
}

func TestPooling(t *testing.T) {
	r := newRand(t)
	manyThreads(t, 2)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for range 150 {
			planes := r.IntN(4)
			h, w, o := randomPool(r)
			outH, outW, err := simd.Pool2DShape(h, w, o)
			require.NoError(t, err)
			in, out := program.F32(planes, h, w), program.F32(planes, outH, outW)
			x := numbers(r, in.Len(), r.IntN(3) == 0)
			dst := poisoned(out.Len())
			simd.MaxPool2D(dst, x, planes, h, w, o)
			want := reference.Of(catalogue.MaxPool2D, []reference.Array{array(in, x)}, program.Attr{Options: o}, []program.Type{out})[0].Data
			for i, v := range want {
				require.True(t, float32(v) == dst[i] || v != v && dst[i] != dst[i],
					"max %dx%d %+v: element %d is %v, want %v", h, w, o, i, dst[i], v)
			}
			dst = poisoned(out.Len())
			simd.AvgPool2D(dst, x, planes, h, w, o)
			want = reference.Of(catalogue.AvgPool2D, []reference.Array{array(in, x)}, program.Attr{Options: o}, []program.Type{out})[0].Data
			for i, v := range want {
				if v != v || math.IsInf(v, 0) {
					same(t, rounded(want[i:i+1]), dst[i:i+1], "mean", h, w, o, i)
					continue
				}
				require.InDelta(t, v, dst[i], 2e-6*max(1, math.Abs(v)), "mean %dx%d %+v: element %d", h, w, o, i)
			}
		}
	})
	// The sum of a window overflows, its mean does not.
	x, dst := slices.Repeat([]float32{math.MaxFloat32}, 12), make([]float32, 3)
	simd.AvgPool2D(dst, x, 1, 2, 6, compute.PoolOptions{Size: [2]int{2, 2}})
	require.Equal(t, slices.Repeat([]float32{math.MaxFloat32}, 3), dst)
	_, _, err := simd.Pool2DShape(4, 4, compute.PoolOptions{})
	require.ErrorIs(t, err, compute.ErrArgument)
	_, _, err = simd.Pool2DShape(-1, 4, compute.PoolOptions{Size: [2]int{1, 1}})
	require.ErrorIs(t, err, compute.ErrShape)
	requirePanic(t, "MaxPool2D", compute.ErrArgument, func() { simd.MaxPool2D(dst, x, 1, 2, 6, compute.PoolOptions{}) })
	requirePanic(t, "MaxPool2D", compute.ErrShape, func() {
		simd.MaxPool2D(dst[:2], x, 1, 2, 6, compute.PoolOptions{Size: [2]int{2, 2}})
	})
}

func TestTransformAllocations(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	manyThreads(t, 1)
	r := newRand(t)
	x, y := numbers(r, 64*16*16, false), make([]float32, 64*18*18)
	w, bias := numbers(r, 64*64*9, false), numbers(r, 64, false)
	values, indices := make([]float32, 9), make([]int32, 9)
	ids, unique := []int32{5, 1, 5}, make([]int32, 0, 3)
	shape, before, after := []int{64, 16, 16}, []int{0, 1, 1}, []int{0, 1, 1}
	for name, f := range map[string]func(){
		"Transpose":          func() { simd.Transpose(y[:len(x)], x, 64, 256) },
		"Transpose in place": func() { simd.Transpose(x, x, 128, 128) },
		"Identity":           func() { simd.Identity(y[:100], 10) },
		"Pad":                func() { simd.Pad(y, x, shape, compute.PadOptions{Before: before, After: after}) },
		"Gather":             func() { simd.Gather(values[:3], x, ids) },
		"Embedding":          func() { simd.Embedding(values, x[:99], ids, 3) },
		"UniqueIDs":          func() { unique = simd.UniqueIDs(unique[:0], ids) },
		"TopK":               func() { simd.TopK(values, indices, x) },
		"MaxPool2D":          func() { simd.MaxPool2D(y[:64*64], x, 64, 16, 16, compute.PoolOptions{Size: [2]int{2, 2}}) },
		"AvgPool2D": func() {
			simd.AvgPool2D(y[:64*14*14], x, 64, 16, 16, compute.PoolOptions{Size: [2]int{3, 3}, Stride: [2]int{1, 1}})
		},
		"Conv2D": func() {
			o := compute.Conv2DOptions{Pad: [2]int{1, 1}, Act: compute.ReLU}
			simd.Conv2D(y[:len(x)], x, w, bias, [4]int{1, 64, 16, 16}, [4]int{64, 64, 3, 3}, o)
		},
		"Conv2D of few channels": func() {
			o := compute.Conv2DOptions{Pad: [2]int{1, 1}, Groups: 64}
			simd.Conv2D(y[:len(x)], x, w[:64*9], nil, [4]int{1, 64, 16, 16}, [4]int{64, 1, 3, 3}, o)
		},
	} {
		f()
		if n := testing.AllocsPerRun(20, f); !simdtest.Racing {
			require.Zero(t, n, name)
		}
	}
}
