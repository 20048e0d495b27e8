package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// words are the element types that movement takes: those of four bytes. Those of fewer are packed; cast them first.
var words = []compute.DType{compute.Float32, compute.Int32, compute.Uint32}

var anyType = append(slices.Clone(words), compute.Float16, compute.BFloat16, compute.Uint8)

// floats are the element types of numbers with a fraction.
var floats = []compute.DType{compute.Float32, compute.Float16, compute.BFloat16}

// castTypes are those that the cast operation converts, each to each.
var castTypes = append(slices.Clone(floats), compute.Uint8)

// View describes a strided read: element index of the result at Offset + Σ index·Strides of the operand.
type View struct {
	Shape   []int
	Strides []int // in elements; may be negative
	Offset  int
}

// Perm returns a transposition's permutation with the default filled in.
func Perm(rank int, o compute.TransposeOptions) ([]int, error) {
	if o.Perm == nil {
		if rank < 2 {
			return nil, fmt.Errorf("needs two axes to exchange: %w", compute.ErrShape)
		}
		p := make([]int, rank)
		for i := range p {
			p[i] = i
		}
		p[rank-1], p[rank-2] = p[rank-2], p[rank-1]
		return p, nil
	}
	sorted := slices.Sorted(slices.Values(o.Perm))
	for i, v := range sorted {
		if v != i || len(sorted) != rank {
			return nil, fmt.Errorf("%v is no permutation of %d axes: %w", o.Perm, rank, compute.ErrArgument)
		}
	}
	if len(sorted) != rank {
		return nil, fmt.Errorf("%v is no permutation of %d axes: %w", o.Perm, rank, compute.ErrArgument)
	}
	return o.Perm, nil
}

// TransposeView returns the strided read that a transposition is.
func TransposeView(x []int, o compute.TransposeOptions) (View, error) {
	p, err := Perm(len(x), o)
	if err != nil {
		return View{}, err
	}
	st := program.Strides(x)
	v := View{Shape: make([]int, len(x)), Strides: make([]int, len(x))}
	for i, axis := range p {
		v.Shape[i], v.Strides[i] = x[axis], st[axis]
	}
	return v, nil
}

// SliceView returns the strided read that a slice is.
func SliceView(x []int, o compute.SliceOptions) (View, error) {
	if len(o.Start) != len(x) || len(o.Size) != len(x) || o.Step != nil && len(o.Step) != len(x) {
		return View{}, fmt.Errorf("start %v, size %v, step %v for %d axes: %w", o.Start, o.Size, o.Step, len(x), compute.ErrArgument)
	}
	v := View{Shape: slices.Clone(o.Size), Strides: program.Strides(x)}
	for i, d := range x {
		step := 1
		if o.Step != nil {
			step = o.Step[i]
		}
		start, size := o.Start[i], o.Size[i]
		if step == 0 || size < 0 || size > d || start < 0 || start > d || size > 0 &&
			(start >= d || step > d || step < -d || start+(size-1)*step < 0 || start+(size-1)*step >= d) {
			return View{}, fmt.Errorf("start %d, size %d, step %d on axis %d of %d: %w", start, size, step, i, d, compute.ErrArgument)
		}
		v.Offset += start * v.Strides[i]
		v.Strides[i] *= step
	}
	return v, nil
}

// ConcatAxis returns the axis of a concatenation, counted from the front.
func ConcatAxis(rank int, o compute.ConcatOptions) (int, error) {
	axis := o.Axis
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		return 0, fmt.Errorf("axis %d of %d: %w", o.Axis, rank, compute.ErrArgument)
	}
	return axis, nil
}

func viewEntry(name, method, doc string, options any, view func(x []int, a program.Attr) (View, error)) *program.Entry {
	return &program.Entry{Name: name, Method: method, Class: program.Move, Doc: doc, Options: options,
		Inputs: []program.Input{{Name: "x", Types: words}},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			v, err := view(in[0].Shape, a)
			return program.Type{DType: in[0].DType, Shape: v.Shape}, err
		}}
}

