package blocks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

// finite weights are some quantised blocks in any order. Values of small sizes have subnormal scales.
func finite(t *testing.T, r *rand.Rand, f *format, rows, cols int, size float64) (values []float32, w Weights) {
	const some = 3
	blocks, x := make([]byte, some*f.BlockSize()), make([]float32, some*f.BlockLen())
	for i := range x {
		x[i] = float32(size * (r.Float64()*2 - 0.8))
	}
	require.NoError(t, quant.Quantize(blocks, f.Type, x))
	m := &quant.Matrix{Type: f.Type, Rows: rows, Cols: cols}
	for range rows * cols / f.BlockLen() {
		i := r.IntN(some)
		m.Data = append(m.Data, blocks[i*f.BlockSize():(i+1)*f.BlockSize()]...)
	}
	values = make([]float32, rows*cols)
	require.NoError(t, m.Dequantize(values))
	p, err := quant.Pack(m)
	require.NoError(t, err)
	w = NewWeights(compute.BlockFormat(f.Type), rows, p.Shape()[1])
	return values, w.Of(bytesOf(p.Words))
}

// Products are those of float64 where scales are subnormal halves too. What is not finite in a row of x stays there: with 8 bits it
// makes NaN.
func TestSubnormalAndInf(t *testing.T) {
	r := source(t)
	const rows, maxRows = 3, Most + 3
	everyTier(t, func(t *testing.T) {
		for _, f := range formats {
			blocks := []int{1, 3, 11}
			if f.BlockLen() == 32 {
				blocks = []int{1, 3, 6, 70, 300} // more than a piece, and more than fit into a room
			}
			for _, blocks := range blocks {
				cols, m, size := blocks*f.BlockLen(), 1+r.IntN(2)*r.IntN(maxRows), 1.0 // often one row, which is another path
				if r.IntN(2) == 0 {
					size = map[int]float64{32: 1e-4, 256: 1e-3}[f.BlockLen()]
				}
				values, w := finite(t, r, f, rows, cols, size)
				x, words := make([]float32, m*cols), RoundedWords(cols)
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				bad := r.IntN(m + 1)
				if bad < m {
					x[bad*cols+r.IntN(cols)] = float32(math.Inf(1))
				}
				memory, rounded := make([]float32, m*words), make([]Rounded, m)
				for i := range rounded {
					rounded[i] = RoundedIn(memory[i*words:][:words], cols, m)
					rounded[i].Round(x[i*cols:][:cols], 0, cols/32)
				}
				got, got8 := make([]float32, m*rows), make([]float32, m*rows)
				if m <= Most {
					w.Multiply(got, rows, x, m, 0, rows)
				}
				w.Multiply8(got8, rows, rounded, 0, 1)
				w.Multiply8(got8, rows, rounded, 1, rows)
				x8, alone := make([]float32, cols), RoundedIn(make([]float32, words), cols, 1)
				for i := range m {
					alone.Round(x[i*cols:][:cols], 0, cols/32)
					alone.Values(x8, 0, cols/32)
					for row := range rows {
						note := fmt.Sprintf("%v, %d blocks of size %g: row %d of %d with %d", f.Type, blocks, size, i, m, row)
						want, want8 := 0.0, 0.0
						for c, v := range values[row*cols:][:cols] {
							want += float64(v) * float64(x[i*cols+c])
							want8 += float64(v) * float64(x8[c])
						}
						bound := 2e-6 * size * float64(cols)
						if i == bad {
							require.True(t, math.IsNaN(float64(got8[i*rows+row])), note)
							if m <= Most { // Inf, or NaN where a weight is zero
								require.Equal(t, fmt.Sprint(want), fmt.Sprint(got[i*rows+row]), note)
							}
							continue
						}
						require.InDelta(t, want8, got8[i*rows+row], bound, note)
						if m <= Most {
							require.InDelta(t, want, got[i*rows+row], bound, note)
						}
					}
				}
			}
		}
	})
}
