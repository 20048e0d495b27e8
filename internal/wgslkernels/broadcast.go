package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// reach says how an operand of an expression varies over matrices: per element, row, column, or not at all. It is text, for
// templates.
type reach string

// Reaches.
const (
	each      reach = "each"   // as large as all matrices
	perColumn reach = "column" // a row of one matrix, repeated
	perRow    reach = "row"    // a column of one matrix, repeated
	allOver   reach = "all"    // a single element
)

// reaches are those of the operands of an expression, from operand first on, where the matrices have the axes of shape from
// row to column as rows and those from column on as columns. Operands that repeat in another way are beyond such kernels.
func (f *expression) reaches(first int, shape []int, row, column int) ([]reach, error) {
	all := make([]reach, 0, len(f.in)-first)
	for _, t := range f.in[first:] {
		st := program.BroadcastStrides(t.Shape, shape)
		repeats := func(from, to int) bool { // along the axes outside of from … to, and nowhere else
			for d, n := range shape {
				if n > 1 && (st[d] != 0) != (from <= d && d < to) {
					return false
				}
			}
			return true
		}
		switch {
		case t.Len() == program.Len(shape):
			all = append(all, each)
		case t.Len() == 1:
			all = append(all, allOver)
		case repeats(column, len(shape)):
			all = append(all, perColumn)
		case repeats(row, column):
			all = append(all, perRow)
		default:
			return nil, fmt.Errorf("an operand %v beside %v: %w", t, shape, compute.ErrUnsupported)
		}
	}
	return all, nil
}

// matrixAxes are the axes at which the rows and the columns of a shape begin, of which the last ones are columns and one is
// rows.
func matrixAxes(shape []int, columns int) (row, column int) {
	column = max(0, len(shape)-columns)
	return max(0, column-1), column
}
