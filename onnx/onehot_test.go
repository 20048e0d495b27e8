package onnx_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/onnx"
)

// oneHot is a model of the product of one-hot rows with a matrix; hot is the name of the rows.
type oneHot struct {
	name  string
	nodes []message // from the indices "x" to the rows "hot"
	extra []message // weights of those
	rank  int       // of x
	taken bool      // rows of the matrix are taken
	w     func(w []float32)
}

const depth, columns = 5, 3

// A product of one-hot rows with a matrix takes rows where that is the same, and only there: models that look alike have the results
// that they have when the rows are an output, too, and so have to be computed.
func TestOneHotProduct(t *testing.T) {
	toFloat := node("float", "Cast", []string{"bool"}, []string{"hot"}, intAttribute("to", float32Type))
	equal := func(a, b string) []message {
		return []message{node("equal", "Equal", []string{a, b}, []string{"bool"}), toFloat}
	}
	unsqueeze := node("column", "Unsqueeze", []string{"x", "last"}, []string{"column"})
	last := ints("last", []int64{-1}, 1)
	numbers := func(n []int64, dims ...int64) message { return ints("numbers", n, dims...) }
	expand := node("wide", "Expand", []string{"column", "shape"}, []string{"wide"})
	hot := func(attributes ...message) message {
		return node("oneHot", "OneHot", []string{"x", "depth", "values"}, []string{"hot"}, attributes...)
	}
	upTo := []int64{0, 1, 2, 3, 4}
	number := func(w []float32) {}
	for _, m := range []oneHot{
		{"equal", append([]message{unsqueeze}, equal("column", "numbers")...), []message{last, numbers(upTo, depth)}, 2, true, number},
		{"numbers first", append([]message{unsqueeze}, equal("numbers", "column")...), []message{last, numbers(upTo, 1, 1, depth)}, 2, true, number},
		{"more axes of numbers", append([]message{unsqueeze}, equal("column", "numbers")...), []message{last, numbers(upTo, 1, 1, 1, depth)}, 2, true, number},
		{"other numbers", append([]message{unsqueeze}, equal("column", "numbers")...), []message{last, numbers([]int64{-2, -1, 0, 1, 2}, depth)}, 1, true, number},
		{"expanded", append([]message{unsqueeze, expand}, equal("wide", "numbers")...),
			[]message{last, numbers(upTo, 1, depth), ints("shape", []int64{1, depth}, 2)}, 1, true, number},
		{"numbers expanded", append([]message{unsqueeze, node("wide", "Expand", []string{"numbers", "shape"}, []string{"wide"})}, equal("column", "wide")...),
			[]message{last, numbers(upTo, 1, depth), ints("shape", []int64{1, 1, depth}, 3)}, 2, true, number},
		{"OneHot", []message{hot()}, []message{ints("depth", []int64{depth}), floats("values", []float32{0, 1}, 2)}, 2, true, number},
		{"OneHot of integers", []message{node("oneHot", "OneHot", []string{"x", "depth", "values"}, []string{"bool"}, intAttribute("axis", 1)), toFloat},
			[]message{ints("depth", []int64{depth}, 1), ints("values", []int64{0, 1}, 2)}, 1, true, number},

		{"infinite", append([]message{unsqueeze}, equal("column", "numbers")...), []message{last, numbers(upTo, depth)}, 2, false,
			func(w []float32) { w[4] = float32(math.Inf(1)) }},
		{"not a number", []message{hot()}, []message{ints("depth", []int64{depth}), floats("values", []float32{0, 1}, 2)}, 2, false,
			func(w []float32) { w[7] = float32(math.NaN()) }},
		{"numbers in disorder", append([]message{unsqueeze}, equal("column", "numbers")...), []message{last, numbers([]int64{0, 2, 1, 3, 3}, depth)}, 2, false, number},
		{"indices repeated", append([]message{unsqueeze, expand}, equal("wide", "numbers")...),
			[]message{last, numbers(upTo, depth), ints("shape", []int64{2, 1, depth}, 3)}, 1, false, number},
		{"no column", equal("x", "numbers"), []message{numbers(upTo, depth)}, 1, false, number},
		{"another value", []message{hot()}, []message{ints("depth", []int64{depth}), floats("values", []float32{0, 2}, 2)}, 1, false, number},
		{"first axis", []message{hot(intAttribute("axis", 0))}, []message{ints("depth", []int64{depth}), floats("values", []float32{0, 1}, 2)}, 1, false, number},
		{"through a byte", []message{unsqueeze, node("equal", "Equal", []string{"column", "numbers"}, []string{"bool"}),
			node("byte", "Cast", []string{"bool"}, []string{"byte"}, intAttribute("to", 2)), node("float", "Cast", []string{"byte"}, []string{"hot"}, intAttribute("to", float32Type))},
			[]message{last, numbers(upTo, depth)}, 1, true, number},
	} {
		t.Run(m.name, func(t *testing.T) {
			random := testseed.Rand(t)
			w := make([]float32, depth*columns)
			for i := range w {
				w[i] = float32(random.NormFloat64())
			}
			m.w(w)
			dims := slices.Repeat([]int64{-1}, m.rank)
			g := graph{nodes: append(m.nodes, node("product", "MatMul", []string{"hot", "w"}, []string{"y"})),
				weights: append(m.extra, floats("w", w, depth, columns)),
				inputs:  []message{value("x", int64Type, dims...)}, outputs: []message{value("y", float32Type)}}
			require.Equal(t, 1, read(t, g).Operators()["MatMul"])
			short := open(t, g)
			g.outputs = append(g.outputs, value("hot", float32Type))
			long := open(t, g)
			for _, n := range []int{5, 1, 5} { // a walk and a replay
				if m.name == "no column" || m.name == "first axis" {
					n = depth
				}
				shape := slices.Repeat([]int{n}, m.rank)
				x := make([]int64, onnx.Tensor{Shape: shape}.Len())
				for i := range x {
					x[i] = random.Int64N(2*depth+4) - depth - 2
				}
				x[0] = []int64{0, math.MinInt64, math.MaxInt64}[random.IntN(3)]
				in := map[string]onnx.Tensor{"x": onnx.Of(x, shape...)}
				want, err := long.Run(t.Context(), in)
				require.NoError(t, err)
				got, err := short.Run(t.Context(), in)
				require.NoError(t, err)
				require.Equal(t, want["y"].Shape, got["y"].Shape)
				a, b := want["y"].Data.([]float32), got["y"].Data.([]float32)
				for i := range a {
					require.True(t, a[i] == b[i] || a[i] != a[i] && b[i] != b[i], "element %d is %g, not %g", i, b[i], a[i])
				}
			}
			for _, s := range []*onnx.Session{short, long} {
				if m.taken && s == short {
					require.Contains(t, s.String(), "gather")
					require.NotContains(t, s.String(), "matmul")
				} else {
					require.NotContains(t, s.String(), "gather")
				}
			}
		})
	}
}
