package quant

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
)

// Matrix is a matrix in blocks: rows of Cols values lie one after the other, and each row is whole blocks. A weight that maps
// in to out features has out rows and in columns.
type Matrix struct {
	Type       Type
	Rows, Cols int
	Data       []byte
}

// NewMatrix makes a matrix of data, which it keeps. Errors wrap [compute.ErrShape] and [compute.ErrDType].
func NewMatrix(t Type, rows, cols int, data []byte) (*Matrix, error) {
	size, err := matrixSize(t, rows, cols)
	if err != nil {
		return nil, err
	}
	if size != len(data) {
		return nil, fmt.Errorf("quant: %d × %d values of %v are %d bytes, not %d: %w",
			rows, cols, t, size, len(data), compute.ErrShape)
	}
	return &Matrix{t, rows, cols, data}, nil
}

func matrixSize(t Type, rows, cols int) (int, error) {
	row, err := t.RowSize(cols)
	switch {
	case err != nil:
		return 0, err
	case rows < 0:
		return 0, fmt.Errorf("quant: %d rows: %w", rows, compute.ErrShape)
	case rows > 0 && max(row, cols) > math.MaxInt/rows:
		return 0, fmt.Errorf("quant: %d × %d values of %v: %w", rows, cols, t, compute.ErrTooLarge)
	}
	return row * rows, nil
}

// Options are for [QuantizeMatrix].
type Options struct {
	// Weights, one for each column, say how much errors in the column matter: see [QuantizeWeighted]. Nil is without.
	Weights []float32
	// Workers is the number of goroutines that take rows. With 0 or 1 there are none besides the caller's.
	Workers int
}

// QuantizeMatrix quantises a row-major matrix of float32. The bytes do not depend on the number of workers. Errors are those of
// [Quantize] and [QuantizeWeighted]; that of the first row which has one is returned.
func QuantizeMatrix(t Type, rows, cols int, values []float32, o Options) (*Matrix, error) {
	size, err := matrixSize(t, rows, cols)
	switch {
	case err != nil:
		return nil, err
	case len(values) != rows*cols:
		return nil, fmt.Errorf("quant: %d values for a matrix of %d × %d: %w", len(values), rows, cols, compute.ErrShape)
	case o.Weights != nil && len(o.Weights) != cols:
		return nil, fmt.Errorf("quant: %d weights for %d columns: %w", len(o.Weights), cols, compute.ErrShape)
	case o.Workers < 0:
		return nil, fmt.Errorf("quant: %d workers: %w", o.Workers, compute.ErrArgument)
	}
	m := &Matrix{t, rows, cols, make([]byte, size)}
	row := m.RowSize()
	err = forRows(rows, o.Workers, func(i int) error {
		dst, src := m.Data[i*row:][:row], values[i*cols:][:cols]
		if o.Weights != nil {
			return QuantizeWeighted(dst, t, src, o.Weights)
		}
		return Quantize(dst, t, src)
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// forRows calls f for every row, unless an earlier one failed, and returns the error of the first row that has one.
func forRows(rows, workers int, f func(int) error) error {
	var next atomic.Int64
	var mu sync.Mutex
	failed, first := rows, error(nil)
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			mu.Lock()
			stop := i >= failed
			mu.Unlock()
			if stop {
				return
			}
			if err := f(i); err != nil {
				mu.Lock()
				if i < failed {
					failed, first = i, fmt.Errorf("row %d: %w", i, err)
				}
				mu.Unlock()
			}
		}
	}
	var wg sync.WaitGroup
	for range min(workers, rows) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return first
}

// RowSize is the number of bytes of a row.
func (m *Matrix) RowSize() int { return m.Cols / max(m.Type.BlockLen(), 1) * m.Type.BlockSize() }

// RowBlock returns the rows from ≤ i < to as a matrix that shares memory with m. Errors wrap [compute.ErrArgument], and those
// of [NewMatrix] if m contradicts itself.
func (m *Matrix) RowBlock(from, to int) (*Matrix, error) {
	if _, err := NewMatrix(m.Type, m.Rows, m.Cols, m.Data); err != nil {
		return nil, err
	}
	if from < 0 || from > to || to > m.Rows {
		return nil, fmt.Errorf("quant: rows %d to %d of %d: %w", from, to, m.Rows, compute.ErrArgument)
	}
	n := m.RowSize()
	return &Matrix{m.Type, to - from, m.Cols, m.Data[from*n : to*n : to*n]}, nil
}

// Dequantize writes all values to dst, row by row. Errors are those of the function [Dequantize].
func (m *Matrix) Dequantize(dst []float32) error { return Dequantize(dst, m.Type, m.Data) }

// TransposeLossy returns the transposed matrix in the format t. It dequantises and quantises again, since blocks run along
// rows and the values of a column lie in different ones: the result has the errors of both, and transposing it back does not
// give m. m.Rows must be whole blocks of t. Weights in Options are for the rows of m. Errors are those of [QuantizeMatrix].
func (m *Matrix) TransposeLossy(t Type, o Options) (*Matrix, error) {
	if _, err := NewMatrix(m.Type, m.Rows, m.Cols, m.Data); err != nil {
		return nil, err
	}
	if _, err := t.RowSize(m.Rows); err != nil {
		return nil, err
	}
	values, turned := make([]float32, m.Rows*m.Cols), make([]float32, m.Rows*m.Cols)
	if err := m.Dequantize(values); err != nil {
		return nil, err
	}
	const tile = 32 // values of both sides stay in the cache
	for i0 := 0; i0 < m.Rows; i0 += tile {
		for j0 := 0; j0 < m.Cols; j0 += tile {
			for i := i0; i < min(i0+tile, m.Rows); i++ {
				for j := j0; j < min(j0+tile, m.Cols); j++ {
					turned[j*m.Rows+i] = values[i*m.Cols+j]
				}
			}
		}
	}
	return QuantizeMatrix(t, m.Cols, m.Rows, turned, o)
}
