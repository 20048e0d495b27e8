package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

// testMisuse: mistakes of callers are errors that say which, the same on every device. Typed is a nil pointer to a device.
func testMisuse(t *testing.T, d, typed batch.Device, ops compute.Ops) {
	record := func(d batch.Device) (*batch.Batch, batch.Value, *batch.Result) {
		b := batch.New(d)
		x := b.Upload([]float32{1, 2, 3})
		return b, x, b.Read(b.Scale(x, 2))
	}
	ctx := t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, nobody := range []batch.Device{nil, typed} {
		b, _, _ := record(nobody)
		require.NoError(t, b.Err())
		_, err := b.Compile(ctx)
		require.ErrorIs(t, err, compute.ErrArgument)
		require.ErrorIs(t, b.Start().Await(ctx), compute.ErrArgument)
		require.ErrorIs(t, batch.Compare(ctx, b, d, nobody), compute.ErrArgument)
	}
	var zero batch.Batch
	zero.Read(zero.Neg(zero.Upload([]float32{1})))
	require.ErrorIs(t, zero.Start().Await(ctx), compute.ErrArgument)

	for _, c := range []struct {
		tensor compute.Tensor
		want   error
	}{{nil, compute.ErrArgument}, {(*cpu.Tensor)(nil), compute.ErrArgument}, {&cpu.Tensor{}, compute.ErrForeignTensor}} {
		b := batch.New(d)
		b.Read(b.Import(c.tensor))
		require.ErrorIs(t, b.Start().Await(ctx), c.want)
	}
	require.ErrorIs(t, (&cpu.Tensor{}).ReadAsync([]float32{}).Await(ctx), compute.ErrClosed)
	require.ErrorIs(t, compute.Ops{}.NegAsync([]float32{1}, []float32{1}).Await(ctx), compute.ErrArgument)

	var plan batch.Plan
	require.ErrorIs(t, plan.Start().Await(ctx), compute.ErrArgument)
	require.ErrorIs(t, plan.SetInput(batch.Value{}, []float32{1}), compute.ErrForeignTensor)
	require.ErrorIs(t, plan.SetTensor(batch.Value{}, nil), compute.ErrForeignTensor)
	require.ErrorIs(t, plan.SetScalar(batch.Value{}, 0, 1), compute.ErrForeignTensor)
	require.ErrorIs(t, plan.Recompile(ctx, d), compute.ErrArgument)
	require.ErrorIs(t, plan.Code(nil), compute.ErrArgument)
	_, err := plan.Fork()
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = plan.Steps()
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = plan.Profile()
	require.ErrorIs(t, err, compute.ErrArgument)
	require.Equal(t, batch.Memory{Step: -1}, plan.Memory())
	require.NotEmpty(t, plan.String()+plan.Dot()+plan.Explain())
	require.NoError(t, plan.Close())

	b, x, out := record(d)
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{nil, compute.ErrArgument}, {ended, context.Canceled}} {
		_, err := b.Compile(c.ctx)
		require.ErrorIs(t, err, c.want)
		require.ErrorIs(t, batch.Compare(c.ctx, b, d, d), c.want)
		y := []float32{7, 7}
		require.ErrorIs(t, misusedCalls(c.ctx, ops, y), c.want)
		require.Equal(t, []float32{7, 7}, y, "no work may begin")
	}
	p, err := b.Compile(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, p.Recompile(ctx, typed), compute.ErrArgument)
	require.ErrorIs(t, p.Recompile(nil, d), compute.ErrArgument) //nolint:staticcheck // nil is what is tested
	f := p.Start()
	require.ErrorIs(t, stillWaiting(f, nil), compute.ErrArgument)
	require.NoError(t, f.Await(ctx))
	require.NoError(t, f.Await(nil)) //nolint:staticcheck // done
	require.Equal(t, []float32{2, 4, 6}, out.Float32s())

	// A run beside another one is refused; that one goes on.
	const n = 1 << 20
	big := batch.New(d)
	in := make([]float32, n)
	v := big.Upload(in)
	result := v
	for range 20 {
		result = big.Exp(big.Sin(result))
	}
	big.Read(result)
	slow, err := big.Compile(ctx)
	require.NoError(t, err)
	for range 3 {
		first := slow.Start()
		if second := slow.Start(); first.InFlight() || second.Err() != nil { // small programs are done at once on some devices
			require.ErrorIs(t, second.Await(ctx), compute.ErrInFlight)
		}
		require.NoError(t, first.Await(ctx))
	}
	require.NoError(t, slow.Start().Await(ctx))
	require.NoError(t, p.SetInput(x, []float32{3, 2, 1}))
	require.NoError(t, p.Start().Await(ctx))
	require.Equal(t, []float32{6, 4, 2}, out.Float32s())
	require.NoError(t, slow.Close())
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.Start().Await(ctx), compute.ErrClosed)
}

// stillWaiting is an error of waiting without a context, which is one while the work is not done.
func stillWaiting(f *compute.Future, ctx context.Context) error {
	if !f.InFlight() {
		return compute.ErrArgument
	}
	if err := f.Await(ctx); err != nil {
		return err
	}
	return compute.ErrArgument // done meanwhile
}
