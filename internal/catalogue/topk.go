package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// MostTopK is the largest K.
const MostTopK = 1024

// TopK of rows.
var TopK = &program.Entry{Name: "top_k", Method: "TopK", Class: program.Layer,
	Doc: "the K largest elements of each row of the last axis, in descending order, and their indices",
	Special: "Both results have K as their last axis. Indices are Int32 and count within the row. Of " +
		"equal elements the one of lower index comes first; zeros of either sign are equal. NaN counts as larger " +
		"than every number, +Inf included.",
	Inputs: []program.Input{{Name: "x"}}, Results: []string{"values", "indices"}, Options: compute.TopKOptions{},
	InferAll: func(in []program.Type, a program.Attr) ([]program.Type, error) {
		k, s := a.Options.(compute.TopKOptions).K, in[0].Shape
		if len(s) == 0 {
			return nil, fmt.Errorf("a scalar has no last axis: %w", compute.ErrShape)
		}
		if k < 1 || k > MostTopK {
			return nil, fmt.Errorf("K is %d, must be in [1, %d]: %w", k, MostTopK, compute.ErrArgument)
		}
		if k > s[len(s)-1] {
			return nil, fmt.Errorf("rows of %d elements have no %d largest: %w", s[len(s)-1], k, compute.ErrShape)
		}
		shape := append(slices.Clone(s[:len(s)-1]), k)
		return []program.Type{program.F32(shape...), {DType: compute.Int32, Shape: shape}}, nil
	},
}
