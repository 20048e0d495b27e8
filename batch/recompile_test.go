package batch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

// A plan moves to another device with its inputs, scalars and results; its tensors have to be uploaded there.
func TestRecompile(t *testing.T) {
	first, second := open(t), open(t)
	upload := func(d *cpu.Device) compute.Tensor {
		x, err := d.Upload(t.Context(), []float32{10, 20})
		require.NoError(t, err)
		return x
	}
	b := batch.New(first)
	x, w := b.Upload([]float32{0, 0}), b.Import(upload(first))
	scaled := b.Vary(b.Scale(x, 1))
	sum := b.Add(scaled, w)
	y, kept := b.Read(sum), b.Keep(sum)
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.SetInput(x, []float32{1, 2}))
	require.NoError(t, p.SetScalar(scaled, 0, 3))
	fork, err := p.Fork()
	require.NoError(t, err)
	run := func(p *batch.Plan) error { return p.Start().Await(context.Background()) }
	require.NoError(t, run(p))
	require.Equal(t, []float32{13, 26}, y.Float32s())

	require.NoError(t, p.Recompile(t.Context(), second))
	require.ErrorIs(t, run(p), compute.ErrForeignTensor)
	require.Nil(t, y.Float32s(), "the latest run has failed")
	require.NoError(t, p.SetTensor(w, upload(second)))
	require.NoError(t, run(p))
	require.Equal(t, []float32{13, 26}, y.Float32s())
	again := batch.New(second)
	copied := again.Read(again.Import(kept.Tensor()))
	require.NoError(t, again.Start().Await(context.Background()))
	require.Equal(t, []float32{13, 26}, copied.Float32s())
	require.NoError(t, run(fork), "it has stayed")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Recompile(ended, second), context.Canceled)
	require.ErrorIs(t, p.Recompile(t.Context(), nil), compute.ErrArgument)
	require.NoError(t, first.Close())
	require.ErrorIs(t, p.Recompile(t.Context(), first), compute.ErrClosed)
	require.NoError(t, run(p), "it has stayed what it was")
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.Recompile(t.Context(), second), compute.ErrClosed)
	require.NoError(t, fork.Close())
}
