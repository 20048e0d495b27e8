//go:build !js

package batch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
)

func TestCancelledContextLeavesTheDeviceUsable(t *testing.T) {
	dev := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b := batch.New(dev)
	out := b.Read(b.ReLU(b.Upload([]float32{1})))
	require.ErrorIs(t, b.Run(ctx), context.Canceled)
	require.Nil(t, out.Float32s())
	require.NoError(t, b.Run(context.Background()))
	require.Equal(t, []float32{1}, out.Float32s())
}

func TestRunWaits(t *testing.T) {
	ctx := context.Background()
	b := batch.New(open(t))
	out := b.Read(b.Exp(b.Upload([]float32{0})))
	require.NoError(t, b.Run(ctx))
	require.Equal(t, []float32{1}, out.Float32s())
	plan, err := b.Compile(ctx)
	require.NoError(t, err)
	defer plan.Close()
	require.NoError(t, plan.Run(ctx))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, plan.Run(cancelled), context.Canceled)
	_, err = b.Compile(cancelled)
	require.ErrorIs(t, err, context.Canceled)
}
