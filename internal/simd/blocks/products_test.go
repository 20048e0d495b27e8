package blocks

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

// finite weights have any bits, or integers at the ends of their ranges, but for their scales, which are ordinary halves or subnormal
// ones.
func finite(t *testing.T, r *rand.Rand, f *format, rows, cols int, extreme bool) (*quant.Matrix, Weights) {
	m, _ := random(t, r, f, rows, cols)
	for i := range m.Data {
		if extreme {
			m.Data[i] = []byte{0x80, 0xff, 0x7f}[r.IntN(3)]
		}
	}
	halves := map[quant.Type][]int{
		quant.Q4_0: {quant.Q4_0Scale}, quant.Q4_1: {quant.Q4_1Scale, quant.Q4_1Min}, quant.Q5_0: {quant.Q5_0Scale},
		quant.Q5_1: {quant.Q5_1Scale, quant.Q5_1Min}, quant.Q8_0: {quant.Q8_0Scale}, quant.Q2_K: {quant.Q2_KScale, quant.Q2_KMin},
		quant.Q3_K: {quant.Q3_KScale}, quant.Q4_K: {quant.Q4_KScale, quant.Q4_KMin}, quant.Q5_K: {quant.Q5_KScale, quant.Q5_KMin},
		quant.Q6_K: {quant.Q6_KScale},
	}
	subnormal := r.IntN(2) == 0 // all of them, so that what flushes them is seen
	for at := 0; at < len(m.Data); at += f.BlockSize() {
		for _, half := range halves[f.Type] {
			bits := uint16(r.Uint32N(0x8000)&0x83ff | 0x2000 + uint32(r.IntN(8))<<10 | uint32(r.IntN(2))<<15)
			if subnormal {
				bits &= 0x83ff
			}
			binary.LittleEndian.PutUint16(m.Data[at+half:], bits)
		}
	}
	p, err := quant.Pack(m)
	require.NoError(t, err)
	w := NewWeights(compute.BlockFormat(f.Type), rows, p.Shape()[1])
	return m, w.Of(bytesOf(p.Words))
}

// Products are those of the values in float64, for one row of x and several, in floats and in 8 bits, by rows and by columns,
// of any part of the weights' rows.
func TestProducts(t *testing.T) {
	r := source(t)
	everyTier(t, func(t *testing.T) {
		for _, f := range formats {
			rows, blocks := 1+r.IntN(6), 1+r.IntN(1+r.IntN(2*Piece/f.BlockLen()))
			if r.IntN(4) == 0 {
				rows, blocks = 1, most/f.BlockLen()-1+r.IntN(4)
			}
			cols := blocks * f.BlockLen()
			m, w := finite(t, r, f, rows, cols, r.IntN(4) == 0)
			values := make([]float32, rows*cols)
			require.NoError(t, m.Dequantize(values))
			for _, n := range []int{1, 2 + r.IntN(Most-1)} {
				testProducts(t, r, f, w, values, n)
			}
		}
	})
}

// roundedRows are n rows of x in 8 bits, for a product with all of them.
func roundedRows(x []float32, n int) RoundedRows {
	k := len(x) / n
	rows := RoundedRows{make([]float32, n*RoundedWords(k)), n, k}
	for i := range n {
		row := rows.Row(i)
		row.Round(x[i*k:][:k], 0, k/32)
	}
	return rows
}

