package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// small are whole numbers, whose sums are exact in any order.
func small(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(17) - 8)
	}
	return x
}

// Taps and gather do what their portable fallbacks do and write nothing beside it.
func TestTapsAndGather(t *testing.T) {
	inOneThread(t)
	r := random(t)
	tiers(t, func(t *testing.T) {
		s := active()
		for n := range 150 {
			for _, k := range []int{0, 1, 2, 9, 50} {
				x, w, offsets := small(r, 400), small(r, k), make([]int32, k)
				rows, ystep, xstep := 1+r.IntN(3), n+r.IntN(3), r.IntN(40)
				for p := range offsets {
					offsets[p] = int32(r.IntN(len(x) - n - 2*xstep + 1))
				}
				want, got := small(r, rows*ystep+20), small(r, rows*ystep+20)
				copy(got, want)
				tapsGo(want, x, w, offsets, n, rows, ystep, xstep)
				Taps(got, x, w, offsets, n, rows, ystep, xstep)
				require.Equal(t, want, got, "%d sums of %d", n, k)
				if n == 0 || k == 0 || n > 2*s.lanes {
					continue
				}
				width := n + r.IntN(9)
				want, got = small(r, k*width+20), small(r, k*width+20)
				copy(got, want)
				gatherGo(want, x, offsets, width, n)
				s.gather(got, x, offsets, width, n)
				require.Equal(t, want, got, "%d rows of %d", k, n)
			}
		}
	})
}

func TestWindows(t *testing.T) {
	inOneThread(t)
	r := random(t)
	rounds := 25
	if testing.Short() {
		rounds = 6
	}
	tiers(t, func(t *testing.T) {
		for range rounds {
			w := Windows{M: 1 + r.IntN(300), Offsets: make([]int32, 1+r.IntN(600)), Width: 1 + r.IntN(70), Once: r.IntN(2) == 0, Apart: r.IntN(2) == 0}
			k := len(w.Offsets)
			n := 1 + r.IntN(80)
			w.AM, w.Step, w.LDC = k+r.IntN(3), w.Width+r.IntN(3), n+r.IntN(3)
			x := small(r, 1000+ceilDiv(n, w.Width)*w.Step)
			for p := range w.Offsets {
				w.Offsets[p] = int32(r.IntN(1000))
			}
			a := small(r, w.M*w.AM)
			c, want := small(r, w.M*w.LDC), make([]float32, 0, w.M*w.LDC)
			for i := range w.M {
				for j := range w.LDC {
					sum := c[i*w.LDC+j]
					if j < n {
						sum = 0
						for p, at := range w.Offsets {
							sum += a[i*w.AM+p] * x[int(at)+j/w.Width*w.Step+j%w.Width]
						}
					}
					want = append(want, sum)
				}
			}
			w.Plan(1 + r.IntN(3))
			from := a
			if !w.Once {
				from = make([]float32, w.Packed())
				for b := range w.Blocks() {
					w.Pack(from, a, b)
				}
			}
			for i := range w.Down() {
				w.Multiply(c, from, x, n, i, i+1, nil, nil)
			}
			require.Equal(t, want, c, "%d×%d×%d", w.M, k, n)
			if w.Down() > 1 {
				w.Multiply(c, from, x, n, 0, w.Down(), nil, nil)
				require.Equal(t, want, c, "%d×%d×%d", w.M, k, n)
			}
		}
	})
}

// filterGo is what Filter does.
func filterGo(y, x, w []float32, offsets []int32, n, rows, ystep, xstep, stride int) {
	size := len(offsets)
	for r := range rows {
		y := y[r*ystep:][:n]
		clear(y)
		for kx, at := range offsets {
			for ky := range size {
				f := w[ky*size+kx]
				for j, v := range x[(stride*r+ky)*xstep+int(at):][:n] {
					y[j] += f * v
				}
			}
		}
	}
}

// Filter does what filterGo does and writes nothing beside it, in any number of rows and columns.
func TestFilter(t *testing.T) {
	inOneThread(t)
	r := random(t)
	tiers(t, func(t *testing.T) {
		for size := 1; size < 9; size++ {
			for stride := 1; stride < 4; stride++ {
				if !HasFilter(size, stride) {
					continue
				}
				for n := 1; n < 70; n++ {
					rows := r.IntN(12)
					xstep, ystep := n+r.IntN(20), n+r.IntN(3)
					offsets := make([]int32, size)
					for i := range offsets {
						offsets[i] = int32(r.IntN(30))
					}
					w := small(r, size*size)
					x := small(r, ((max(rows, 1)-1)*stride+size-1)*xstep+int(slices.Max(offsets))+n)
					want := small(r, rows*ystep+20)
					got := slices.Clone(want)
					filterGo(want, x, w, offsets, n, rows, ystep, xstep, stride)
					Filter(got, x, w, offsets, n, rows, ystep, xstep, stride)
					require.Equal(t, want, got, "%d×%d by %d of %d×%d", size, size, stride, rows, n)
				}
			}
		}
	})
}

// Spread does what its portable fallback does and writes nothing beside it.
func TestSpread(t *testing.T) {
	inOneThread(t)
	r := random(t)
	tiers(t, func(t *testing.T) {
		for n := 1; n < 80; n++ {
			for stride := 1; stride < 4; stride++ {
				rows, ystep, xstep := 1+r.IntN(4), n+r.IntN(3), r.IntN(100)
				x := small(r, (rows-1)*xstep+(n-1)*stride+1)
				want := small(r, rows*ystep+20)
				got := slices.Clone(want)
				spreadLinesGo(want, x, n, rows, ystep, xstep, stride)
				Spread(got, x, n, rows, ystep, xstep, stride, r.IntN(100))
				require.Equal(t, want, got, "%d times every %d-th of %d", rows, stride, n)
			}
		}
	})
}
