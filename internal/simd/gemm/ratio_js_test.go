package gemm

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// BenchmarkAgainstGo measures square products alternating with the same product by the packed code of the scalar tier and by
// three plain loops: the best round of each, and the ratios.
func BenchmarkAgainstGo(b *testing.B) {
	before := kernels.Active()
	defer func() { require.NoError(b, kernels.SetTier(before)) }()
	for _, n := range []int{8, 16, 32, 64, 128, 256, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := random(b)
			o := &Operands{A: normal(r, n*n), B: normal(r, n*n), C: make([]float32, n*n)}
			p := &Product{M: n, N: n, K: n, AM: n, AK: 1, BK: n, BN: 1, LDC: n, Batch: 1, Alpha: 1}
			times := max(1, 1<<17/(n*n*n))
			var best [3]float64 // ns
			for round := 0; b.Loop(); round++ {
				for side, f := range []func(){
					func() { Run(p, o, 1) },
					func() { Run(p, o, 1) },
					func() { loops(o.C, o.A, o.B, n) },
				} {
					require.NoError(b, kernels.SetTier([]kernels.Tier{kernels.SIMD128, kernels.Scalar, kernels.Scalar}[side]))
					start := time.Now()
					for range times {
						f()
					}
					if d := float64(time.Since(start)) / float64(times); round == 0 || d < best[side] {
						best[side] = d
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(2*float64(n*n*n)/best[0], "GF-simd")
			b.ReportMetric(best[1]/best[0], "ratio-packed")
			b.ReportMetric(best[2]/best[0], "ratio-loops")
		})
	}
}

// loops multiplies square matrices.
func loops(c, a, b []float32, n int) {
	clear(c)
	for i := range n {
		y := c[i*n:][:n]
		for p, f := range a[i*n:][:n] {
			for j, v := range b[p*n:][:n] {
				y[j] += f * v
			}
		}
	}
}
