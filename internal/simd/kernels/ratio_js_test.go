package kernels

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkAgainstGo measures every kernel against its portable fallback, alternating: what each takes in its best round, and
// the ratio.
func BenchmarkAgainstGo(b *testing.B) {
	require.NoError(b, SetTier(SIMD128))
	for i := range table {
		k := &table[i]
		for _, n := range []int{64, 1 << 10, 1 << 16} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				c := ordinaryCall(b, k, n)
				var best [2]time.Duration
				for round := 0; b.Loop(); round++ {
					for side, f := range []func(*call){k.run, k.portable} {
						times := max(1, 1<<14/n)
						start := time.Now()
						for range times {
							f(&c)
						}
						if d := time.Since(start) / time.Duration(times); round == 0 || d < best[side] {
							best[side] = d
						}
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(best[0]), "ns-simd")
				b.ReportMetric(float64(best[1]), "ns-go")
				b.ReportMetric(float64(best[1])/float64(best[0]), "ratio")
			})
		}
	}
}

// ordinaryCall has inputs for which no result is denormal, which some processors take a hundred times longer to compute.
func ordinaryCall(b *testing.B, k *kernel, n int) call {
	r, s := random(b), specOf(b, k)
	var c call
	for j := range k.inputs {
		c.in[j] = make([]float32, n)
		fill(r, c.in[j], ordinary, max(s.low, -8), min(s.high, 8))
	}
	if s.params != nil {
		c.p = s.params(r)
	}
	if k.store {
		c.y = make([]float32, n)
	}
	return c
}

// BenchmarkExpLoop is the loop of Exp's comment, which its portable fallback replaces by a faster one.
func BenchmarkExpLoop(b *testing.B) {
	x, y := make([]float32, 1<<16), make([]float32, 1<<16)
	fill(random(b), x, ordinary, -8, 8)
	for _, f := range []struct {
		name string
		run  func()
	}{{"loop", func() { expLoop(y, x) }}, {"portable", func() { expGo(y, x) }}, {"simd128", func() { Exp(y, x) }}} {
		b.Run(f.name, func(b *testing.B) {
			require.NoError(b, SetTier(SIMD128))
			for b.Loop() {
				f.run()
			}
		})
	}
}

func expLoop(y, x []float32) {
	for i := range y {
		y[i] = float32(math.Exp(float64(x[i])))
	}
}
