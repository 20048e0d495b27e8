package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// random returns the random numbers of a test.
func random(t testing.TB) *rand.Rand { return testseed.Rand(t) }

// tiers runs a test on every tier of the machine; under the race detector on Go alone, as it does not see what assembly does.
func tiers(t *testing.T, test func(t *testing.T)) {
	before := kernels.Active()
	defer func() { require.NoError(t, kernels.SetTier(before)) }()
	for _, tier := range kernels.Available() {
		if racing && tier != kernels.Scalar {
			continue
		}
		require.NoError(t, kernels.SetTier(tier))
		t.Run(tier.String(), test)
	}
}

// inOneThread leaves a test out under the race detector, which takes long and has nothing to see in it: the test starts no
// goroutines, and those that do run the same code.
func inOneThread(t *testing.T) {
	if racing {
		t.Skip("starts no goroutines")
	}
}

func normal(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// poison is what elements hold that must not be written. As a NaN it also shows where they are read.
const poison = 0x7fc0dead

func poisoned(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(poison)
	}
	return x
}

func TestTiles(t *testing.T) {
	inOneThread(t)
	tiers(t, func(t *testing.T) {
		r, s := random(t), active()
		for rows := 1; rows <= s.most(1); rows++ {
			for cols := 1; cols <= s.nr; cols++ {
				if rows > s.most(cols) || !s.masked && cols%s.lanes != 0 {
					continue
				}
				for _, packed := range []bool{true, false} {
					for _, f := range [][2]float32{{1, 0}, {1, 1}, {0.5, float32(math.Copysign(0, -1))}, {-2, 0.25}} {
						checkTile(t, r, s, rows, cols, 1+r.IntN(70), packed, f[0], f[1])
					}
				}
			}
		}
	})
}

func checkTile(t *testing.T, r *rand.Rand, s *shape, rows, cols, k int, packed bool, alpha, beta float32) {
	wide := roundUp(cols, s.lanes)
	tile := Tile{K: k, AI: 1, AK: rows, BK: wide + r.IntN(5), LDC: cols + r.IntN(3), Rows: rows, Cols: cols,
		Alpha: alpha, Beta: beta, Panels: 1}
	if !packed {
		tile.AI, tile.AK = k+r.IntN(3), 1
	}
	a, b := normal(r, (rows-1)*tile.AI+(k-1)*tile.AK+1), normal(r, (k-1)*tile.BK+wide)
	c := poisoned(rows*tile.LDC + 64)
	want := poisoned(len(c))
	bound := make([]float64, len(c))
	for i := range rows {
		for j := range cols {
			at := 32 + i*tile.LDC + j
			sum, size := 0.0, 0.0
			for p := range k {
				v := float64(a[i*tile.AI+p*tile.AK]) * float64(b[p*tile.BK+j])
				sum += v
				size += math.Abs(v)
			}
			sum *= float64(alpha)
			if beta != 0 {
				c[at] = float32(r.NormFloat64())
				sum += float64(beta) * float64(c[at])
				size += math.Abs(float64(c[at]))
			}
			want[at], bound[at] = float32(sum), 1e-6*(size+1)
		}
	}
	tile.A, tile.B, tile.C = &a[0], &b[0], &c[32]
	s.tile(&tile)
	for i := range c {
		if bound[i] == 0 {
			require.Equal(t, uint32(poison), math.Float32bits(c[i]), "%d×%d×%d: element %d was written", rows, cols, k, i-32)
		} else {
			require.InDelta(t, want[i], c[i], bound[i], "%d×%d×%d, packed %t: element %d of rows of %d",
				rows, cols, k, packed, i-32, tile.LDC)
		}
	}
}

func BenchmarkTiles(b *testing.B) {
	s := active()
	for _, k := range []int{16, 64, 256, 320, 384} {
		for _, rows := range []int{s.mr, s.mr - 1, s.mr / 2} {
			for _, cols := range []int{s.nr, s.nr - s.nr/2, s.nr - 1} {
				x, y, c := make([]float32, rows*k), make([]float32, s.nr*k), make([]float32, rows*s.nr)
				t := Tile{&x[0], &y[0], &c[0], k, 1, rows, s.nr, s.nr, rows, cols, 1, 1, nil, nil, 1, 0}
				b.Run(fmt.Sprint(k, rows, cols), func(b *testing.B) {
					for b.Loop() {
						s.tile(&t)
					}
					b.ReportMetric(float64(2*rows*cols*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GF")
				})
			}
		}
	}
}
