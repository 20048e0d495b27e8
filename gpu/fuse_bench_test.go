package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Steps one by one against one step: a chain of 16 operations on 1M elements, a product with an epilogue, a norm with a
// prologue. Data stays on the device.
func BenchmarkFusion(b *testing.B) {
	const n = 1 << 20
	scale := program.Node{Entry: catalogue.Scale}
	clip := program.Node{Entry: catalogue.Clip}
	links, values := []program.Node{scale, {Entry: catalogue.Neg}, {Entry: catalogue.ReLU}, clip}, [][]float32{{0.99}, nil, nil, {-0.5, 0.5}}
	chained, scalars := program.Expression{Inputs: 1, Results: []int{16}}, []float32(nil)
	for i := range 16 {
		chained.Nodes = append(chained.Nodes, program.Node{Entry: links[i%4].Entry, Args: []int{i}})
		scalars = append(scalars, values[i%4]...)
	}
	sum := program.Expression{Inputs: 2, Nodes: []program.Node{{Entry: catalogue.Add, Args: []int{0, 1}}}, Results: []int{2}}
	epilogue := program.Expression{Inputs: 2, Nodes: []program.Node{{Entry: catalogue.GELU, Args: []int{0}}, {Entry: catalogue.Add, Args: []int{1, 2}}}, Results: []int{3}}
	product, norm := program.Attr{Options: compute.MatMulOptions{}}, program.Attr{Scalars: []float32{1e-5}}
	type adding func(e *program.Entry, a program.Attr, in ...program.Slot) program.Slot
	square := []program.Type{program.F32(1024, 1024), program.F32(1024, 1024), program.F32(1024)}
	thin := []program.Type{program.F32(1024, 64), program.F32(64, 1024), program.F32(1024, 1024)}
	for _, c := range []struct {
		name         string
		in           []program.Type
		apart, fused func(add adding, x []program.Slot) program.Slot
	}{
		{"chain", []program.Type{program.F32(n)}, func(add adding, x []program.Slot) program.Slot {
			y := x[0]
			for i := range 16 {
				y = add(links[i%4].Entry, program.Attr{Scalars: values[i%4]}, y)
			}
			return y
		}, func(add adding, x []program.Slot) program.Slot {
			return add(program.Fused, program.Attr{Options: chained, Scalars: scalars}, x...)
		}},
		{"product", thin, func(add adding, x []program.Slot) program.Slot {
			return add(catalogue.Add, program.Attr{}, add(catalogue.GELU, program.Attr{}, add(catalogue.MatMul, product, x[0], x[1])), x[2])
		}, func(add adding, x []program.Slot) program.Slot {
			return add(catalogue.MatMul, program.Attr{Options: product.Options, Epilogue: epilogue}, x...)
		}},
		{"norm", square, func(add adding, x []program.Slot) program.Slot {
			return add(catalogue.RMSNorm, norm, add(catalogue.Add, program.Attr{}, x[0], x[1]), x[2])
		}, func(add adding, x []program.Slot) program.Slot {
			return add(catalogue.RMSNorm, program.Attr{Scalars: norm.Scalars, Prologue: sum}, x...)
		}},
	} {
		for _, way := range []string{"apart", "fused"} {
			b.Run("case="+c.name+"/way="+way, func(b *testing.B) {
				d := open(b)
				p, io := &program.Program{}, &program.IO{}
				var x []program.Slot
				for _, t := range c.in {
					x = append(x, p.Add(t, program.FromTensor))
					data := make([]float32, t.Len())
					for i := range data {
						data[i] = float32(i%17) - 8
					}
					tensor, err := d.Upload(ctx, data, t.Shape...)
					require.NoError(b, err)
					io.Tensors = append(io.Tensors, tensor)
				}
				add := func(e *program.Entry, a program.Attr, in ...program.Slot) program.Slot {
					if e.Options != nil && a.Options == nil {
						a.Options = e.Options
					}
					y, err := p.Apply(e, a, in...)
					require.NoError(b, err)
					return y
				}
				f := c.apart
				if way == "fused" {
					f = c.fused
				}
				p.Keep = []program.Slot{f(add, x)}
				e, err := program.ExecutorOf(d).Compile(b.Context(), p)
				require.NoError(b, err)
				defer e.Close()
				run := func() {
					io.Keep = nil
					require.NoError(b, e.Start(io).Await(ctx))
					require.NoError(b, io.Keep[0].Close())
				}
				run()
				for b.Loop() {
					run()
				}
			})
		}
	}
}