// Movement entries.
var (
	Transpose = viewEntry("transpose", "Transpose", "x with its axes in another order", compute.TransposeOptions{},
		func(x []int, a program.Attr) (View, error) {
			return TransposeView(x, a.Options.(compute.TransposeOptions))
		})
	Slice = viewEntry("slice", "Slice", "a strided rectangular part of x", compute.SliceOptions{},
		func(x []int, a program.Attr) (View, error) { return SliceView(x, a.Options.(compute.SliceOptions)) })
	Pad = &program.Entry{Name: "pad", Method: "Pad", Class: program.Move, Doc: "x surrounded by elements of one value",
		Inputs: []program.Input{{Name: "x"}}, Options: compute.PadOptions{},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			o := a.Options.(compute.PadOptions)
			s := in[0].Shape
			if len(o.Before) != len(s) || len(o.After) != len(s) {
				return program.Type{}, fmt.Errorf("before %v, after %v for %d axes: %w", o.Before, o.After, len(s), compute.ErrArgument)
			}
			out := slices.Clone(s)
			for i := range out {
				if o.Before[i] < 0 || o.After[i] < 0 || o.Before[i] > program.MaxElements || o.After[i] > program.MaxElements {
					return program.Type{}, fmt.Errorf("before %v, after %v: %w", o.Before, o.After, compute.ErrArgument)
				}
				out[i] += o.Before[i] + o.After[i]
			}
			return program.F32(out...), nil
		}}
	Concat = &program.Entry{Name: "concat", Method: "Concat", Class: program.Move, Doc: "the concatenation of the operands along one axis",
		Inputs: []program.Input{{Name: "x", Types: words, Variadic: true}}, Options: compute.ConcatOptions{},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			out := program.Type{DType: in[0].DType, Shape: slices.Clone(in[0].Shape)}
			axis, err := ConcatAxis(len(out.Shape), a.Options.(compute.ConcatOptions))
			if err != nil {
				return program.Type{}, err
			}
			for _, t := range in[1:] {
				s := slices.Clone(t.Shape)
				if len(s) == len(out.Shape) {
					out.Shape[axis] += s[axis]
					s[axis] = out.Shape[axis]
				}
				if t.DType != out.DType {
					return program.Type{}, fmt.Errorf("%v and %v cannot be joined: %w", out.DType, t.DType, compute.ErrDType)
				}
				if !program.EqualShape(s, out.Shape) {
					return program.Type{}, fmt.Errorf("operands differ outside axis %d: %w", axis, compute.ErrShape)
				}
			}
			return out, nil
		}}
	Embedding = &program.Entry{Name: "embedding", Method: "Embedding", Class: program.Move,
		Doc: "the rows of table that ids name",
		Special: "table is [vocabulary, width]; ids has any shape, to which the result appends width. An " +
			"id outside the vocabulary gives a row of NaN.",
		Inputs: []program.Input{{Name: "table"}, {Name: "ids", Types: []compute.DType{compute.Int32}}},
		Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
			if len(in[0].Shape) != 2 {
				return program.Type{}, fmt.Errorf("table must have two axes: %w", compute.ErrShape)
			}
			return program.F32(append(slices.Clone(in[1].Shape), in[0].Shape[1])...), nil
		}}
	Copy = &program.Entry{Name: "copy", Method: "Copy", Class: program.Move, Doc: "a copy of x",
		Inputs: []program.Input{{Name: "x", Types: anyType}},
		Infer:  func(in []program.Type, _ program.Attr) (program.Type, error) { return in[0], nil }}
	Reshape = &program.Entry{Name: "reshape", Method: "Reshape", Class: program.Move, Doc: "the elements of x, in order, in another shape",
		Inputs: []program.Input{{Name: "x", Types: anyType}}, Options: compute.ReshapeOptions{},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			s, err := inferReshape(in[0].Len(), a.Options.(compute.ReshapeOptions).Shape)
			return program.Type{DType: in[0].DType, Shape: s}, err
		}}
	Fill = &program.Entry{Name: "fill", Method: "Fill", Class: program.Move, Doc: "a tensor of one value",
		Scalars: []program.Scalar{scalar("value", 0, 1, -2.5)}, Options: compute.FillOptions{},
		Infer: func(_ []program.Type, a program.Attr) (program.Type, error) {
			s := a.Options.(compute.FillOptions).Shape
			if len(s) > program.MaxRank {
				return program.Type{}, fmt.Errorf("%d axes, at most %d are possible: %w", len(s), program.MaxRank, compute.ErrShape)
			}
			return program.F32(s...), nil
		}}
	Cast = &program.Entry{Name: "cast", Method: "Cast", Class: program.Move, Doc: "x converted between Float32, Float16, BFloat16 and Uint8",
		Special: "Conversion to a type of fewer bits rounds to nearest even. Values that round beyond the " +
			"largest one of the type (65504 or 3.39e38) give ±Inf. NaN stays NaN, with unspecified bits. Subnormal " +
			"numbers of either type may become 0. Conversion to Uint8 rounds to the nearest integer, halves to even; what is below 0 " +
			"and NaN become 0, what is above 255 becomes 255. Conversion to the same type is a copy.",
		Inputs: []program.Input{{Name: "x", Types: castTypes}}, Options: compute.CastOptions{},
		Tol: program.Tolerance{Abs: 6.2e-5, Rel: 3.95e-3}, Domain: [2]float64{-6e4, 6e4},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			to := a.Options.(compute.CastOptions).To
			if !slices.Contains(castTypes, to) {
				return program.Type{}, fmt.Errorf("cannot convert to %v: %w", to, compute.ErrDType)
			}
			return program.Type{DType: to, Shape: in[0].Shape}, nil
		}}
)

func inferReshape(n int, shape []int) ([]int, error) {
	out := slices.Clone(shape)
	if out == nil {
		out = []int{}
	}
	if len(out) > program.MaxRank {
		return nil, fmt.Errorf("%d axes, at most %d are possible: %w", len(out), program.MaxRank, compute.ErrShape)
	}
	free, known := -1, 1
	for i, d := range out {
		switch {
		case d == -1 && free < 0:
			free = i
		case d < 0:
			return nil, fmt.Errorf("cannot reshape to %v: %w", shape, compute.ErrShape)
		case d > 0 && known > program.MaxElements/d:
			return nil, fmt.Errorf("cannot reshape to %v: %w", shape, compute.ErrTooLarge)
		default:
			known *= d
		}
	}
	if free >= 0 && known > 0 && n%known == 0 {
		out[free] = n / known
		known = n
	}
	if known != n || free >= 0 && out[free] < 0 {
		return nil, fmt.Errorf("%d elements do not fill %v: %w", n, shape, compute.ErrShape)
	}
	return out, nil
}
