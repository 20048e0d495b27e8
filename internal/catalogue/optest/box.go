package optest

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// poles are the operands of elementwise entries that must be away from zero.
var poles = map[*program.Entry]int{catalogue.Recip: 0, catalogue.Div: 1, catalogue.Log: 0, catalogue.Log2: 0, catalogue.Pow: 0, catalogue.PowScalar: 0, catalogue.Sqrt: 0}

// small is how large a bound may be beside its number.
const small = 0.02

// Box bounds by how much an elementwise function of operands x differs from its value where those differ by up to b: twice the largest
// difference at the corners and middles of that box, and at those of its part where the function is another, if that is inside.
//
// The functions are smooth, with a derivative that hardly changes over so small a box, which the factor 2 allows for, or monotone on
// each side of a step (floor, sign, relu at 0): there the corners show the whole step. Of a box that holds a pole, or that is
// not small, nothing is claimed: the bound is infinite.
func Box(e *program.Entry, x, b, scalars []float64) float64 {
	pole, hasPole := poles[e]
	widest := 0.0
	for k := range x {
		if b[k] > small*(1+math.Abs(x[k])) || hasPole && pole == k && b[k] > 0 && math.Abs(x[k]) <= 16*b[k] {
			return math.Inf(1)
		}
		widest = max(widest, b[k])
	}
	switch {
	case widest == 0:
		return 0
	case e == catalogue.Pow && x[0] <= b[0] && b[1] > 0: // of negative numbers, integral powers alone are numbers
		return math.Inf(1)
	}
	center := e.F(x, scalars)
	change := farthest(e, x, b, scalars, center)
	if e == catalogue.Equal && math.Abs(x[0]-x[1]) <= b[0]+b[1] {
		change = max(change, math.Abs(1-center))
	}
	if e == catalogue.Select && math.Abs(x[0]) <= b[0] {
		change = max(change, farthest(e, []float64{0, x[1], x[2]}, []float64{0, b[1], b[2]}, scalars, center))
	}
	return 2 * change
}

func farthest(e *program.Entry, x, b, scalars []float64, center float64) float64 {
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
		v := e.F(at, scalars)
		if v == center || v != v && center != center {
			continue
		}
		d := math.Abs(v - center)
		if d != d || math.IsInf(d, 0) {
			return math.Inf(1)
		}
		change = max(change, d)
	}
	return change
}
