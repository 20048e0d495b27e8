package gpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// A plan whose device is lost, idle or with a run in flight, says so; on another device and with its tensors uploaded there it
// gives what it gave.
func TestPlanAfterLoss(t *testing.T) {
	r := random(t)
	const n = 1000
	input, weights := floats(r, n), floats(r, n)
	d, f := openFaulty(t)
	upload := func(d *Device) compute.Tensor {
		x, err := d.Upload(ctx, weights)
		require.NoError(t, err)
		return x
	}
	b := batch.New(d)
	w := b.Import(upload(d))
	x := b.Vary(b.Scale(b.Upload(input), 1))
	y := b.Read(b.Softmax(b.Add(x, w)))
	p, err := b.Compile(ctx)
	require.NoError(t, err)
	run := func() error { return p.Start().Await(ctx) }
	require.NoError(t, p.SetScalar(x, 0, 0.5))
	require.NoError(t, run())
	want := append([]float32{}, y.Float32s()...)

	f.arm("complete", compute.ErrDeviceLost)
	require.ErrorIs(t, run(), compute.ErrDeviceLost, "in flight")
	require.Nil(t, y.Float32s())
	require.ErrorIs(t, run(), compute.ErrDeviceLost)
	_, err = b.Compile(ctx)
	require.ErrorIs(t, err, compute.ErrDeviceLost)
	require.NoError(t, d.Close())

	for i := range 2 { // the second time it is the library that says so
		d := open(t)
		require.NoError(t, p.Recompile(ctx, d))
		require.ErrorIs(t, run(), compute.ErrForeignTensor, "the tensor was lost with the device")
		require.NoError(t, p.SetTensor(w, upload(d)))
		require.NoError(t, run())
		require.Equal(t, want, y.Float32s())
		if i == 0 {
			lose(d)
			require.Eventually(t, func() bool { return d.drv.Lost() != nil }, time.Minute, time.Millisecond)
			require.ErrorIs(t, run(), compute.ErrDeviceLost)
			require.NoError(t, d.Close())
		}
	}
	require.NoError(t, p.Close())
}
