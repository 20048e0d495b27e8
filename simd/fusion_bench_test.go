package simd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// chain is sixteen steps on the value before; the first takes operand 0.
func chain() (x op.Expression, scalars []float32) {
	links := []*op.Entry{op.Scale, op.Neg, op.ReLU, op.Clip}
	for i := range 16 {
		x.Nodes = append(x.Nodes, op.Node{Entry: links[i%4], Args: []int{i}})
		scalars = append(scalars, [][]float32{{0.99}, nil, nil, {-0.5, 0.5}}[i%4]...)
	}
	x.Inputs, x.Results = 1, []int{16}
	return x, scalars
}

// BenchmarkFusion compares steps that hold expressions with separate ones.
func BenchmarkFusion(b *testing.B) {
	node := func(e *op.Entry, args ...int) op.Node { return op.Node{Entry: e, Args: args} }
	links, scalars := chain()
	sum := op.Expression{Inputs: 2, Results: []int{2}, Nodes: []op.Node{node(op.Add, 0, 1)}}
	layer := op.Expression{Inputs: 3, Results: []int{5}, Nodes: []op.Node{node(op.Add, 0, 1), node(op.GELU, 3), node(op.Add, 4, 2)}}
	tree := op.Expression{Inputs: 4, Results: []int{9}, Nodes: []op.Node{node(op.Mul, 0, 1), node(op.Add, 4, 2), node(op.ReLU, 5),
		node(op.Sub, 6, 3), node(op.Abs, 7), node(op.Maximum, 8, 0)}}
	const n = 1 << 20
	for _, c := range []struct {
		name string
		calculation
	}{
		{"chain of 16", calculation{e: op.Fused, attr: op.Attr{Options: links, Scalars: scalars}, in: []op.Type{op.F32(n)}, own: 1}},
		{"broadcasting tree", calculation{e: op.Fused, attr: op.Attr{Options: tree}, own: 4,
			in: []op.Type{op.F32(1024, 1024), op.F32(1024), op.F32(1024, 1), op.F32(1)}}},
		{"residual and rms_norm", calculation{e: op.RMSNorm, attr: op.Attr{Scalars: []float32{1e-6}}, before: sum, preface: 2, own: 1,
			in: []op.Type{op.F32(1024, 1024), op.F32(1024, 1024), op.F32(1024)}}},
		{"matmul, bias, gelu and add", calculation{e: op.MatMul, attr: op.Attr{Options: compute.MatMulOptions{}}, x: layer, own: 2,
			in: []op.Type{op.F32(512, 512), op.F32(512, 512), op.F32(512), op.F32(512, 512)}}},
	} {
		whole, apart := c.programs(b)
		for _, form := range []struct {
			name string
			p    *op.Program
		}{{"apart", apart}, {"fused", whole}} {
			b.Run(c.name+"/"+form.name, func(b *testing.B) {
				d := open(b)
				io := &op.IO{Read: destinations(form.p)}
				for _, t := range c.in {
					io.Host = append(io.Host, random(b, t.Len()))
				}
				x, err := d.Compile(form.p)
				require.NoError(b, err)
				require.NoError(b, wait(x.Start(io)))
				b.ReportAllocs()
				for b.Loop() {
					if err := wait(x.Start(io)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
