package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Replays make bind groups only for what has changed, and no buffers.
func TestReplayBindsWhatChanged(t *testing.T) {
	d, f := openFaulty(t)
	tensor := func(x ...float32) compute.Tensor {
		y, err := d.Upload(ctx, x)
		require.NoError(t, err)
		return y
	}
	p := &program.Program{}
	apply := func(e *program.Entry, in ...program.Slot) program.Slot {
		s, err := p.Apply(e, program.Attr{}, in...)
		require.NoError(t, err)
		return s
	}
	x, w := p.Add(program.F32(3), program.FromHost), p.Add(program.F32(3), program.FromTensor)
	y := apply(catalogue.Mul, apply(catalogue.Neg, apply(catalogue.Add, x, w)), x)
	p.Read, p.Keep = []program.Slot{y}, []program.Slot{apply(catalogue.Neg, y)}
	exec, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	a, b := tensor(1, 2, 3), tensor(10, 20, 30)
	run := func(w compute.Tensor, want ...float32) map[string]int {
		f.reset()
		io := &program.IO{Host: []any{[]float32{1, -1, 2}}, Tensors: []compute.Tensor{w}, Read: []any{make([]float32, 3)}}
		require.NoError(t, exec.Start(io).Await(ctx))
		require.Equal(t, want, io.Read[0])
		require.NoError(t, io.Keep[0].Close())
		return f.calls
	}
	for i := range 4 {
		calls := run(a, -2, 1, -10)
		switch i {
		case 0:
			require.Equal(t, 4, calls["newGroup"])
		default:
			require.Zero(t, calls["newGroup"], "the kept result's memory serves again")
			require.Zero(t, calls["newBuffer storage"]+calls["newBuffer upload"]+calls["newBuffer readback"]+calls["newBuffer uniform"])
		}
	}
	for range 2 {
		require.Equal(t, 1, run(b, -11, 19, -64)["newGroup"], "of the step that has the tensor")
		require.Zero(t, run(b, -11, 19, -64)["newGroup"])
		require.Equal(t, 1, run(a, -2, 1, -10)["newGroup"])
	}
	require.NoError(t, exec.Close())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	idle(t, d)
}

// Scalars that vary are uploaded when they have changed, and nothing else of the parameters. Overlapping runs have their own.
func TestReplayUploadsWhatVaries(t *testing.T) {
	d, f := openFaulty(t)
	p := &program.Program{Variables: 3}
	x := p.Add(program.F32(3), program.FromHost)
	apply := func(e *program.Entry, a program.Attr, in ...program.Slot) program.Slot {
		s, err := p.Apply(e, a, in...)
		require.NoError(t, err)
		return s
	}
	rate := apply(catalogue.Fill, program.Attr{Scalars: []float32{2}, Vary: []int{3}, Options: compute.FillOptions{}})
	y := apply(catalogue.Clip, program.Attr{Scalars: []float32{-1, 3}, Vary: []int{2, 1}}, apply(catalogue.Mul, program.Attr{}, x, rate))
	p.Read = []program.Slot{y}
	exec, err := program.ExecutorOf(d).Compile(t.Context(), p)
	require.NoError(t, err)
	start := func(scalars ...float32) (*compute.Future, *program.IO) {
		io := &program.IO{Host: []any{[]float32{-2, 1, 7}}, Read: []any{make([]float32, 3)}, Scalars: scalars}
		future := exec.Start(io)
		clear(scalars) // the run has its own
		return future, io
	}
	const input, block = 12, uniformSlot
	for _, c := range []struct {
		scalars, want []float32
		written       []int
	}{
		{nil, []float32{-1, 2, 3}, []int{input, 3 * block}},
		{nil, []float32{-1, 2, 3}, []int{input}},
		{[]float32{3, -1, 2}, []float32{-1, 2, 3}, []int{input}},
		{[]float32{30, -5, 3}, []float32{-5, 3, 21}, []int{input, 2 * block}},
		{[]float32{30, -5, 3}, []float32{-5, 3, 21}, []int{input}},
		{nil, []float32{-1, 2, 3}, []int{input, 2 * block}},
	} {
		f.reset()
		future, io := start(c.scalars...)
		require.NoError(t, future.Await(ctx))
		require.Equal(t, c.want, io.Read[0])
		require.Equal(t, c.written, f.written)
	}
	var futures []*compute.Future
	var ios []*program.IO
	for i := range 10 {
		future, io := start(100, -100, float32(i))
		futures, ios = append(futures, future), append(ios, io)
	}
	for i, future := range futures {
		require.NoError(t, future.Await(ctx))
		require.Equal(t, []float32{-2 * float32(i), float32(i), 7 * float32(i)}, ios[i].Read[0])
	}
	future, _ := start(1, 2)
	require.ErrorIs(t, future.Await(ctx), compute.ErrArgument)
	require.NoError(t, exec.Close())
	idle(t, d)

	p.Steps[0].Attr.Vary = []int{4}
	_, err = program.ExecutorOf(d).Compile(t.Context(), p)
	require.ErrorIs(t, err, compute.ErrArgument, "of three")
}
