package quant_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

func TestMatrix(t *testing.T) {
	r := random(t)
	const rows, cols = 37, 512
	x := normals(r, rows*cols)
	weights := make([]float32, cols)
	for i := range weights {
		weights[i] = r.Float32()
	}
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q6_K, quant.F16} {
		m, err := quant.QuantizeMatrix(typ, rows, cols, x, quant.Options{})
		require.NoError(t, err)
		require.Equal(t, quantize(t, typ, x), m.Data)
		parallel, err := quant.QuantizeMatrix(typ, rows, cols, x, quant.Options{Workers: 5})
		require.NoError(t, err)
		require.Equal(t, m, parallel)

		weighted, err := quant.QuantizeMatrix(typ, rows, cols, x, quant.Options{Weights: weights, Workers: 3})
		require.NoError(t, err)
		all := make([]byte, len(m.Data))
		require.NoError(t, quant.QuantizeWeighted(all, typ, x, weights))
		require.Equal(t, all, weighted.Data)

		block, err := m.RowBlock(5, 9)
		require.NoError(t, err)
		require.Equal(t, 4, block.Rows)
		require.Equal(t, m.Data[6*m.RowSize():7*m.RowSize()], block.Data[m.RowSize():2*m.RowSize()])
		y := make([]float32, 4*cols)
		require.NoError(t, block.Dequantize(y))
		require.Equal(t, dequantize(t, typ, m.Data)[5*cols:9*cols], y)
		empty, err := m.RowBlock(rows, rows)
		require.NoError(t, err)
		require.Empty(t, empty.Data)
		for _, bad := range [][2]int{{-1, 3}, {3, 2}, {3, rows + 1}} {
			_, err := m.RowBlock(bad[0], bad[1])
			require.ErrorIs(t, err, compute.ErrArgument)
		}
	}
}

func TestMatrixErrors(t *testing.T) {
	x := make([]float32, 4*256)
	for _, c := range []struct {
		rows, cols int
		values     []float32
		o          quant.Options
		is         error
	}{
		{4, 255, x, quant.Options{}, compute.ErrShape},
		{4, 256, x[1:], quant.Options{}, compute.ErrShape},
		{-4, -256, x, quant.Options{}, compute.ErrShape},
		{-4, 256, x, quant.Options{}, compute.ErrShape},
		{math.MaxInt, 256, x, quant.Options{}, compute.ErrTooLarge},
		{4, 256, x, quant.Options{Weights: x}, compute.ErrShape},
		{4, 256, x, quant.Options{Workers: -1}, compute.ErrArgument},
	} {
		_, err := quant.QuantizeMatrix(quant.Q4_K, c.rows, c.cols, c.values, c.o)
		require.ErrorIs(t, err, c.is, "%d × %d", c.rows, c.cols)
	}
	_, err := quant.NewMatrix(quant.Q4_K, 2, 256, make([]byte, 143))
	require.ErrorIs(t, err, compute.ErrShape)
	_, err = quant.NewMatrix(99, 2, 256, nil)
	require.ErrorIs(t, err, compute.ErrDType)

	for _, m := range []quant.Matrix{{Type: 99, Rows: 1, Cols: 1}, {Type: quant.Q4_K, Rows: 2, Cols: 256}, {Rows: -1, Cols: -4},
		{Type: quant.F32, Rows: math.MaxInt, Cols: math.MaxInt}} {
		_, err := m.RowBlock(0, 1)
		require.Error(t, err)
		_, err = m.TransposeLossy(quant.F32, quant.Options{})
		require.Error(t, err)
		require.NotPanics(t, func() { m.RowSize() })
	}

	// The first bad row is named, whoever finds one first.
	x[3*256], x[2*256] = float32(math.NaN()), float32(math.NaN())
	for range 20 {
		_, err = quant.QuantizeMatrix(quant.Q8_0, 4, 256, x, quant.Options{Workers: 4})
		require.ErrorIs(t, err, compute.ErrArgument)
		require.ErrorContains(t, err, "row 2")
	}
}

func TestTransposeLossy(t *testing.T) {
	const rows, cols = 96, 64
	x := normals(random(t), rows*cols)
	m, err := quant.QuantizeMatrix(quant.Q8_0, rows, cols, x, quant.Options{})
	require.NoError(t, err)
	turned, err := m.TransposeLossy(quant.F32, quant.Options{})
	require.NoError(t, err)
	require.Equal(t, [2]int{cols, rows}, [2]int{turned.Rows, turned.Cols})
	before, after := dequantize(t, quant.Q8_0, m.Data), dequantize(t, quant.F32, turned.Data)
	for i := range rows {
		for j := range cols {
			if before[i*cols+j] != after[j*rows+i] {
				t.Fatalf("%v at row %d and column %d became %v", before[i*cols+j], i, j, after[j*rows+i])
			}
		}
	}

	// It is lossy: there and back is another matrix, with a larger error.
	there, err := m.TransposeLossy(quant.Q4_0, quant.Options{Workers: 2})
	require.NoError(t, err)
	back, err := there.TransposeLossy(quant.Q8_0, quant.Options{})
	require.NoError(t, err)
	require.NotEqual(t, m.Data, back.Data)
	require.Greater(t, rmse(x, dequantize(t, quant.Q8_0, back.Data)), 5*rmse(x, before))

	_, err = m.TransposeLossy(quant.Q4_K, quant.Options{})
	require.ErrorIs(t, err, compute.ErrShape, "96 rows are no blocks of 256")
}