func testProducts(t *testing.T, r *rand.Rand, f *format, w Weights, values []float32, n int) {
	rows, cols := w.Rows, w.Cols
	x, columns := make([]float32, n*cols), make([]float32, n*rows)
	extreme := r.IntN(4) == 0
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if extreme { // in 8 bits, where sums of 16 bits would overflow
			x[i] = float32(math.Copysign(1, float64(x[i])))
			if r.IntN(2) == 0 {
				x[i] = 1
			}
		}
	}
	for i := range columns {
		columns[i] = float32(r.NormFloat64())
	}
	rounded, rounding := roundedRows(x, n), make([]float32, n*cols)
	for i := range n {
		row := x[i*cols:][:cols]
		one := roundedRows(row, 1).Row(0)
		one.Values(rounding[i*cols:][:cols], 0, cols/32)
	}
	lo := r.IntN(rows)
	hi := lo + 1 + r.IntN(rows-lo)
	ldy := rows + r.IntN(3)
	const untouched = 12345
	fresh := func(n int) []float32 {
		y := make([]float32, n)
		for i := range y {
			y[i] = untouched
		}
		return y
	}
	// check compares a product with its sum; size is that of what is added up. Groups that share a scale are added up without
	// it.
	check := func(what string, got float32, k int, of func(i int) (w, x float64)) {
		sum, size := 0.0, 0.0
		for i := range k {
			w, x := of(i)
			sum, size = sum+w*x, size+math.Abs(w*x)
		}
		require.InDelta(t, sum, float64(got), 4e-6*size+1e-42, "%v %s: %d rows of %d values, %d rows of x", f.Type, what, rows, cols, n)
	}
	// largest is a bound of the weights that share a scale with one, and of their minima.
	largest := func(row, i int) float64 {
		most := 0.0
		for _, v := range values[row*cols+i/32*32:][:32] {
			most = max(most, math.Abs(float64(v)))
		}
		return 4 * most
	}
	y, y8 := fresh(n*ldy), fresh(n*ldy)
	w.Multiply(y, ldy, x, n, lo, hi)
	w.Multiply8(y8, ldy, rounded, lo, hi)
	for i := range n {
		for row := range ldy {
			if row < lo || row >= hi {
				require.Equal(t, []float32{untouched, untouched}, []float32{y[i*ldy+row], y8[i*ldy+row]})
				continue
			}
			check("product", y[i*ldy+row], cols, func(k int) (float64, float64) {
				return float64(values[row*cols+k]), float64(x[i*cols+k])
			})
			sum, size := 0.0, 0.0
			for k := range cols {
				sum += float64(values[row*cols+k]) * float64(rounding[i*cols+k])
				size += largest(row, k) * math.Abs(float64(rounding[i*cols+k]))
			}
			require.InDelta(t, sum, float64(y8[i*ldy+row]), 4e-6*size+1e-42, "%v in 8 bits: %d values, %d rows of x", f.Type, cols, n)
		}
	}
	blocks := cols / f.BlockLen()
	from := r.IntN(blocks) * f.BlockLen()
	to := min(from+Strip, cols)
	ldy = cols + r.IntN(3)
	y = fresh(n * ldy)
	w.MultiplyColumns(y, ldy, columns, n, from, to)
	for i := range n {
		for col := range ldy {
			if col < from || col >= to {
				require.Equal(t, float32(untouched), y[i*ldy+col])
				continue
			}
			check("columns", y[i*ldy+col], rows, func(k int) (float64, float64) {
				return float64(values[k*cols+col]), float64(columns[i*rows+k])
			})
		}
	}
}

// Inf and NaN in activations, and in scales, go where they go in the reference: to results that are not finite.
func TestProductsNotFinite(t *testing.T) {
	r := source(t)
	everyTier(t, func(t *testing.T) {
		for _, f := range formats {
			cols := 256 * (1 + r.IntN(3))
			m, w := finite(t, r, f, 3, cols, false)
			values := make([]float32, 3*cols)
			require.NoError(t, m.Dequantize(values))
			n := 1 + r.IntN(Most)
			x, bad, at := make([]float32, n*cols), r.IntN(n), r.IntN(cols)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			special := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
			x[bad*cols+at] = float32(special)
			rounded := roundedRows(x, n)
			y, y8 := make([]float32, 3*n), make([]float32, 3*n)
			w.Multiply(y, 3, x, n, 0, 3)
			w.Multiply8(y8, 3, rounded, 0, 3)
			for i := range n {
				for row := range 3 {
					got, got8 := float64(y[3*i+row]), float64(y8[3*i+row])
					if i != bad {
						require.False(t, math.IsNaN(got+got8-got-got8), "%v", f.Type)
						continue
					}
					want := special * float64(values[row*cols+at])
					require.True(t, math.IsNaN(got8), "%v in 8 bits: %v", f.Type, got8)
					require.True(t, want == got || math.IsNaN(want) && math.IsNaN(got), "%v: want %v, got %v", f.Type, want, got)
				}
			}
		}
	})
}

// A scale or minimum that is Inf or NaN makes the result of its row not finite, and no other.
func TestScalesNotFinite(t *testing.T) {
	r := source(t)
	everyTier(t, func(t *testing.T) {
		for _, f := range formats {
			rows, cols := 1+r.IntN(9), 256*(1+r.IntN(20))
			m, w := finite(t, r, f, rows, cols, false)
			x, want, got := make([]float32, cols), make([]float32, rows), make([]float32, rows)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			rounded := roundedRows(x, 1)
			w.Multiply8(want, rows, rounded, 0, rows)
			bad, blocks, planes := r.IntN(rows), cols/f.BlockLen(), f.Planes()
			at := planes[len(planes)-1].Offset
			if f.affine {
				at += 2 * r.IntN(2)
			}
			special := []uint16{0x7c00, 0xfc00, 0x7e00}[r.IntN(3)]
			binary.LittleEndian.PutUint16(m.Data[(bad*blocks+r.IntN(blocks))*f.BlockSize()+at:], special)
			p, err := quant.Pack(m)
			require.NoError(t, err)
			w = w.Of(bytesOf(p.Words))
			w.Multiply8(got, rows, rounded, 0, rows)
			require.True(t, math.IsNaN(float64(got[bad]-got[bad])), "%v: %v", f.Type, got[bad])
			got[bad] = want[bad]
			most := 0.0
			for _, v := range want {
				most = max(most, math.Abs(float64(v)))
			}
			require.InDeltaSlice(t, want, got, 1e-4*most, "%v", f.Type)
		}
	})
}
