package blocks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// BenchmarkAgainstGo measures operations on weights by turns with the same in portable Go: the best rounds, and their ratio.
func BenchmarkAgainstGo(b *testing.B) { benchmark(b, 64, 4096, 20, true) }

// BenchmarkAgainstRead measures them with weights beyond caches, by turns with a sum over as many bytes as float32, which only reads.
func BenchmarkAgainstRead(b *testing.B) { benchmark(b, 4096, 14336, 1, false) }

func benchmark(b *testing.B, rows, cols, times int, portable bool) {
	before := kernels.Active()
	defer func() { require.NoError(b, kernels.SetTier(before)) }()
	for _, t := range []quant.Type{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q2_K, quant.Q3_K, quant.Q4_K,
		quant.Q5_K, quant.Q6_K} {
		words, err := quant.PackedWords(t, cols)
		require.NoError(b, err)
		data := make([]uint32, rows*words)
		for i := range data {
			data[i] = rand.Uint32() & 0x3bff3bff // halves below 1
		}
		w := NewWeights(compute.BlockFormat(t), rows, words).Of(bytesOf(data))
		x, y, plain := make([]float32, Most*cols), make([]float32, Most*cols), make([]float32, len(data))
		for i := range x {
			x[i] = rand.Float32() - 0.5
		}
		rounded := roundedRows(x, Most)
		for _, what := range []struct {
			name string
			run  func()
		}{
			{"q8", func() { w.Multiply8(y, rows, rounded[:1], 0, rows) }},
			{"q8×8", func() { w.Multiply8(y, rows, rounded[:8], 0, rows) }},
			{"f32", func() { w.Multiply(y, rows, x, 1, 0, rows) }},
			{"f32×8", func() { w.Multiply(y, rows, x, 8, 0, rows) }},
			{"columns", func() {
				for lo := 0; lo < cols; lo += Strip {
					w.MultiplyColumns(y, cols, x, 1, lo, lo+Strip)
				}
			}},
			{"values", func() {
				for r := range rows {
					w.Dequantize(y[:cols], r, 0)
				}
			}},
		} {
			b.Run(fmt.Sprintf("%v/%s", t, what.name), func(b *testing.B) {
				best := [2]time.Duration{time.Hour, time.Hour}
				measure := func(side int, tier kernels.Tier, f func()) {
					require.NoError(b, kernels.SetTier(tier))
					start := time.Now()
					f()
					best[side] = min(best[side], time.Since(start))
				}
				for b.Loop() {
					for range times {
						measure(0, kernels.SIMD128, what.run)
					}
					if portable {
						measure(1, kernels.Scalar, what.run)
					} else {
						measure(1, kernels.SIMD128, func() { kernels.Sum(plain) })
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(best[0].Seconds()*1e12/float64(rows*cols), "ps/value")
				if portable {
					b.ReportMetric(float64(best[1])/float64(best[0]), "ratio-go")
				} else {
					b.ReportMetric(float64(4*len(data))/best[0].Seconds()/1e9, "GB/s")
					b.ReportMetric(float64(best[1])/float64(best[0]), "of-read")
				}
			})
		}
	}
}
