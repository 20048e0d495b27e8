package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// SumSquares is norm_l2 without its root.
var SumSquares = reduction(program.Entry{Name: "sum_squares", Method: "SumSquares",
	Doc:     "the sum of the squares of the elements, the square of norm_l2",
	Special: "0 for an empty tensor. Squares beyond float32's range give +Inf.", Tol: reduceTol}, compute.Float32, true)

// CumSum is summed by trees of blocks: no partial sum has more than some forty additions behind it.
var CumSum = &program.Entry{Name: "cumsum", Method: "CumSum", Class: program.Layer,
	Doc: "the sums of the elements up to each one, along the last axis",
	Special: "From an Inf or NaN on, sums are what IEEE arithmetic makes of them. Each sum is formed from blocks, whose sums are " +
		"formed likewise: its error is bounded by 2e-6 of the sum of the absolute values, for rows of any length.",
	Inputs: []program.Input{{Name: "x"}}, Options: compute.CumSumOptions{}, Tol: reduceTol,
	Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
		if len(in[0].Shape) == 0 {
			return program.Type{}, fmt.Errorf("a scalar has no last axis: %w", compute.ErrShape)
		}
		return in[0], nil
	},
}
