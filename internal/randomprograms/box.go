package randomprograms

import (
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/internal/op/optest"
)

// overBox bounds an elementwise function over the box of its operands, for every element.
func overBox(e *op.Entry, in []estimate, a op.Attr, shape []int) []float64 {
	y := make([]float64, op.Len(shape))
	p := numbers(a.Scalars)
	strides := make([][]int, len(in))
	for k := range in {
		strides[k] = op.BroadcastStrides(in[k].Shape, shape)
	}
	x, b := make([]float64, len(in)), make([]float64, len(in))
	op.Walk(shape, func(i int, index []int) {
		for k := range in {
			at := op.Dot(index, strides[k])
			x[k], b[k] = in[k].Data[at], in[k].bound[at]
		}
		y[i] = optest.Box(e, x, b, p)
	})
	return y
}
