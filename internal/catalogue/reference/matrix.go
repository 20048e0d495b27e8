package reference

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func matrixTable() table {
	return table{
		catalogue.MatMul: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			return activate(matmulReference(in, a.Options.(compute.MatMulOptions), out), a.Options.(compute.MatMulOptions).Act)
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				return matmulReference(Absolute(in), a.Options.(compute.MatMulOptions), out)
			})},
		catalogue.MatVec: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			return matmulReference([]Array{asRows(in[1]), in[0]}, compute.MatMulOptions{TransB: true}, out)
		})},
		catalogue.VecMat: {values: one(func(in []Array, _ program.Attr, out program.Type) []float64 {
			return matmulReference([]Array{asRows(in[0]), in[1]}, compute.MatMulOptions{}, out)
		})},
	}
}

func asRows(x Array) Array {
	rows, cols := program.RowsCols(x.Shape)
	return Array{Shape: []int{rows, cols}, Data: x.Data}
}

func matmulReference(in []Array, o compute.MatMulOptions, out program.Type) []float64 {
	d, _ := catalogue.MatMulShape(in[0].Shape, in[1].Shape, o)
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
			if ak == 1 && bk == 1 { // as both lie in memory
				for j := range row {
					row[j] = dot(a[i*d.K:(i+1)*d.K], b[j*d.K:(j+1)*d.K])
				}
			} else {
				for k := range d.K {
					x := a[i*am+k*ak]
					for j := range row {
						row[j] += x * b[k*bk+j*bn]
					}
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
	e, _ := catalogue.ActivationEntry(act)
	if e == nil {
		return y
	}
	for i := range y {
		y[i] = e.F(y[i:i+1], nil)
	}
	return y
}
