package op

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// sumTol bounds the error of a running float32 sum of products of a few thousand terms, in blocks or with FMA.
var sumTol = Tolerance{Mag: 3e-6}

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
	d.Batch = max(Len(la), 1)
	if len(la) > 0 {
		d.Batch, d.StrideA = Len(la), d.M*d.K
	}
	if len(lb) > 0 {
		d.Batch, d.StrideB = Len(lb), d.K*d.N
	}
	return d, nil
}

// Matrix entries.
var (
	MatMul = register(&Entry{Name: "matmul", Method: "MatMul", Class: Matrix,
		Doc:     "act(a·b + bias) over the last two axes; leading axes are a batch, equal or absent on one side",
		Special: "K = 0 gives act(bias). NaN and Inf propagate as the sums of products make them.",
		Inputs:  []Input{{Name: "a"}, {Name: "b"}, {Name: "bias", Optional: true}},
		Options: compute.MatMulOptions{}, Tol: sumTol, Domain: [2]float64{-1, 1},
		Infer: func(in []Type, a Attr) (Type, error) {
			o := a.Options.(compute.MatMulOptions)
			d, err := MatMulShape(in[0].Shape, in[1].Shape, o)
			if err != nil {
				return Type{}, err
			}
			if len(in) == 3 && !EqualShape(in[2].Shape, []int{d.N}) {
				return Type{}, fmt.Errorf("bias must have shape [%d]: %w", d.N, compute.ErrShape)
			}
			if _, err := ActivationEntry(o.Act); err != nil {
				return Type{}, err
			}
			lead := in[0].Shape[:len(in[0].Shape)-2]
			if len(lead) == 0 {
				lead = in[1].Shape[:len(in[1].Shape)-2]
			}
			return F32(append(slices.Clone(lead), d.M, d.N)...), nil
		},
		Ref: func(in []Array, a Attr, out Type) []float64 {
			return activate(matmulReference(in, a.Options.(compute.MatMulOptions), out), a.Options.(compute.MatMulOptions).Act)
		},
		Magnitude: func(in []Array, a Attr, out Type) []float64 {
			return matmulReference(absolute(in), a.Options.(compute.MatMulOptions), out)
		}})
	MatVec = register(&Entry{Name: "matvec", Method: "MatVec", Class: Matrix, Doc: "the matrix a [m, k] times the vector x [k]",
		Special: "K = 0 gives zeros.", Inputs: []Input{{Name: "a"}, {Name: "x"}}, Tol: sumTol, Domain: [2]float64{-1, 1},
		Infer: func(in []Type, _ Attr) (Type, error) {
			a, x := in[0].Shape, in[1].Shape
			if len(a) != 2 || len(x) != 1 || a[1] != x[0] {
				return Type{}, fmt.Errorf("needs [m k] and [k]: %w", compute.ErrShape)
			}
			return F32(a[0]), nil
		},
		Ref: func(in []Array, _ Attr, out Type) []float64 {
			y := make([]float64, out.Len())
			k := len(in[1].Data)
			for i := range y {
				y[i] = dot(in[0].Data[i*k:(i+1)*k], in[1].Data)
			}
			return y
		}})
)

func matmulReference(in []Array, o compute.MatMulOptions, out Type) []float64 {
	d, _ := MatMulShape(in[0].Shape, in[1].Shape, o)
	y := make([]float64, out.Len())
	// Strides of A along m and k, of B along k and n.
	am, ak, bk, bn := d.K, 1, d.N, 1
	if o.TransA {
		am, ak = 1, d.M
	}
	if o.TransB {
		bk, bn = 1, d.K
	}
	for z := range d.Batch {
		a, b := in[0].Data[z*d.StrideA:], in[1].Data[z*d.StrideB:]
		for i := range d.M {
			row := y[(z*d.M+i)*d.N : (z*d.M+i+1)*d.N]
			for k := range d.K {
				x := a[i*am+k*ak]
				for j := range row {
					row[j] += x * b[k*bk+j*bn]
				}
			}
			if len(in) == 3 {
				for j := range row {
					row[j] += in[2].Data[j]
				}
			}
		}
	}
	return y
}

func activate(y []float64, act compute.Activation) []float64 {
	e, _ := ActivationEntry(act)
	if e == nil {
		return y
	}
	for i := range y {
		y[i] = e.F(y[i:i+1], nil)
	}
	return y
}

// Activation returns the activation that the options ask for.
func (a Attr) Activation() compute.Activation {
	switch o := a.Options.(type) {
	case compute.MatMulOptions:
		return o.Act
	case compute.Conv2DOptions:
		return o.Act
	case compute.Conv1DOptions:
		return o.Act
	}
	return compute.NoActivation
}

// ToleranceOf returns the tolerance of a call: that of the entry, widened by what its activation adds.
func (e *Entry) ToleranceOf(a Attr) Tolerance {
	tol := e.Tol
	if f, err := ActivationEntry(a.Activation()); err == nil && f != nil {
		// The steepest activation has slope 1.13: the sum's error grows by as much.
		tol.Abs, tol.Rel, tol.Mag = tol.Abs+f.Tol.Abs, tol.Rel+f.Tol.Rel, 1.13*tol.Mag
	}
	return tol
}
