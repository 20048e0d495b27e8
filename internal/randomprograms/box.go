package randomprograms

import (
	"github.com/wavelane/wavelane/internal/catalogue/optest"
	"github.com/wavelane/wavelane/internal/program"
)

// overBox bounds an elementwise function over the box of its operands, for every element.
func overBox(e *program.Entry, in []estimate, a program.Attr, shape []int) []float64 {
	y := make([]float64, program.Len(shape))
	p := numbers(a.Scalars)
	strides := make([][]int, len(in))
	for k := range in {
		strides[k] = program.BroadcastStrides(in[k].Shape, shape)
	}
	x, b := make([]float64, len(in)), make([]float64, len(in))
	program.Walk(shape, func(i int, index []int) {
		for k := range in {
			at := program.Dot(index, strides[k])
			x[k], b[k] = in[k].Data[at], in[k].bound[at]
		}
		y[i] = optest.Box(e, x, b, p)
	})
	return y
}
