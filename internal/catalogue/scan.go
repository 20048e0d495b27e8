package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// SumSquares is norm_l2 without its root.
var SumSquares = reduction(program.Entry{Name: "sum_squares", Method: "SumSquares",
	Doc: "the sum of the squares of the elements",
	Special: "It is the square of norm_l2. An empty tensor gives 0. Squares beyond float32's range " +
		"give +Inf.", Tol: reduceTol}, compute.Float32, true)

// CumSum is summed by trees of blocks: no partial sum is the result of more than some forty additions.
var CumSum = &program.Entry{Name: "cumsum", Method: "CumSum", Class: program.Layer,
	Doc: "the cumulative sums along the last axis",
	Special: "From the first Inf or NaN on, sums are what IEEE arithmetic makes of them. Sums are " +
		"formed by blocks: the error is at most 2e-6 of the sum of the absolute values, for rows of any length.",
	Inputs: []program.Input{{Name: "x"}}, Options: compute.CumSumOptions{}, Tol: reduceTol,
	Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
		if len(in[0].Shape) == 0 {
			return program.Type{}, fmt.Errorf("a scalar has no last axis: %w", compute.ErrShape)
		}
		return in[0], nil
	},
}
