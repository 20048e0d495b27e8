package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// GatherDims are the sizes of operations that read or write rows by index: y[o, j, i] = x[o, index, i] with o < Outer, j <
// Count, i < Inner and indices below Rows. The index is the one at j, or with Own the one at o·Count + j.
type GatherDims struct {
	Outer, Rows, Count, Inner int
	Own                       bool
}

// TakeAlongDims derives the sizes of a take_along.
func TakeAlongDims(x, indices []int) (GatherDims, error) {
	last := len(x) - 1
	if last < 0 || len(indices) != len(x) || !program.EqualShape(indices[:last], x[:last]) {
		return GatherDims{}, fmt.Errorf("operands differ before the last axis: %w", compute.ErrShape)
	}
	return GatherDims{Outer: program.Len(x[:last]), Rows: x[last], Count: indices[last], Inner: 1, Own: true}, nil
}

// GatherAxis derives the sizes of a gather.
func GatherAxis(x, indices []int, o compute.GatherOptions) (GatherDims, error) {
	axis, err := axisOf(o.Axis, len(x))
	if err != nil {
		return GatherDims{}, err
	}
	return GatherDims{Outer: program.Len(x[:axis]), Rows: x[axis], Count: program.Len(indices), Inner: program.Len(x[axis+1:])}, nil
}

// GatherRows are the sizes of what takes rows of the first axis or puts them there: embedding, scatter, scatter_add.
func GatherRows(x, indices []int) GatherDims {
	return GatherDims{Outer: 1, Rows: x[0], Count: program.Len(indices), Inner: program.Len(x[1:])}
}

// axisOf is an axis counted from the front.
func axisOf(axis, rank int) (int, error) {
	at := axis
	if at < 0 {
		at += rank
	}
	if at < 0 || at >= rank {
		return 0, fmt.Errorf("axis %d of %d: %w", axis, rank, compute.ErrArgument)
	}
	return at, nil
}

var indexType = []compute.DType{compute.Int32}

const outsideSpecial = "An index that is negative or outside the axis gives NaN, or 0 where elements are " +
	"integers."

// Entries that take elements by index.
var (
	Gather = &program.Entry{Name: "gather", Method: "Gather", Class: program.Move,
		Doc:     "the elements of x at indices along an axis (NumPy's take)",
		Special: "indices has any shape, which takes the place of the axis in the result. " + outsideSpecial,
		Inputs:  []program.Input{{Name: "x", Types: words}, {Name: "indices", Types: indexType}}, Options: compute.GatherOptions{},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			axis, err := axisOf(a.Options.(compute.GatherOptions).Axis, len(in[0].Shape))
			if err != nil {
				return program.Type{}, err
			}
			shape := slices.Concat(in[0].Shape[:axis], in[1].Shape, in[0].Shape[axis+1:])
			if len(shape) > program.MaxRank {
				return program.Type{}, fmt.Errorf("result has %d axes, at most %d are possible: %w", len(shape), program.MaxRank, compute.ErrShape)
			}
			return program.Type{DType: in[0].DType, Shape: shape}, nil
		}}
	TakeAlong = &program.Entry{Name: "take_along", Method: "TakeAlong", Class: program.Move,
		Doc: "the elements of x that indices name within each row of the last axis (NumPy's " +
			"take_along_axis)",
		Special: "The other axes of x and indices are equal. " + outsideSpecial,
		Inputs:  []program.Input{{Name: "x", Types: words}, {Name: "indices", Types: indexType}},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			_, err := TakeAlongDims(in[0].Shape, in[1].Shape)
			return program.Type{DType: in[0].DType, Shape: in[1].Shape}, err
		}}
)
