package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// reduceTol bounds the error of sums by trees or blocks; a plain running sum of a million terms does not meet it.
var reduceTol = program.Tolerance{Mag: 2e-6}

func reduction(e program.Entry, out compute.DType, emptyAllowed bool) *program.Entry {
	e.Class, e.Inputs, e.Options, e.Infer = program.Reduce, []program.Input{{Name: "x"}}, compute.AllAxes, inferReduce(out, emptyAllowed)
	return &e
}

func inferReduce(out compute.DType, emptyAllowed bool) func(in []program.Type, a program.Attr) (program.Type, error) {
	return func(in []program.Type, a program.Attr) (program.Type, error) {
		s := in[0].Shape
		for _, t := range in[1:] {
			if !program.EqualShape(t.Shape, s) {
				return program.Type{}, fmt.Errorf("operands must have one shape: %w", compute.ErrShape)
			}
		}
		axis := a.Options.(compute.Axis)
		rows, cols := program.ReduceRows(s, axis)
		if cols == 0 && rows > 0 && !emptyAllowed {
			return program.Type{}, fmt.Errorf("nothing to choose from in an empty tensor: %w", compute.ErrShape)
		}
		switch {
		case axis == compute.AllAxes:
			return program.Type{DType: out, Shape: []int{}}, nil
		case axis == compute.LastAxis && len(s) > 0:
			return program.Type{DType: out, Shape: s[:len(s)-1]}, nil
		case axis == compute.LastAxis:
			return program.Type{}, fmt.Errorf("a scalar has no last axis: %w", compute.ErrShape)
		}
		return program.Type{}, fmt.Errorf("axis option %d: %w", axis, compute.ErrArgument)
	}
}

// Reductions.
var (
	Sum = reduction(program.Entry{Name: "sum", Method: "Sum", Doc: "the sum of the elements",
		Special: "An empty tensor gives 0. The sum is formed by trees or blocks, never as one running sum.", Tol: reduceTol}, compute.Float32, true)
	Mean = reduction(program.Entry{Name: "mean", Method: "Mean", Doc: "the mean of the elements",
		Special: "An empty tensor gives NaN.", Tol: reduceTol}, compute.Float32, true)
	Max = reduction(program.Entry{Name: "max", Method: "Max", Doc: "the largest element",
		Special: "The result is NaN if any element is. An empty tensor fails with ErrShape."}, compute.Float32, false)
	Min = reduction(program.Entry{Name: "min", Method: "Min", Doc: "the smallest element",
		Special: "The result is NaN if any element is. An empty tensor fails with ErrShape."}, compute.Float32, false)
	ArgMax = reduction(program.Entry{Name: "argmax", Method: "ArgMax", Doc: "the index of the largest element",
		Special: "Of equal elements the lowest index wins. If any element is NaN, the result is the " +
			"lowest index of one. An empty tensor fails with ErrShape."},
		compute.Int32, false)
	ArgMin = reduction(program.Entry{Name: "argmin", Method: "ArgMin", Doc: "the index of the smallest element",
		Special: "Of equal elements the lowest index wins. If any element is NaN, the result is the " +
			"lowest index of one. An empty tensor fails with ErrShape."},
		compute.Int32, false)
	NormL1 = reduction(program.Entry{Name: "norm_l1", Method: "NormL1", Doc: "the sum of the absolute values",
		Special: "An empty tensor gives 0.", Tol: reduceTol}, compute.Float32, true)
	NormL2 = reduction(program.Entry{Name: "norm_l2", Method: "NormL2", Doc: "the square root of the sum of squares",
		Special: "An empty tensor gives 0. Squares beyond float32's range give +Inf.", Tol: reduceTol}, compute.Float32, true)
	NormLInf = reduction(program.Entry{Name: "norm_linf", Method: "NormLInf", Doc: "the largest absolute value",
		Special: "An empty tensor gives 0. The result is NaN if any element is."}, compute.Float32, true)
	// DotProduct reduces two operands.
	DotProduct = &program.Entry{Name: "dot", Method: "Dot", Class: program.Reduce, Doc: "the sum of the products of a and b",
		Special: "Empty tensors give 0.", Tol: reduceTol, Options: compute.AllAxes,
		Inputs: []program.Input{{Name: "a"}, {Name: "b"}}, Infer: inferReduce(compute.Float32, true)}
)
