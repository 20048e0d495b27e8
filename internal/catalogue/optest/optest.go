// Package optest bounds how far devices may be from the float64 reference of elementwise expressions, for tests that draw those at
// random.
package optest

import (
	"math"
	"strings"

	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// Estimate is a number of the float64 reference, and how far a device may be from it. An infinite bound is no claim: what follows from
// a comparison that could have gone either way, from a pole, from an overflow.
type Estimate struct{ Value, Bound float64 }

// Known reports whether anything is claimed.
func (y Estimate) Known() bool { return !math.IsInf(y.Bound, 0) }

// Accepts reports whether got is what is estimated. Any NaN is as good as any other.
func (y Estimate) Accepts(got float32) bool {
	g := float64(got)
	return !y.Known() || g == y.Value || g != g && y.Value != y.Value || math.Abs(g-y.Value) <= y.Bound
}

const (
	smallest = 0x1p-126 // of normal numbers; a device may flush others to zero
	huge     = 1e37     // a rounding error away from overflow, nothing is claimed
)

// Expression estimates the results of an expression for one element of each operand.
func Expression(x *program.Expression, in []float64, scalars []float32) []Estimate {
	all := make([]Estimate, 0, len(in)+len(x.Nodes))
	for _, v := range in {
		e := Estimate{Value: v}
		if math.Abs(v) < smallest {
			e.Bound = math.Abs(v)
		}
		all = append(all, e)
	}
	for _, n := range x.Nodes {
		args := make([]Estimate, len(n.Args))
		for i, a := range n.Args {
			args[i] = all[a]
		}
		of := len(n.Entry.Scalars)
		all = append(all, entry(n.Entry, args, scalars[:of]))
		scalars = scalars[of:]
	}
	y := make([]Estimate, len(x.Results))
	for i, r := range x.Results {
		y[i] = all[r]
	}
	return y
}

// entry estimates an elementwise entry: what becomes of the bounds of its operands, and twice its own tolerance, since that is said of
// operands as the reference has them.
func entry(e *program.Entry, in []Estimate, scalars []float32) Estimate {
	x, b := make([]float64, len(in)), make([]float64, len(in))
	claims := true
	for i, a := range in {
		x[i], b[i] = a.Value, a.Bound
		claims = claims && a.Known() && usual(e, a)
	}
	y := Estimate{Value: e.F(x, wide(scalars))}
	if claims {
		y.Bound = Box(e, x, b, wide(scalars))
	}
	switch {
	case !claims || !y.Known():
		y.Bound = math.Inf(1)
	case y.Value != y.Value || math.IsInf(y.Value, 0):
		if y.Bound > 0 {
			y.Bound = math.Inf(1)
		}
	default:
		largest := math.Abs(y.Value) + y.Bound
		y.Bound += 2*(e.Tol.Abs+e.Tol.Rel*largest) + 0x1p-23*largest + 2*smallest
		if e.Tol.Mag > 0 {
			y.Bound += 2 * e.Tol.Mag * magnitude(e, x, b, scalars)
		}
		if !(math.Abs(y.Value)+y.Bound < huge) {
			y.Bound = math.Inf(1)
		}
	}
	return y
}

// usual reports whether an operand lies where an entry's tolerance is promised. Gradients are left alone at infinity: there slopes are
// nearly their limits, which times infinity is something else.
func usual(e *program.Entry, a Estimate) bool {
	low, high := e.Domain[0], e.Domain[1]
	if low == 0 && high == 0 {
		return !math.IsInf(a.Value, 0) || !strings.HasSuffix(e.Name, "_backward")
	}
	return a.Value-a.Bound >= low && a.Value+a.Bound <= high
}

// magnitude is the yardstick of Tol.Mag of operands as far from zero as they may be.
func magnitude(e *program.Entry, x, b []float64, scalars []float32) float64 {
	in := make([]reference.Array, len(x))
	for i, v := range x {
		in[i] = reference.Array{Shape: []int{1}, Data: []float64{math.Copysign(math.Abs(v)+b[i], v)}}
	}
	return reference.Magnitudes(e, in, program.Attr{Scalars: scalars}, []program.Type{program.F32(1)})[0][0]
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
