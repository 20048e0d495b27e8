package batch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// Scalars change between runs, by the method's arguments, also those that many steps share.
func TestSetScalar(t *testing.T) {
	b := batch.New(open(t))
	x := b.Upload([]float32{-4, 1, 5})
	rate := b.Vary(b.Scalar(2))
	clipped := b.Vary(b.Vary(b.Clip(b.Mul(x, rate), -3, 3)))
	constant := b.Scale(clipped, 10)
	y, z := b.Read(constant), b.Read(b.Add(x, rate))
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer p.Close()
	check := func(want, sum []float32) {
		t.Helper()
		require.NoError(t, p.Start().Await(context.Background()))
		require.Equal(t, want, y.Float32s())
		require.Equal(t, sum, z.Float32s())
	}
	check([]float32{-30, 20, 30}, []float32{-2, 3, 7})
	require.NoError(t, p.SetScalar(rate, 0, 0.5))
	check([]float32{-20, 5, 25}, []float32{-3.5, 1.5, 5.5})
	require.NoError(t, p.SetScalar(clipped, 0, -1))
	require.NoError(t, p.SetScalar(clipped, 1, 1))
	check([]float32{-10, 5, 10}, []float32{-3.5, 1.5, 5.5})
	check([]float32{-10, 5, 10}, []float32{-3.5, 1.5, 5.5})

	// A plan compiled later begins with what was recorded, and a fork with what its plan has.
	again, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer again.Close()
	fork, err := p.Fork()
	require.NoError(t, err)
	defer fork.Close()
	require.NoError(t, again.Start().Await(context.Background()))
	require.Equal(t, []float32{-30, 20, 30}, y.Float32s())
	require.NoError(t, p.SetScalar(rate, 0, 7))
	require.NoError(t, fork.Start().Await(context.Background()))
	own, err := fork.Result(y)
	require.NoError(t, err)
	require.Equal(t, []float32{-10, 5, 10}, own.Float32s())

	other := batch.New(open(t))
	for _, err := range []error{p.SetScalar(rate, 1, 0), p.SetScalar(rate, -1, 0), p.SetScalar(x, 0, 0), p.SetScalar(constant, 0, 0)} {
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	require.ErrorIs(t, p.SetScalar(other.Scalar(1), 0, 0), compute.ErrForeignTensor)
	b.Vary(constant)
	require.ErrorIs(t, p.SetScalar(constant, 0, 0), compute.ErrArgument, "marked after the plan was compiled")
	require.NoError(t, b.Err())
	b.Vary(x)
	require.ErrorIs(t, b.Err(), compute.ErrArgument)
	require.ErrorContains(t, b.Err(), "vary_test.go:")
}

// A scalar that the operation refuses changes nothing.
func TestSetScalarChecks(t *testing.T) {
	b := batch.New(open(t))
	norm := b.Vary(b.RMSNorm(b.Upload([]float32{3, 4}, 1, 2), b.Upload([]float32{1, 1}), 0))
	y := b.Read(norm)
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer p.Close()
	require.ErrorIs(t, p.SetScalar(norm, 0, -1), compute.ErrArgument)
	require.NoError(t, p.Start().Await(context.Background()))
	require.InDelta(t, 3/3.5355339, y.Float32s()[0], 1e-6)
}
