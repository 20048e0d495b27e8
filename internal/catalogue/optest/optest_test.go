package optest_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/optest"
	"github.com/wavelane/wavelane/internal/program"
)

func random(t *testing.T) *rand.Rand {
	return testseed.Rand(t)
}

func expression(r *rand.Rand, inputs, nodes int) (x program.Expression, scalars []float32) {
	var entries []*program.Entry
	for _, e := range catalogue.All() {
		if e.Class.Elementwise() {
			entries = append(entries, e)
		}
	}
	x.Inputs = inputs
	for i := range nodes {
		n := program.Node{Entry: entries[r.IntN(len(entries))]}
		for range n.Entry.Inputs {
			n.Args = append(n.Args, r.IntN(inputs+i))
		}
		for _, s := range n.Entry.Scalars {
			scalars = append(scalars, s.Test[r.IntN(len(s.Test))])
		}
		x.Nodes = append(x.Nodes, n)
	}
	x.Results = []int{inputs + nodes - 1}
	return x, scalars
}

// rounded is a device that computes in float64, rounds each step to float32, and flushes subnormal numbers at random.
func rounded(r *rand.Rand, x *program.Expression, in []float64, scalars []float32) float32 {
	flush := r.IntN(2) == 0
	number := func(v float64) float64 {
		y := float64(float32(v))
		if flush && math.Abs(y) < 0x1p-126 {
			y = 0
		}
		return y
	}
	var all []float64
	for _, v := range in {
		all = append(all, number(v))
	}
	for _, n := range x.Nodes {
		var args, p []float64
		for _, a := range n.Args {
			args = append(args, all[a])
		}
		for range n.Entry.Scalars {
			p, scalars = append(p, float64(scalars[0])), scalars[1:]
		}
		all = append(all, number(n.Entry.F(args, p)))
	}
	return float32(all[x.Results[0]])
}

// The bounds hold on a device that only rounds, are claimed for most elements, and find one that is off by a thousandth. What is
// claimed of the elements of an expression varies: these are many.
func TestExpression(t *testing.T) {
	r, known, all, off, found := random(t), 0, 0, 0, 0
	special := []float32{0, 1, -1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-41, 1e30, math.MaxFloat32}
	for i := range 3000 {
		x, scalars := expression(r, 1+i%4, 1+r.IntN(8))
		for range 8 {
			in := make([]float64, x.Inputs)
			for k := range in {
				if in[k] = float64(float32(2 * r.NormFloat64())); i%2 == 1 && r.IntN(8) == 0 {
					in[k] = float64(special[r.IntN(len(special))])
				}
			}
			y := optest.Expression(&x, in, scalars)[0]
			got := rounded(r, &x, in, scalars)
			require.True(t, y.Accepts(got), "%v of %v, scalars %v: %v, want %+v", &x, in, scalars, got, y)
			if all++; !y.Known() {
				continue
			}
			known++
			if v := math.Abs(y.Value); v > 0.01 && v < 1e6 {
				if off++; !y.Accepts(got * 1.001) {
					found++
				}
			}
		}
	}
	t.Logf("%d of %d elements known, %d of %d mistakes found", known, all, found, off)
	require.Greater(t, 2*known, all, "of most elements too little is known")
	require.Greater(t, 2*found, off, "the bounds are too wide to find mistakes")
}
