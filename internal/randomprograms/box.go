package randomprograms

import (
	"math"

	"github.com/wavelane/wavelane/internal/op"
)

// poles are the operands of elementwise entries that must be away from zero.
var poles = map[*op.Entry]int{op.Recip: 0, op.Div: 1, op.Log: 0, op.Log2: 0, op.Pow: 0, op.PowScalar: 0, op.Sqrt: 0}

// smallBox is how large a bound may be beside its number.
const smallBox = 0.02

// overBox bounds an elementwise function over the box of its operands, for every element.
func overBox(e *op.Entry, in []estimate, a op.Attr, shape []int) []float64 {
	y := make([]float64, op.Len(shape))
	p := numbers(a.Scalars)
	strides := make([][]int, len(in))
	for k := range in {
		strides[k] = op.BroadcastStrides(in[k].Shape, shape)
	}
	x, b := make([]float64, len(in)), make([]float64, len(in))
	pole, hasPole := poles[e]
	op.Walk(shape, func(i int, index []int) {
		widest := 0.0
		for k := range in {
			at := op.Dot(index, strides[k])
			x[k], b[k] = in[k].Data[at], in[k].bound[at]
			if b[k] > smallBox*(1+math.Abs(x[k])) || hasPole && pole == k && b[k] > 0 && math.Abs(x[k]) <= 16*b[k] {
				y[i] = math.Inf(1)
				return
			}
			widest = max(widest, b[k])
		}
		if widest > 0 {
			y[i] = box(e, x, b, p)
		}
	})
	return y
}

// box is twice the largest difference between f at x and at the corners and middles of the box around it, and at those of its part
// where f is another, if that is inside.
func box(e *op.Entry, x, b, p []float64) float64 {
	center := e.F(x, p)
	change := farthest(e, x, b, p, center)
	if e == op.Equal && math.Abs(x[0]-x[1]) <= b[0]+b[1] {
		change = max(change, math.Abs(1-center))
	}
	if e == op.Select && math.Abs(x[0]) <= b[0] {
		change = max(change, farthest(e, []float64{0, x[1], x[2]}, []float64{0, b[1], b[2]}, p, center))
	}
	return 2 * change
}

func farthest(e *op.Entry, x, b, p []float64, center float64) float64 {
	at := make([]float64, len(x))
	change := 0.0
	corners := 1
	for range x {
		corners *= 3
	}
	for c := range corners {
		rest := c
		for k := range x {
			at[k] = x[k] + float64(rest%3-1)*b[k]
			rest /= 3
		}
		d := math.Abs(e.F(at, p) - center)
		if d != d || math.IsInf(d, 0) {
			return math.Inf(1)
		}
		change = max(change, d)
	}
	return change
}
