package catalogue_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// gradient says which entry gives the gradients of another, so that they are compared with finite differences.
type gradient struct {
	forward, backward string
	in                []program.Type                                 // operands of forward
	attr, back        program.Attr                                   // of forward and backward
	wrt               []int                                          // the operand of forward whose gradient each result of backward is; nil means 0, 1, …
	prepare           func(rng *rand.Rand, operand int, x []float64) // changes random operands, which lie in ±2
	// operands are those of backward from those of forward, its results and the gradients of these; nil means the operands of
	// forward, then the gradients.
	operands func(in, out, d []reference.Array) []reference.Array
}

// gradients has a row or more for every entry whose name ends in _backward.
var gradients = []gradient{
	{forward: "relu", backward: "relu_backward", in: []program.Type{program.F32(3, 7)}, prepare: awayFrom0},
	{forward: "gelu", backward: "gelu_backward", in: []program.Type{program.F32(40)}},
	{forward: "gelu_erf", backward: "gelu_erf_backward", in: []program.Type{program.F32(40)}},
	{forward: "silu", backward: "silu_backward", in: []program.Type{program.F32(40)}},
	{forward: "swiglu", backward: "swiglu_backward", in: []program.Type{program.F32(3, 7), program.F32(3, 7)}},
	{forward: "softmax", backward: "softmax_backward", in: []program.Type{program.F32(3, 7)},
		operands: func(_, out, d []reference.Array) []reference.Array { return append(out, d...) }},
	{forward: "embedding", backward: "embedding_backward", in: []program.Type{program.F32(4, 3), {DType: compute.Int32, Shape: []int{6}}}, wrt: []int{0},
		prepare: func(rng *rand.Rand, operand int, x []float64) {
			for i := range x {
				if operand == 1 {
					x[i] = float64(rng.IntN(4))
				}
			}
		}},
	{forward: "rope", backward: "rope_backward", in: []program.Type{program.F32(2, 3, 2, 8), {DType: compute.Int32, Shape: []int{3}}}, wrt: []int{0},
		attr: program.Attr{Options: compute.RopeOptions{Dims: 6}}, back: program.Attr{Options: compute.RopeOptions{Dims: 6}},
		prepare: func(rng *rand.Rand, operand int, x []float64) {
			if operand == 1 {
				x[0], x[1], x[2] = 0, 1, float64(rng.IntN(1000))
			}
		},
		operands: func(in, _, d []reference.Array) []reference.Array { return []reference.Array{d[0], in[1]} }},
	{forward: "rms_norm", backward: "rms_norm_backward", in: []program.Type{program.F32(3, 9), program.F32(9)},
		attr: program.Attr{Scalars: []float32{1e-3}}, back: program.Attr{Scalars: []float32{1e-3}}},
	{forward: "layer_norm", backward: "layer_norm_backward", in: []program.Type{program.F32(3, 9), program.F32(9), program.F32(9)},
		attr: program.Attr{Scalars: []float32{1e-3}}, back: program.Attr{Scalars: []float32{1e-3}}},
	attentionGradient(compute.AttentionOptions{}, 1, 3, 4, 2, 2, 5),
	attentionGradient(compute.AttentionOptions{Causal: true, SoftCap: 1.5}, 2, 5, 4, 4, 2, 3, 4, 3),
	attentionGradient(compute.AttentionOptions{Window: 2, Scale: 0.7}, 2, 4, 3, 2, 1, 3, 8, 0),
	scoreGradient(compute.CrossEntropyOptions{}, 5, 7),
	scoreGradient(compute.CrossEntropyOptions{LabelSmoothing: 0.2}, 5, 7),
	scoreGradient(compute.CrossEntropyOptions{LabelSmoothing: 0.1, Shift: true, Ignore: true, IgnoreIndex: 2}, 2, 6, 4),
}

// awayFrom0 keeps differences from straddling a corner.
func awayFrom0(_ *rand.Rand, _ int, x []float64) {
	for i, v := range x {
		if math.Abs(v) < 0.01 {
			x[i] = 0.5
		}
	}
}

