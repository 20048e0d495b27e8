package compute

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFutureDeliversOnce(t *testing.T) {
	f, resolve := NewFuture(nil)
	require.NoError(t, f.Err())
	delivered := 0
	resolve(nil, func() { delivered++ })
	resolve(errors.New("late"), func() { delivered++ })
	<-f.Done()
	require.NoError(t, f.Await(context.Background()))
	require.Equal(t, 1, delivered)
}

func TestFutureFailureDeliversNothing(t *testing.T) {
	f, resolve := NewFuture(nil)
	boom := errors.New("boom")
	resolve(boom, func() { t.Error("delivered") })
	require.Same(t, boom, f.Await(context.Background()))
	require.Same(t, boom, f.Err())
	require.Same(t, boom, Failed(boom).Await(context.Background()))
}

func TestAwaitMayBeRepeatedAfterItsContextEnded(t *testing.T) {
	f, resolve := NewFuture(nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, f.Await(ctx), context.Canceled)
	written := false
	resolve(nil, func() { written = true })
	require.NoError(t, f.Await(ctx), "finished work is never reported as cancelled")
	require.True(t, written)
}

func TestAbandonedFutureWritesNothing(t *testing.T) {
	told := 0
	f, resolve := NewFuture(func() { told++ })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, f.AwaitOrAbandon(ctx), context.Canceled)
	require.ErrorIs(t, f.AwaitOrAbandon(ctx), context.Canceled)
	require.Equal(t, 1, told)
	resolve(nil, func() { t.Error("written after the caller took its slices back") })
	require.ErrorIs(t, f.Err(), context.Canceled)
}

// The race detector sees a write to dst after AwaitOrAbandon returned, if there is one.
func TestAbandonRacesWithDelivery(t *testing.T) {
	for range 200 {
		dst := []int{0}
		f, resolve := NewFuture(nil)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { resolve(nil, func() { dst[0] = 1 }) })
		wg.Go(cancel)
		err := f.AwaitOrAbandon(ctx)
		want := 1
		if err != nil {
			want = 0
		}
		require.Equal(t, want, dst[0])
		dst[0] = 2
		wg.Wait()
	}
}
