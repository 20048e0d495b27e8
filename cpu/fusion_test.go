package cpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

var fusedShapes = [][]int{{}, {1}, {0}, {7}, {3, 0}, {1000}, {5, 7}, {33, 65}, {3, 1100}, {2, 3, 4, 5}, {7, 1, 130}, {70, 3}, {2, 5, 700}, {20_011}, {3, 40, 50, 2}}

// A step that computes an expression gives the bits of a step for each of its nodes, wherever results lie.
func TestFusedIsExact(t *testing.T) {
	r := newExpressions(t)
	repeated(t, 200, func(t *testing.T, d *cpu.Device) {
		r.special = r.IntN(2) == 0
		shape := fusedShapes[r.IntN(len(fusedShapes))]
		x, scalars := r.expression(1+r.IntN(4), 1+r.IntN(12), 1+r.IntN(3))
		c := calculation{e: program.Fused, attr: program.Attr{Options: x, Scalars: scalars}, own: x.Inputs}
		io := &program.IO{}
		for k := range x.Inputs {
			s := program.F32(shape...)
			if k > 0 {
				s = program.F32(r.operand(shape)...)
			}
			c.in = append(c.in, s)
			io.Host = append(io.Host, r.data(s.Len()))
		}
		whole, apart := c.programs(t)
		io.Read = destinations(apart)
		want := results(t, d, apart, io)
		for k, s := range apart.Read {
			want[k] = expanded(want[k], apart.Values[s].Shape, shape)
		}
		io.Read = destinations(whole)
		requireBits(t, want, results(t, d, whole, io), "%v of %v", &x, c.in)

		// In place: results take the memory of operands, in any order.
		at := r.Perm(len(c.in))
		for k := range io.Read {
			if k < len(at) && program.EqualShape(c.in[at[k]].Shape, shape) {
				io.Read[k] = io.Host[at[k]]
			}
		}
		requireBits(t, want, results(t, d, whole, io), "%v of %v in place", &x, c.in)
	})
}

// expanded repeats elements so that x has a larger shape.
func expanded(x []float32, shape, to []int) []float32 {
	y := make([]float32, 0, program.Len(to))
	strides := program.BroadcastStrides(shape, to)
	program.Walk(to, func(_ int, index []int) { y = append(y, x[program.Dot(index, strides)]) })
	return y
}

// Expressions of entries without cancellation are near the reference; the yardstick is the largest value on the way.
func TestFusedAgainstTheReference(t *testing.T) {
	r := newExpressions(t)
	d := open(t)
	for range 50 {
		shape := fusedShapes[r.IntN(len(fusedShapes))]
		x, scalars := r.expression(1+r.IntN(3), 1+r.IntN(6), 1)
		if slices.ContainsFunc(x.Nodes, func(n program.Node) bool { return !slices.Contains(smooth, n.Entry.Name) }) {
			continue
		}
		p, io := &program.Program{}, &program.IO{}
		var in []program.Slot
		var arrays []reference.Array
		for range x.Inputs {
			s := program.F32(shape...)
			data := r.data(s.Len())
			in = append(in, p.Add(s, program.FromHost))
			io.Host = append(io.Host, data)
			wide := make([]float64, len(data))
			for i, v := range data {
				wide[i] = float64(v)
			}
			arrays = append(arrays, reference.Array{Shape: shape, Data: wide})
		}
		y, err := p.Apply(program.Fused, program.Attr{Options: x, Scalars: scalars}, in...)
		require.NoError(t, err)
		p.Read, io.Read = []program.Slot{y}, []any{make([]float32, program.Len(shape))}
		got := results(t, d, p, io)[0]
		all := x
		all.Results = nil
		for v := range x.Inputs + len(x.Nodes) {
			all.Results = append(all.Results, v)
		}
		types, err := program.Fused.Check(p.Types(in), program.Attr{Options: all, Scalars: scalars})
		require.NoError(t, err)
		values := reference.Of(program.Fused, arrays, program.Attr{Options: all, Scalars: scalars}, types)
		for i, g := range got {
			most := 1.0
			for _, v := range values {
				most = max(most, math.Abs(v.Data[i]))
			}
			require.InDelta(t, values[len(values)-1].Data[i], g, 1e-4*most, "%v, element %d of %v", &x, i, shape)
		}
	}
}

var smooth = []string{"neg", "abs", "relu", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "gelu", "gelu_erf", "silu", "hardswish", "mish", "softplus", "clip",
	"scale", "add", "sub", "mul", "maximum", "minimum", "fma", "lerp", "sin", "cos"}

// What the device agrees to fuse are steps whose operations are of the result's size.
func TestFuses(t *testing.T) {
	d := open(t)
	chain := program.Expression{Inputs: 2, Results: []int{3}, Nodes: []program.Node{{Entry: catalogue.Tanh, Args: []int{1}}, {Entry: catalogue.Add, Args: []int{0, 2}}}}
	fuses := func(e *program.Entry, a program.Attr, in ...program.Type) bool {
		out, err := e.Check(in, a)
		require.NoError(t, err)
		return program.ExecutorOf(d).Fuses(&program.Step{Entry: e, Attr: a}, in, out)
	}
	whole, row := program.F32(1000, 1000), program.F32(1000)
	require.True(t, fuses(program.Fused, program.Attr{Options: chain}, whole, whole))
	require.False(t, fuses(program.Fused, program.Attr{Options: chain}, whole, row), "a thousand times the tanh of a row")
	single := chain
	single.Nodes, single.Results = chain.Nodes[:1], []int{2}
	require.False(t, fuses(program.Fused, program.Attr{Options: single}, whole, whole), "one operation")
	require.True(t, fuses(catalogue.Softmax, program.Attr{Prologue: chain}, whole, whole))
	require.True(t, fuses(catalogue.Sum, program.Attr{Options: compute.LastAxis, Epilogue: chain}, whole, row))
	require.True(t, fuses(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}, Epilogue: chain}, whole, whole, whole))
	require.False(t, fuses(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}}, whole, whole), "no expression")
	pool := program.Attr{Options: compute.PoolOptions{Size: [2]int{1, 1}}, Epilogue: chain}
	require.False(t, fuses(catalogue.MaxPool2D, pool, whole, whole), "a separate pass as good")
}
