package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// reduceTol bounds the error of sums by trees or blocks; a plain running sum of a million terms does not meet it.
var reduceTol = program.Tolerance{Mag: 2e-6}

func reduction(name, method, doc string, tol program.Tolerance, out compute.DType, emptyAllowed bool) *program.Entry {
	return register(&program.Entry{Name: name, Method: method, Class: program.Reduce, Doc: doc, Tol: tol,
		Inputs: []program.Input{{Name: "x"}}, Options: compute.AllAxes,
		Infer: inferReduce(out, emptyAllowed)})
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
	Sum = reduction("sum", "Sum", "the sum of the elements", reduceTol, compute.Float32, true).
		WithSpecial("0 for an empty tensor. Summed by trees or blocks, never one running sum.")
	Mean = reduction("mean", "Mean", "the mean of the elements", reduceTol, compute.Float32, true).WithSpecial("NaN for an empty tensor.")
	Max  = reduction("max", "Max", "the largest element", exact, compute.Float32, false).
		WithSpecial("NaN if any element is. An empty tensor is ErrShape.")
	Min = reduction("min", "Min", "the smallest element", exact, compute.Float32, false).
		WithSpecial("NaN if any element is. An empty tensor is ErrShape.")
	ArgMax = reduction("argmax", "ArgMax", "the index of the largest element", exact, compute.Int32, false).
		WithSpecial("The lowest index among equals; the lowest index of a NaN if there is one. An empty tensor is ErrShape.")
	ArgMin = reduction("argmin", "ArgMin", "the index of the smallest element", exact, compute.Int32, false).
		WithSpecial("The lowest index among equals; the lowest index of a NaN if there is one. An empty tensor is ErrShape.")
	NormL1 = reduction("norm_l1", "NormL1", "the sum of the absolute values", reduceTol, compute.Float32, true).WithSpecial("0 for an empty tensor.")
	NormL2 = reduction("norm_l2", "NormL2", "the square root of the sum of squares", reduceTol, compute.Float32, true).
		WithSpecial("0 for an empty tensor. Squares beyond float32's range give +Inf.")
	NormLInf = reduction("norm_linf", "NormLInf", "the largest absolute value", exact, compute.Float32, true).
			WithSpecial("0 for an empty tensor, NaN if any element is.")
	// DotProduct reduces two operands.
	DotProduct = register(&program.Entry{Name: "dot", Method: "Dot", Class: program.Reduce, Doc: "the sum of the products of a and b",
		Special: "0 for empty tensors.", Tol: reduceTol, Options: compute.AllAxes,
		Inputs: []program.Input{{Name: "a"}, {Name: "b"}}, Infer: inferReduce(compute.Float32, true)})
)
