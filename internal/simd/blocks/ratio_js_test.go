package blocks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// BenchmarkAgainstGo measures operations on weights alternating with the same in portable Go: the best rounds, and their
// ratio.
func BenchmarkAgainstGo(b *testing.B) { benchmark(b, 64, 64, 4096, true) }

// BenchmarkAgainstRead measures them with weights beyond L2, alternating with a sum over as many bytes as float32, which only
// reads. Rows are long, or short: 18 blocks, or two of 256 values.
func BenchmarkAgainstRead(b *testing.B) {
	b.Run("14336", func(b *testing.B) { benchmark(b, 64, 4096, 14336, false) })
	b.Run("576", func(b *testing.B) { benchmark(b, 1536, 1536*64, 576, false) })
}

// benchmark measures a slice of the rows of weights at a time, so short that other programs leave some rounds alone.
func benchmark(b *testing.B, slice, rows, cols int, portable bool) {
	before := kernels.Active()
	defer func() { require.NoError(b, kernels.SetTier(before)) }()
	x, y := make([]float32, Most*cols), make([]float32, Most*max(rows, cols))
	for i := range x {
		x[i] = rand.Float32() - 0.5
	}
	for _, t := range []quant.Type{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q2_K, quant.Q3_K, quant.Q4_K,
		quant.Q5_K, quant.Q6_K} {
		cols := cols / t.BlockLen() * t.BlockLen()
		one, rounded := roundedRows(x[:cols], 1), roundedRows(x[:Most*cols], Most)
		words, err := quant.PackedWords(t, cols)
		require.NoError(b, err)
		data := make([]uint32, rows*words)
		for i := range data {
			data[i] = rand.Uint32() & 0x3bff3bff // halves below 1
		}
		plain := make([]float32, len(data))
		for i := range plain {
			plain[i] = 1 // memory that was never written is not read either
		}
		w := NewWeights(compute.BlockFormat(t), rows, words).Of(bytesOf(data))
		for _, what := range []struct {
			name string
			run  func(lo, hi int)
		}{
			{"q8", func(lo, hi int) { w.Multiply8(y, rows, one, lo, hi) }},
			{"q8 without products of bytes", func(lo, hi int) {
				withoutBytewise(func() { w.Multiply8(y, rows, one, lo, hi) })
			}},
			{"q8×8", func(lo, hi int) { w.Multiply8(y, rows, rounded, lo, hi) }},
			{"f32", func(lo, hi int) { w.Multiply(y, rows, x, 1, lo, hi) }},
			{"f32×8", func(lo, hi int) { w.Multiply(y, rows, x, Most, lo, hi) }},
			{"columns", func(lo, hi int) {
				w := w.Of(w.data[lo*w.RowBytes() : hi*w.RowBytes()])
				w.Rows = hi - lo
				for lo := 0; lo < cols; lo += Strip {
					w.MultiplyColumns(y, cols, x, 1, lo, min(lo+Strip, cols))
				}
			}},
			{"values", func(lo, hi int) {
				for r := lo; r < hi; r++ {
					w.Dequantize(y[:cols], r, 0)
				}
			}},
		} {
			b.Run(fmt.Sprintf("%v/%s", t, what.name), func(b *testing.B) {
				best := [2]time.Duration{time.Hour, time.Hour}
				measure := func(side int, tier kernels.Tier, f func(lo, hi int), lo int) {
					require.NoError(b, kernels.SetTier(tier))
					start := time.Now()
					f(lo, lo+slice)
					best[side] = min(best[side], time.Since(start))
				}
				for b.Loop() {
					for lo := 0; lo < rows; lo += slice {
						times := 1
						if portable {
							times = 20
							measure(1, kernels.Scalar, what.run, lo)
						} else {
							measure(1, kernels.SIMD128, func(lo, hi int) { kernels.Sum(plain[lo*words : hi*words]) }, lo)
						}
						for range times {
							measure(0, kernels.SIMD128, what.run, lo)
						}
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(best[0].Seconds()*1e12/float64(slice*cols), "ps/value")
				ratio := "of-read"
				if portable {
					ratio = "ratio-go"
				}
				b.ReportMetric(float64(best[1])/float64(best[0]), ratio)
			})
		}
	}
}
