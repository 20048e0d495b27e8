package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// MatMulDims are the sizes of a matmul. Strides are the distances in elements between successive matrices of a batch; an
// operand without leading axes is shared by the whole batch and has stride 0.
type MatMulDims struct {
	Batch, M, K, N   int
	StrideA, StrideB int
}

// MatMulShape derives the sizes of a checked matmul.
func MatMulShape(a, b []int, o compute.MatMulOptions) (MatMulDims, error) {
	var d MatMulDims
	if len(a) < 2 || len(b) < 2 {
		return d, fmt.Errorf("operands need two axes: %w", compute.ErrShape)
	}
	la, lb := a[:len(a)-2], b[:len(b)-2]
	if len(la) > 0 && len(lb) > 0 && !slices.Equal(la, lb) {
		return d, fmt.Errorf("leading axes %v and %v differ: %w", la, lb, compute.ErrShape)
	}
	d.M, d.K = a[len(a)-2], a[len(a)-1]
	if o.TransA {
		d.M, d.K = d.K, d.M
	}
	kb := b[len(b)-2]
	d.N = b[len(b)-1]
	if o.TransB {
		kb, d.N = d.N, kb
	}
	if d.K != kb {
		return d, fmt.Errorf("inner dimensions %d and %d differ: %w", d.K, kb, compute.ErrShape)
	}
	d.Batch = max(program.Len(la), 1)
	if len(la) > 0 {
		d.Batch, d.StrideA = program.Len(la), d.M*d.K
	}
	if len(lb) > 0 {
		d.Batch, d.StrideB = program.Len(lb), d.K*d.N
	}
	return d, nil
}

// Matrix entries.
var (
	MatMul = &program.Entry{Name: "matmul", Method: "MatMul", Class: program.Matrix, Dots: matmulFlops,
		Doc: "act(a·b + bias) over the last two axes",
		Special: "Leading axes are a batch; they are equal, or absent on one side. a and b have one " +
			"element type, the result's is an option; sums and bias are Float32. K = 0 gives act(bias). NaN and Inf " +
			"propagate as the sums of products make them. Subnormal Float16 values may count as 0.",
		Inputs:  []program.Input{{Name: "a", Types: floats}, {Name: "b", Types: floats}, {Name: "bias", Optional: true}},
		Options: compute.MatMulOptions{}, Tol: sumTol, Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			o := a.Options.(compute.MatMulOptions)
			d, err := MatMulShape(in[0].Shape, in[1].Shape, o)
			if err != nil {
				return program.Type{}, err
			}
			if in[0].DType != in[1].DType || !slices.Contains(floats, o.Result) {
				return program.Type{}, fmt.Errorf("%v times %v to %v: %w", in[0].DType, in[1].DType, o.Result, compute.ErrDType)
			}
			if _, ok := precisions[o.Precision]; !ok {
				return program.Type{}, fmt.Errorf("precision %d: %w", o.Precision, compute.ErrArgument)
			}
			if len(in) == 3 && !program.EqualShape(in[2].Shape, []int{d.N}) {
				return program.Type{}, fmt.Errorf("bias must have shape [%d]: %w", d.N, compute.ErrShape)
			}
			if _, err := ActivationEntry(o.Act); err != nil {
				return program.Type{}, err
			}
			lead := in[0].Shape[:len(in[0].Shape)-2]
			if len(lead) == 0 {
				lead = in[1].Shape[:len(in[1].Shape)-2]
			}
			return program.Type{DType: o.Result, Shape: append(slices.Clone(lead), d.M, d.N)}, nil
		}}
	MatVec = &program.Entry{Name: "matvec", Method: "MatVec", Class: program.Matrix, Dots: matrixFlops(0),
		Doc: "the product of the matrix a [m, k] and the vector x [k]",
		Special: "With x [rows, k] each row is such a vector, and the result is [rows, m]. The matrix may " +
			"be Float16 or BFloat16, and is read once for up to 8 rows. K = 0 gives zeros. Subnormal Float16 values " +
			"may count as 0.",
		Inputs: []program.Input{{Name: "a", Types: floats}, {Name: "x"}}, Tol: sumTol, Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
			return vectorTimes(in[1].Shape, in[0].Shape, true)
		}}
	VecMat = &program.Entry{Name: "vecmat", Method: "VecMat", Class: program.Matrix, Dots: matrixFlops(1),
		Doc: "the product of the vector x [k] and the matrix a [k, n]",
		Special: "With x [rows, k] each row is such a vector, and the result is [rows, n]. The matrix may " +
			"be Float16 or BFloat16, and is read once for up to 8 rows. K = 0 gives zeros. Subnormal Float16 values " +
			"may count as 0.",
		Inputs: []program.Input{{Name: "x"}, {Name: "a", Types: floats}}, Tol: sumTol, Domain: [2]float64{-1, 1},
		Infer: func(in []program.Type, _ program.Attr) (program.Type, error) {
			return vectorTimes(in[0].Shape, in[1].Shape, false)
		}}
)

// vectorTimes is the type of vectors, the rows of x, times a matrix.
func vectorTimes(x, a []int, transposed bool) (program.Type, error) {
	if len(a) != 2 || len(x) != 1 && len(x) != 2 {
		return program.Type{}, fmt.Errorf("needs a matrix, and a vector or rows of them: %w", compute.ErrShape)
	}
	k, n := a[0], a[1]
	if transposed {
		k, n = n, k
	}
	if x[len(x)-1] != k {
		return program.Type{}, fmt.Errorf("inner dimensions %d and %d differ: %w", x[len(x)-1], k, compute.ErrShape)
	}
	return program.F32(append(slices.Clone(x[:len(x)-1]), n)...), nil
}

// Product is a matmul, matvec or vecmat as a product of matrices.
type Product struct {
	MatMulDims
	A, B int // which operands they are
	compute.MatMulOptions
}

// ProductOf is the product that a checked step is; a third operand is its bias.
func ProductOf(e *program.Entry, in []program.Type, a program.Attr) (Product, error) {
	p := Product{A: 0, B: 1}
	switch e {
	case MatMul:
		p.MatMulOptions = a.Options.(compute.MatMulOptions)
	case MatVec:
		p.A, p.B, p.TransB = 1, 0, true
	}
	left := in[p.A].Shape
	if len(left) == 1 {
		left = []int{1, left[0]}
	}
	var err error
	p.MatMulDims, err = MatMulShape(left, in[p.B].Shape, p.MatMulOptions)
	return p, err
}
