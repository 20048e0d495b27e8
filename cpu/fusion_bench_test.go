package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// chain is sixteen steps on the value before; the first takes operand 0.
func chain() (x program.Expression, scalars []float32) {
	links := []*program.Entry{catalogue.Scale, catalogue.Neg, catalogue.ReLU, catalogue.Clip}
	for i := range 16 {
		x.Nodes = append(x.Nodes, program.Node{Entry: links[i%4], Args: []int{i}})
		scalars = append(scalars, [][]float32{{0.99}, nil, nil, {-0.5, 0.5}}[i%4]...)
	}
	x.Inputs, x.Results = 1, []int{16}
	return x, scalars
}

// BenchmarkFusion compares steps that hold expressions with separate ones.
func BenchmarkFusion(b *testing.B) {
	node := func(e *program.Entry, args ...int) program.Node { return program.Node{Entry: e, Args: args} }
	links, scalars := chain()
	sum := program.Expression{Inputs: 2, Results: []int{2}, Nodes: []program.Node{node(catalogue.Add, 0, 1)}}
	layer := program.Expression{Inputs: 3, Results: []int{5}, Nodes: []program.Node{node(catalogue.Add, 0, 1), node(catalogue.GELU, 3), node(catalogue.Add, 4, 2)}}
	tree := program.Expression{Inputs: 4, Results: []int{9}, Nodes: []program.Node{node(catalogue.Mul, 0, 1), node(catalogue.Add, 4, 2), node(catalogue.ReLU, 5),
		node(catalogue.Sub, 6, 3), node(catalogue.Abs, 7), node(catalogue.Maximum, 8, 0)}}
	const n = 1 << 20
	for _, c := range []struct {
		name string
		calculation
	}{
		{"chain of 16", calculation{e: program.Fused, attr: program.Attr{Options: links, Scalars: scalars}, in: []program.Type{program.F32(n)}, own: 1}},
		{"broadcasting tree", calculation{e: program.Fused, attr: program.Attr{Options: tree}, own: 4,
			in: []program.Type{program.F32(1024, 1024), program.F32(1024), program.F32(1024, 1), program.F32(1)}}},
		{"residual and rms_norm", calculation{e: catalogue.RMSNorm, attr: program.Attr{Scalars: []float32{1e-6}}, before: sum, preface: 2, own: 1,
			in: []program.Type{program.F32(1024, 1024), program.F32(1024, 1024), program.F32(1024)}}},
		{"matmul, bias, gelu and add", calculation{e: catalogue.MatMul, attr: program.Attr{Options: compute.MatMulOptions{}}, x: layer, own: 2,
			in: []program.Type{program.F32(512, 512), program.F32(512, 512), program.F32(512), program.F32(512, 512)}}},
	} {
		whole, apart := c.programs(b)
		for _, form := range []struct {
			name string
			p    *program.Program
		}{{"apart", apart}, {"fused", whole}} {
			b.Run(c.name+"/"+form.name, func(b *testing.B) {
				d := open(b)
				io := &program.IO{Read: destinations(form.p)}
				for _, t := range c.in {
					io.Host = append(io.Host, random(b, t.Len()))
				}
				x, err := program.ExecutorOf(d).Compile(b.Context(), form.p)
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
