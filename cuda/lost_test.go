package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// A plan whose context a kernel has killed says so in each run, also where it is a graph already; on another device and with its
// tensors uploaded there it gives what it gave.
func TestPlanAfterLoss(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	c := coreOn(t, m, d)
	rng := randomSource(t)
	const n = 40
	input, weights := randomFloats(rng, n), randomFloats(rng, n)
	upload := func(d *Device) compute.Tensor {
		x, err := d.Upload(t.Context(), weights)
		require.NoError(t, err)
		return x
	}
	b := batch.New(d, batch.WithoutFusion()) // few launches make no graph
	w := b.Import(upload(d))
	x := b.Vary(b.Scale(b.Upload(input), 1))
	y := b.Read(b.Neg(b.Softmax(b.Exp(b.Neg(b.Softmax(b.Add(x, w)))))))
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	run := func() error { return p.Start().Await(t.Context()) }
	var want []float32
	for i := range warmUp + 3 {
		require.NoError(t, p.SetScalar(x, 0, float32(i)))
		require.NoError(t, run())
		want = append(want[:0], y.Float32s()...)
	}
	require.Positive(t, d.Stats().Replays)

	bad := batch.New(d)
	bad.Read(bad.Kernel(c.poke, astrayStep(astray).Options, compute.Float32, []int{2}, bad.Upload([]float32{1, 2})))
	require.ErrorIs(t, bad.Start().Await(t.Context()), compute.ErrDeviceLost)
	for range 2 {
		require.ErrorIs(t, run(), compute.ErrDeviceLost)
	}
	require.NoError(t, d.Close())
	require.Eventually(t, func() bool { return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)

	other := softDevice(t)
	require.NoError(t, p.Recompile(t.Context(), other))
	require.ErrorIs(t, run(), compute.ErrForeignTensor)
	require.NoError(t, p.SetTensor(w, upload(other)))
	for range warmUp + 2 {
		require.NoError(t, run())
		require.Equal(t, want, y.Float32s())
	}
	require.NoError(t, p.Close())
}
