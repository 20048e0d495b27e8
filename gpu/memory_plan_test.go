package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
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
	program := func(read bool) (*plan, *program.IO) {
		p := &program.Program{}
		cache := p.Add(program.F32(shape...), program.FromHost)
		row := p.Add(program.F32(1, 1, 1, 3), program.FromHost)
		at := p.Add(program.Type{DType: compute.Int32, Shape: []int{1}}, program.FromHost)
		y, err := p.Apply(catalogue.KVAppend, program.Attr{}, cache, row, at)
		require.NoError(t, err)
		p.Read = []program.Slot{y}
		io := &program.IO{Host: []any{[]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []float32{-1, -2, -3}, []int32{2}}, Read: []any{make([]float32, 12)}}
		if read {
			p.Read, io.Read = append(p.Read, cache), append(io.Read, make([]float32, 12))
		}
		x, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		defer x.Close()
		require.NoError(t, x.Start(io).Await(ctx))
		return x.(*executable).plan, io
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

// A reshape costs nothing, unless memory of its own is asked for.
func TestReshapesAreViews(t *testing.T) {
	d := open(t)
	shape := func(s ...int) program.Attr { return program.Attr{Options: compute.ReshapeOptions{Shape: s}} }
	for _, own := range []string{"", "retained", "updated"} {
		p := &program.Program{}
		apply := func(e *program.Entry, a program.Attr, in ...program.Slot) program.Slot {
			s, err := p.Apply(e, a, in...)
			require.NoError(t, err)
			return s
		}
		x := p.Add(program.F32(2, 6), program.FromHost)
		a := apply(catalogue.Reshape, shape(1, 4, 1, 3), x)
		b := apply(catalogue.Reshape, shape(12), a)
		y := apply(catalogue.Neg, program.Attr{}, b)
		in := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		io := &program.IO{Host: []any{in}}
		copies := 0
		switch own {
		case "retained":
			p.Keep, copies = []program.Slot{a}, 1
		case "updated":
			row, at := p.Add(program.F32(1, 1, 1, 3), program.FromHost), p.Add(program.Type{DType: compute.Int32, Shape: []int{1}}, program.FromHost)
			p.Read = append(p.Read, apply(catalogue.KVAppend, program.Attr{}, a, row, at))
			io.Host, copies = append(io.Host, []float32{7, 7, 7}, []int32{1}), 2 // the first reshape, and the second, of what changes
		}
		p.Read = append(p.Read, y, b, x)
		for _, s := range p.Read {
			io.Read = append(io.Read, program.MakeSlice(p.Values[s].Type))
		}
		exec, err := program.ExecutorOf(d).Compile(t.Context(), p)
		require.NoError(t, err)
		require.NoError(t, exec.Start(io).Await(ctx))
		last := len(io.Read) - 1
		require.Equal(t, in, io.Read[last])
		require.Equal(t, in, io.Read[last-1])
		require.Equal(t, float32(-11), io.Read[last-2].([]float32)[11])
		n := len(exec.(*executable).actions)
		if own == "updated" {
			require.Equal(t, []float32{0, 1, 2, 7, 7, 7, 6, 7, 8, 9, 10, 11}, io.Read[0])
			n--
		}
		require.Equal(t, 1+copies, n, own)
		for _, k := range io.Keep {
			got := make([]float32, 12)
			require.NoError(t, fetch(ctx, k, got))
			require.Equal(t, in, got)
			require.NoError(t, k.Close())
		}
		require.NoError(t, exec.Close())
	}
}

// What no step computes cannot be used.
func TestUncomputed(t *testing.T) {
	d := open(t)
	p := &program.Program{}
	x := p.Add(program.F32(3), program.FromStep)
	p.Read = []program.Slot{x}
	_, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.ErrorIs(t, err, compute.ErrArgument)
	p.Read = nil
	_, err = p.Apply(catalogue.ReLU, program.Attr{}, x)
	require.NoError(t, err)
	_, err = program.ExecutorOf(d).Compile(t.Context(), p)
	require.ErrorIs(t, err, compute.ErrArgument)
}
