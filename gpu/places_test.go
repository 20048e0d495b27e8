//go:build cgo || js

package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// A deep network needs no more memory between its layers than a shallow one, and computes what it does with memory of its own for
// every value.
func TestDeepNetworkMemory(t *testing.T) {
	d := open(t)
	r := random(t)
	const layers, rows, width = 64, 4, 32
	input := floats(r, rows*width)
	var weights, biases []compute.Tensor
	for range layers {
		w := floats(r, width*width)
		for i := range w {
			w[i] /= 8
		}
		x, err := d.Upload(ctx, w, width, width)
		require.NoError(t, err)
		y, err := d.Upload(ctx, floats(r, width))
		require.NoError(t, err)
		weights, biases = append(weights, x), append(biases, y)
	}
	run := func(options ...batch.Option) ([]float32, batch.Memory) {
		b := batch.New(d, options...)
		x := b.Upload(input, rows, width)
		for i := range layers {
			x = b.ReLU(b.Add(b.MatMul(x, b.Import(weights[i])), b.Import(biases[i])))
		}
		y := b.Read(x)
		p, err := b.Compile(ctx)
		require.NoError(t, err)
		defer p.Close()
		require.NoError(t, p.Start().Await(ctx))
		return y.Float32s(), p.Memory()
	}
	const activation = 4 * rows * width
	planned, m := run()
	require.LessOrEqual(t, m.Peak, 3*activation)
	require.Equal(t, activation, m.Inputs)
	require.Equal(t, activation, m.Results)
	apart, all := run(batch.WithoutMemoryPlanning())
	require.Greater(t, all.Peak, layers*activation)
	require.Equal(t, apart, planned)
}

// An operand that is updated in place and not used again is not copied; one that is read at the end, is.
func TestUpdatesOfValues(t *testing.T) {
	d := open(t)
	shape := []int{1, 4, 1, 3}
	program := func(read bool) (*plan, *op.IO) {
		p := &op.Program{}
		cache := p.Add(op.F32(shape...), op.FromHost)
		row := p.Add(op.F32(1, 1, 1, 3), op.FromHost)
		at := p.Add(op.Type{DType: compute.Int32, Shape: []int{1}}, op.FromHost)
		y, err := p.Apply(op.KVAppend, op.Attr{}, cache, row, at)
		require.NoError(t, err)
		p.Read = []op.Slot{y}
		io := &op.IO{Host: []any{[]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []float32{-1, -2, -3}, []int32{2}}, Read: []any{make([]float32, 12)}}
		if read {
			p.Read, io.Read = append(p.Read, cache), append(io.Read, make([]float32, 12))
		}
		x, err := d.Compile(p)
		require.NoError(t, err)
		defer x.Close()
		require.NoError(t, x.Start(io).Await(ctx))
		return x.(*Executable).plan, io
	}
	copies := func(p *plan) (n int) {
		for i := range p.actions {
			if p.actions[i].pipeline == nil {
				n++
			}
		}
		return n
	}
	want := []float32{0, 1, 2, 3, 4, 5, -1, -2, -3, 9, 10, 11}
	p, io := program(false)
	require.Zero(t, copies(p))
	require.Equal(t, want, io.Read[0])
	p, io = program(true)
	require.Equal(t, 1, copies(p))
	require.Equal(t, want, io.Read[0])
	require.Equal(t, io.Host[0], io.Read[1])
}

// What no step computes cannot be used.
func TestUncomputed(t *testing.T) {
	d := open(t)
	p := &op.Program{}
	x := p.Add(op.F32(3), op.FromStep)
	p.Read = []op.Slot{x}
	_, err := d.Compile(p)
	require.ErrorIs(t, err, compute.ErrArgument)
	p.Read = nil
	_, err = p.Apply(op.ReLU, op.Attr{}, x)
	require.NoError(t, err)
	_, err = d.Compile(p)
	require.ErrorIs(t, err, compute.ErrArgument)
}
