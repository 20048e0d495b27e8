package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func inferScatter(in []program.Type, _ program.Attr) (program.Type, error) {
	x, indices, updates := in[0], in[1].Shape, in[2]
	if len(x.Shape) == 0 {
		return program.Type{}, fmt.Errorf("x has no axis to put rows along: %w", compute.ErrShape)
	}
	if want := slices.Concat(indices, x.Shape[1:]); !program.EqualShape(updates.Shape, want) {
		return program.Type{}, fmt.Errorf("updates must have shape %v: %w", want, compute.ErrShape)
	}
	if updates.DType != x.DType {
		return program.Type{}, fmt.Errorf("updates of %v for %v: %w", updates.DType, x.DType, compute.ErrDType)
	}
	return x, nil
}

const scatterSpecial = "An update whose index is negative or outside the axis is ignored."

// addTol bounds the error of a sum of updates in partial sums of at most 32.
var addTol = program.Tolerance{Mag: 3e-6}

// Entries that put rows by index.
var (
	Scatter = &program.Entry{Name: "scatter", Method: "Scatter", Class: program.Move,
		Doc: "x with rows along the first axis replaced by updates",
		Special: "Row indices[j] becomes updates[j]; updates has the shape of indices followed by that of " +
			"a row. Of several updates of a row the last one wins. " + scatterSpecial,
		Inputs:  []program.Input{{Name: "x", Types: words}, {Name: "indices", Types: indexType}, {Name: "updates", Types: words}},
		Updates: 1, Infer: inferScatter}
	ScatterAdd = &program.Entry{Name: "scatter_add", Method: "ScatterAdd", Class: program.Layer,
		Doc: "x with updates added to rows along the first axis, the gradient of gathering rows",
		Special: "updates[j] is added to row indices[j]; updates has the shape of indices followed by " +
			"that of a row. The sum of a row's updates is added to the row; it is formed from sums of parts, in the same order in every " +
			"run. The time grows with the number of updates, whatever rows they are for. " + scatterSpecial,
		Inputs:  []program.Input{{Name: "x"}, {Name: "indices", Types: indexType}, {Name: "updates"}},
		Updates: 1, Infer: inferScatter, Tol: addTol}
	EmbeddingBackward = &program.Entry{Name: "embedding_backward", Method: "EmbeddingBackward", Class: program.Layer,
		Doc: "the gradient of embedding with respect to table",
		Special: "Row r of the result is the sum of the rows of dy whose id is r; dy has the shape of ids " +
			"followed by width. Of table [vocabulary, width] only the shape matters. Rows are summed as in " +
			"scatter_add. An id outside the vocabulary is ignored.",
		Inputs: []program.Input{{Name: "table"}, {Name: "ids", Types: indexType}, {Name: "dy"}}, Tol: addTol,
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			if len(in[0].Shape) != 2 {
				return program.Type{}, fmt.Errorf("table must have two axes: %w", compute.ErrShape)
			}
			return inferScatter(in, a)
		}}
)