// attentionGradient takes what attention_lse gives from its reference.
func attentionGradient(o compute.AttentionOptions, batch, n, keys, heads, kvheads, d int, lengths ...float64) gradient {
	q, k, a := program.F32(batch, n, heads, d), program.F32(batch, keys, kvheads, d), program.Attr{Options: o}
	g := gradient{forward: "attention", backward: "attention_backward", attr: a, back: a, in: []program.Type{q, k, k}}
	if lengths != nil {
		g.in = append(g.in, program.Type{DType: compute.Int32, Shape: []int{batch}})
	}
	g.prepare = func(_ *rand.Rand, operand int, x []float64) {
		if operand == 3 {
			copy(x, lengths)
		}
	}
	g.operands = func(in, _, d []reference.Array) []reference.Array {
		out := reference.Of(catalogue.AttentionLSE, in, a, []program.Type{q, program.F32(batch, heads, n)})
		return slices.Concat(in[:3], out, d, in[3:])
	}
	return g
}

func scoreGradient(o compute.CrossEntropyOptions, shape ...int) gradient {
	classes := shape[len(shape)-1]
	return gradient{forward: "cross_entropy", backward: "cross_entropy_backward", attr: program.Attr{Options: o}, back: program.Attr{Options: o},
		in:  []program.Type{program.F32(shape...), {DType: compute.Int32, Shape: shape[:len(shape)-1]}},
		wrt: []int{0}, prepare: func(rng *rand.Rand, operand int, x []float64) {
			for i := range x {
				if operand == 1 {
					x[i] = float64(rng.IntN(classes))
				}
			}
		}}
}

// TestGradients compares every gradient with central differences of the entry that it is the gradient of.
func TestGradients(t *testing.T) {
	rows := map[string]bool{}
	for _, g := range gradients {
		rows[g.backward] = true
		t.Run(g.backward, func(t *testing.T) { g.check(t) })
	}
	for _, e := range catalogue.All() {
		if strings.HasSuffix(e.Name, "_backward") {
			require.True(t, rows[e.Name], "%s has no row in gradients", e.Name)
		}
	}
}

func (g *gradient) check(t *testing.T) {
	forward, backward := catalogue.Lookup(g.forward), catalogue.Lookup(g.backward)
	rng := testseed.Rand(t)
	in := make([]reference.Array, len(g.in))
	for i, typ := range g.in {
		x := randomArray(rng, typ)
		if g.prepare != nil {
			g.prepare(rng, i, x.Data)
		}
		in[i] = x
	}
	out, err := forward.Check(g.in, g.attr)
	require.NoError(t, err)
	y := reference.Of(forward, in, g.attr, out)
	d := make([]reference.Array, len(y))
	for i, typ := range out {
		d[i] = randomArray(rng, typ)
	}
	operands := append(append([]reference.Array{}, in...), d...)
	if g.operands != nil {
		operands = g.operands(in, y, d)
	}
	types := make([]program.Type, len(operands))
	for i, x := range operands {
		types[i] = program.Type{DType: firstType(backward.Inputs[i]), Shape: x.Shape}
	}
	results, err := backward.Check(types, g.back)
	require.NoError(t, err)
	for i, got := range reference.Of(backward, operands, g.back, results) {
		k := i
		if g.wrt != nil {
			k = g.wrt[i]
		}
		require.Equal(t, in[k].Shape, got.Shape)
		for j := range in[k].Data {
			want := difference(in[k].Data, j, func() (loss float64) {
				for r, y := range reference.Of(forward, in, g.attr, out) {
					for e, v := range y.Data {
						loss += d[r].Data[e] * v
					}
				}
				return loss
			})
			require.InDelta(t, want, got.Data[j], 1e-6*(1+math.Abs(want)), "result %d, element %d", i, j)
		}
	}
}

// difference is the derivative of f with respect to x[i], by central differences.
func difference(x []float64, i int, f func() float64) float64 {
	const h = 1e-5
	v := x[i]
	x[i] = v + h
	up := f()
	x[i] = v - h
	down := f()
	x[i] = v
	return (up - down) / (2 * h)
}

func randomArray(rng *rand.Rand, t program.Type) reference.Array {
	x := reference.Array{Shape: t.Shape, Data: make([]float64, t.Len())}
	for i := range x.Data {
		x.Data[i] = 4*rng.Float64() - 2
	}
	return x
}

func firstType(in program.Input) compute.DType {
	if in.Types == nil {
		return compute.Float32
	}
	return in.Types[0]
}
