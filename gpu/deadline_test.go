//go:build !js

package gpu

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// Deadlines hold while the device is busy with what others have started, although the library blocks in a submission until what was
// submitted before is through.
func TestDeadlinesOfABusyDevice(t *testing.T) {
	d := open(t)
	k, l := slow(t, d)
	quick := affine(t, d)
	x, y := make([]float32, 64), make([]float32, 64)
	// A kernel that takes two seconds here, whatever the machine. Neither compiling it nor other work, which runs may have to wait for,
	// makes it seem slower than it is.
	l.Grid[0] = 64
	require.NoError(t, k.Run(ctx, l, y, x))
	took := time.Duration(0)
	for took < 100*time.Millisecond && l.Grid[0] < 30_000 {
		l.Grid[0] *= 2
		took = time.Hour
		for range 3 {
			start := time.Now()
			require.NoError(t, k.Run(ctx, l, y, x))
			took = min(took, time.Since(start))
		}
	}
	l.Grid[0] = uint32(min(65_535, uint64(l.Grid[0])*uint64(2*time.Second)/uint64(took)))

	const patience = 20 * time.Millisecond
	calls := map[string]func(ctx context.Context) error{
		"run":       func(ctx context.Context) error { return quick.Run(ctx, affineLaunch(64, 1, 1), y, x) },
		"operation": func(ctx context.Context) error { return d.ReLU(ctx, y, x) },
		"upload": func(ctx context.Context) error {
			tensor, err := d.Upload(ctx, x, len(x))
			if err == nil {
				tensor.Close()
			}
			return err
		},
		"start":    func(ctx context.Context) error { return d.TanhAsync(y, x).AwaitOrAbandon(ctx) },
		"new code": func(ctx context.Context) error { return d.Softmax(ctx, y, x, 1, 64) },
	}
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx, l, y, x) }()
	require.Eventually(t, func() bool { return !quiet(d) }, time.Minute, time.Millisecond)
	for range 3 {
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(ctx, patience)
			err := call(ctx)
			cancel()
			select {
			case <-done:
				t.Fatalf("%s: waited until the device was through", name)
			default:
			}
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
		}
	}
	require.NoError(t, <-done)
	require.NoError(t, quick.Run(ctx, affineLaunch(64, 1, 1), y, x), "what was given up is over, too")
	idle(t, d)
}

// What fails to be submitted after its call has returned fails the future, and what was started after it runs.
func TestQueuedSubmissionFails(t *testing.T) {
	d := open(t)
	k, l := slow(t, d)
	x, y := make([]float32, 64), make([]float32, 64)
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx, l, y, x) }()
	require.Eventually(t, func() bool { return !quiet(d) }, time.Minute, time.Millisecond)
	queued := make(chan error, 1)
	go func() { queued <- affine(t, d).Run(ctx, affineLaunch(64, 1, 1), make([]float32, 64), x) }()
	time.Sleep(10 * time.Millisecond)
	reason := lose(d)
	for _, c := range []chan error{done, queued} {
		if err := <-c; err != nil {
			require.True(t, errors.Is(err, compute.ErrDeviceLost), "%v", err)
			require.ErrorContains(t, err, reason)
		}
	}
}

// What is started without a context returns at once while the library compiles, and runs when that is over.
func TestStartsWhileTheLibraryCompiles(t *testing.T) {
	d, f := openFaulty(t)
	x, y := []float32{-1, 2}, make([]float32, 2)
	require.NoError(t, d.ReLU(ctx, y, x))
	release := make(chan struct{})
	f.compiling.Store(&release)
	free := time.AfterFunc(time.Minute, func() { close(release) }) // what blocks fails below
	sum, gone, scaled := make([]float32, 2), make([]float32, 2), make([]float32, 2)
	first := d.CumSumAsync(sum, compute.Of(x))
	abandoned := d.CumSumAsync(gone, compute.Of(x))
	b := batch.New(d)
	product := b.Read(b.MatMul(b.Upload(x, 1, 2), b.Upload(x, 2, 1)))
	second := b.Start()
	k, compiled := NewKernelAsync(d, affineDesc())
	require.NotNil(t, k)
	run := k.RunAsync(affineLaunch(2, 2, 1), scaled, x)

	require.NoError(t, d.ReLUAsync(y, x).Await(ctx), "what is compiled")
	require.Equal(t, []float32{0, 2}, y)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, abandoned.AwaitOrAbandon(ended), context.Canceled)
	for _, f := range []*compute.Future{first, second, compiled, run} {
		select {
		case <-f.Done():
			t.Fatal("done before its code was compiled")
		default:
		}
	}
	require.True(t, free.Stop(), "a start has waited for the library")
	close(release)
	for _, f := range []*compute.Future{first, second, compiled, run} {
		require.NoError(t, f.Await(ctx))
	}
	require.Equal(t, []float32{-1, 1}, sum)
	require.Equal(t, []float32{5}, product.Float32s())
	require.Equal(t, []float32{-1, 5}, scaled)
	require.ErrorIs(t, abandoned.Await(ctx), context.Canceled)
	require.Equal(t, make([]float32, 2), gone)
	idle(t, d)
}
