package program

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// Broadcast returns the common shape of operands by NumPy's rule: shapes are aligned at their last axis, and along each
// axis all are equal or 1.
func Broadcast(shapes ...[]int) ([]int, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]int, rank)
	for i := range out {
		out[i] = 1
		for _, s := range shapes {
			j := i - rank + len(s)
			if j < 0 || s[j] == 1 || s[j] == out[i] {
				continue
			}
			if out[i] != 1 {
				return nil, fmt.Errorf("axis %d is both %d and %d: %w", i, out[i], s[j], compute.ErrShape)
			}
			out[i] = s[j]
		}
	}
	return out, nil
}

// Strides returns the row-major strides of a shape, in elements.
func Strides(shape []int) []int {
	st := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		st[i] = n
		n *= shape[i]
	}
	return st
}

// BroadcastStrides returns, for each axis of out, the stride in elements at which an operand of the given shape is read:
// 0 along the axes that it is repeated over.
func BroadcastStrides(shape, out []int) []int {
	st := make([]int, len(out))
	own := Strides(shape)
	for i := range out {
		if j := i - len(out) + len(shape); j >= 0 && shape[j] != 1 {
			st[i] = own[j]
		}
	}
	return st
}

// Collapse merges neighbouring axes wherever every operand walks them with one stride, and drops axes of size 1.
// It returns the smaller shape and strides; the order of elements is unchanged.
func Collapse(shape []int, strides ...[]int) ([]int, [][]int) {
	var outShape []int
	outStrides := make([][]int, len(strides))
	for i, d := range shape {
		if d == 1 {
			continue
		}
		last := len(outShape) - 1
		merge := last >= 0
		for k := range strides {
			merge = merge && outStrides[k][last] == strides[k][i]*d
		}
		if merge {
			outShape[last] *= d
			for k := range strides {
				outStrides[k][last] = strides[k][i]
			}
			continue
		}
		outShape = append(outShape, d)
		for k := range strides {
			outStrides[k] = append(outStrides[k], strides[k][i])
		}
	}
	return outShape, outStrides
}

// RowsCols splits a shape into its last axis and everything before: rows of cols elements. A scalar is one row of one.
func RowsCols(shape []int) (rows, cols int) {
	if len(shape) == 0 {
		return 1, 1
	}
	return Len(shape[:len(shape)-1]), shape[len(shape)-1]
}

// ReduceRows is RowsCols as a reduction sees it: one row for AllAxes.
func ReduceRows(shape []int, axis compute.Axis) (rows, cols int) {
	if axis == compute.AllAxes {
		return 1, Len(shape)
	}
	return RowsCols(shape)
}

// Walk calls visit for every index of a shape in row-major order. The index is reused between calls.
func Walk(shape []int, visit func(i int, index []int)) {
	n := Len(shape)
	index := make([]int, len(shape))
	for i := range n {
		visit(i, index)
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			if index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
}

// Dot returns the offset of an index under strides.
func Dot(index, strides []int) int {
	n := 0
	for i, x := range index {
		n += x * strides[i]
	}
	return n
}
