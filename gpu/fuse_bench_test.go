//go:build cgo || js

package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// Steps one by one against one step: a chain of 16 operations on 1M elements, a product with what comes behind it, a norm with what
// comes before it. Data stays on the device.
func BenchmarkFusion(b *testing.B) {
	const n = 1 << 20
	scale := op.Node{Entry: op.Scale}
	clip := op.Node{Entry: op.Clip}
	links, values := []op.Node{scale, {Entry: op.Neg}, {Entry: op.ReLU}, clip}, [][]float32{{0.99}, nil, nil, {-0.5, 0.5}}
	chained, scalars := op.Expression{Inputs: 1, Results: []int{16}}, []float32(nil)
	for i := range 16 {
		chained.Nodes = append(chained.Nodes, op.Node{Entry: links[i%4].Entry, Args: []int{i}})
		scalars = append(scalars, values[i%4]...)
	}
	sum := op.Expression{Inputs: 2, Nodes: []op.Node{{Entry: op.Add, Args: []int{0, 1}}}, Results: []int{2}}
	behind := op.Expression{Inputs: 2, Nodes: []op.Node{{Entry: op.GELU, Args: []int{0}}, {Entry: op.Add, Args: []int{1, 2}}}, Results: []int{3}}
	product, norm := op.Attr{Options: compute.MatMulOptions{}}, op.Attr{Scalars: []float32{1e-5}}
	type adding func(e *op.Entry, a op.Attr, in ...op.Slot) op.Slot
	square := []op.Type{op.F32(1024, 1024), op.F32(1024, 1024), op.F32(1024)}
	thin := []op.Type{op.F32(1024, 64), op.F32(64, 1024), op.F32(1024, 1024)}
	for _, c := range []struct {
		name         string
		in           []op.Type
		apart, fused func(add adding, x []op.Slot) op.Slot
	}{
		{"chain", []op.Type{op.F32(n)}, func(add adding, x []op.Slot) op.Slot {
			y := x[0]
			for i := range 16 {
				y = add(links[i%4].Entry, op.Attr{Scalars: values[i%4]}, y)
			}
			return y
		}, func(add adding, x []op.Slot) op.Slot {
			return add(op.Fused, op.Attr{Options: chained, Scalars: scalars}, x...)
		}},
		{"product", thin, func(add adding, x []op.Slot) op.Slot {
			return add(op.Add, op.Attr{}, add(op.GELU, op.Attr{}, add(op.MatMul, product, x[0], x[1])), x[2])
		}, func(add adding, x []op.Slot) op.Slot {
			return add(op.MatMul, op.Attr{Options: product.Options, Epilogue: behind}, x...)
		}},
		{"norm", square, func(add adding, x []op.Slot) op.Slot {
			return add(op.RMSNorm, norm, add(op.Add, op.Attr{}, x[0], x[1]), x[2])
		}, func(add adding, x []op.Slot) op.Slot {
			return add(op.RMSNorm, op.Attr{Scalars: norm.Scalars, Prologue: sum}, x...)
		}},
	} {
		for _, way := range []string{"apart", "fused"} {
			b.Run("case="+c.name+"/way="+way, func(b *testing.B) {
				d := open(b)
				p, io := &op.Program{}, &op.IO{}
				var x []op.Slot
				for _, t := range c.in {
					x = append(x, p.Add(t, op.FromTensor))
					data := make([]float32, t.Len())
					for i := range data {
						data[i] = float32(i%17) - 8
					}
					tensor, err := d.Upload(ctx, data, t.Shape...)
					require.NoError(b, err)
					io.Tensors = append(io.Tensors, tensor)
				}
				add := func(e *op.Entry, a op.Attr, in ...op.Slot) op.Slot {
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
				p.Keep = []op.Slot{f(add, x)}
				e, err := d.Compile(p)
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
