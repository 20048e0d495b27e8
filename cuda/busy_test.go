//go:build !js

package cuda

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/sim"
)

// spinText counts to n.
const spinText = `.version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u32 n)
{
	.reg .b32 %r<3>;
	.reg .pred %p<2>;
	ld.param.u32 %r1, [n];
	mov.u32 %r2, 0;
again:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p1, %r2, %r1;
	@%p1 bra again;
	ret;
}
`

// Deadlines hold while a kernel of the user's spins on a stream, for what is used for the first time too: its module is loaded without
// waiting for the kernel. So they do with every check of the software GPU on.
func TestDeadlinesOfABusyDevice(t *testing.T) {
	for name, checks := range map[string]sim.Checks{"unchecked": 0, "checked": sim.AllChecks} {
		t.Run(name, func(t *testing.T) { deadlinesOfABusyDevice(t, checks) })
	}
}

func deadlinesOfABusyDevice(t *testing.T, checks sim.Checks) {
	d, _ := openSoft(t, softgpu.Config{Sim: sim.Config{Checks: checks}})
	module, err := d.Load(spinText)
	require.NoError(t, err)
	spin, err := module.Kernel("spin")
	require.NoError(t, err)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	start := func(n uint32) *Submitted {
		rec, err := s.Begin()
		require.NoError(t, err)
		require.NoError(t, rec.Launch(spin, Launch{Block: [3]uint32{1}}, args.U32(n)))
		w, err := rec.Submit()
		require.NoError(t, err)
		return w
	}
	// A kernel that takes four seconds here, whatever the machine: the calls beside it take one, with the race detector.
	n, took := uint32(1), time.Duration(0)
	for took < 50*time.Millisecond {
		n *= 2
		before := time.Now()
		_, err := start(n).Wait(t.Context())
		require.NoError(t, err)
		took = time.Since(before)
	}
	x, y := make([]float32, 64), make([]float32, 64)
	spinning := start(uint32(float64(n) * float64(4*time.Second) / float64(took)))
	done := make(chan error, 1)
	go func() {
		_, err := spinning.Wait(context.Background())
		done <- err
	}()

	calls := map[string]func(ctx context.Context) error{
		"operation": func(ctx context.Context) error { return d.ReLU(ctx, y, x) },
		"batch": func(ctx context.Context) error {
			b := batch.New(d)
			b.Read(b.Softmax(b.Upload(x, 8, 8)))
			return b.Run(ctx)
		},
		"upload": func(ctx context.Context) error {
			tensor, err := d.Upload(ctx, x, len(x))
			if err == nil {
				tensor.Close()
			}
			return err
		},
		"start": func(ctx context.Context) error { return d.TanhAsync(y, x).AwaitOrAbandon(ctx) },
		"load": func(context.Context) error {
			m, err := d.Load(addText)
			if err == nil {
				err = m.Close()
			}
			return err
		},
	}
	for range 2 {
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			err := call(ctx)
			cancel()
			select {
			case <-done:
				t.Fatalf("%s: waited until the kernel had ended", name)
			default:
			}
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded, name)
			}
		}
	}
	require.NoError(t, <-done)
	require.NoError(t, d.ReLU(t.Context(), y, x), "what was given up is over, too")
}

// Deadlines hold while the driver blocks in loading a module, and what is loaded already does not wait for it.
func TestDeadlinesWhileTheDriverLoads(t *testing.T) {
	var blocks atomic.Bool
	release := make(chan struct{})
	d, _ := openSoft(t, softgpu.Config{Inject: func(call string) driver.Result {
		if blocks.Load() && (call == "Compile" || call == "ModuleLoadData") {
			<-release
		}
		return driver.Success
	}})
	x, y := make([]float32, 64), make([]float32, 64)
	require.NoError(t, d.ReLU(t.Context(), y, x))
	blocks.Store(true)
	for name, call := range map[string]func(ctx context.Context) error{
		"operation": func(ctx context.Context) error { return d.Softmax(ctx, y, x, 8, 8) },
		"batch": func(ctx context.Context) error {
			b := batch.New(d)
			b.Read(b.CumSum(b.Upload(x)))
			return b.Run(ctx)
		},
		"compile": func(ctx context.Context) error {
			b := batch.New(d)
			b.Read(b.MatMul(b.Upload(x, 8, 8), b.Upload(x, 8, 8)))
			_, err := b.Compile(ctx)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, call(ctx), context.DeadlineExceeded, name)
		cancel()
		require.NoError(t, d.ReLU(t.Context(), y, x), "what is loaded")
	}
	blocks.Store(false)
	close(release)
	require.NoError(t, d.Softmax(t.Context(), y, x, 8, 8))
}

// What is started without a context returns at once while the driver blocks in loading its module, and runs when that is over.
func TestStartsWhileTheDriverLoads(t *testing.T) {
	var blocks atomic.Bool
	release := make(chan struct{})
	d, _ := openSoft(t, softgpu.Config{Inject: func(call string) driver.Result {
		if blocks.Load() && (call == "Compile" || call == "ModuleLoadData") {
			<-release
		}
		return driver.Success
	}})
	x, y := []float32{-1, 2}, make([]float32, 2)
	require.NoError(t, d.ReLU(t.Context(), y, x))
	blocks.Store(true)
	free := time.AfterFunc(time.Minute, func() { close(release) }) // what blocks fails below
	sum, kept, gone := make([]float32, 2), []float32{-1, 2}, make([]float32, 2)
	first := d.CumSumAsync(sum, compute.Of(x))
	abandoned := d.CumSumAsync(gone, compute.Of(kept))
	b := batch.New(d)
	product := b.Read(b.MatMul(b.Upload(x, 1, 2), b.Upload(x, 2, 1)))
	second := b.Start()
	b.Read(b.ReLU(b.Upload(x))) // is not part of what was started
	refused := d.SoftmaxAsync(sum, x, 1, 3)
	require.ErrorIs(t, refused.Await(t.Context()), compute.ErrShape)

	ready := d.ReLUAsync(y, x)
	require.NoError(t, ready.Await(t.Context()), "what is loaded")
	require.Equal(t, []float32{0, 2}, y)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, abandoned.AwaitOrAbandon(ended), context.Canceled)
	kept[0] = 5 // the caller's again
	for _, f := range []*compute.Future{first, second} {
		select {
		case <-f.Done():
			t.Fatal("done before its code was loaded")
		default:
		}
	}
	require.True(t, free.Stop(), "a start has waited for the driver")
	require.Nil(t, product.Float32s())
	close(release)
	require.NoError(t, first.Await(t.Context()))
	require.NoError(t, second.Await(t.Context()))
	require.Equal(t, []float32{-1, 1}, sum)
	require.Equal(t, []float32{5}, product.Float32s())
	require.ErrorIs(t, abandoned.Await(t.Context()), context.Canceled)
	require.Equal(t, make([]float32, 2), gone)
}
