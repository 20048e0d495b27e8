package blocks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// BenchmarkRow multiplies weights that stay in the cache with one row of x, in 8 bits and as floats. Rows of few blocks must take as
// long by the weight as long ones.
func BenchmarkRow(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	was := kernels.Active()
	b.Cleanup(func() { require.NoError(b, kernels.SetTier(was)) })
	for _, tier := range kernels.Available() {
		require.NoError(b, kernels.SetTier(tier))
		for _, format := range slices.Sorted(maps.Keys(formats)) {
			f := formats[format]
			for _, cols := range []int{512, 4096} {
				rows := 1 << 18 / cols
				m := &quant.Matrix{Type: f.Type, Rows: rows, Cols: cols, Data: make([]byte, rows*cols/f.BlockLen()*f.BlockSize())}
				for i := range m.Data {
					m.Data[i] = byte(r.Uint32()) & 0x3b
				}
				p, err := quant.Pack(m)
				require.NoError(b, err)
				w := NewWeights(format, rows, p.Shape()[1]).Of(bytesOf(p.Words))
				x, y := make([]float32, cols), make([]float32, rows)
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				rounded := roundedRows(x, 1)
				ns := func(b *testing.B) {
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*cols)*1000, "ps/weight")
				}
				b.Run(fmt.Sprintf("%v/%v/%d/q8", tier, f.Type, cols), func(b *testing.B) {
					for b.Loop() {
						w.Multiply8(y, rows, rounded, 0, rows)
					}
					ns(b)
				})
				b.Run(fmt.Sprintf("%v/%v/%d/f32", tier, f.Type, cols), func(b *testing.B) {
					for b.Loop() {
						w.Multiply(y, rows, x, 1, 0, rows)
					}
					ns(b)
				})
			}
		}
	}
}
