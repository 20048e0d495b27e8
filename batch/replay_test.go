//go:build !js

package batch_test

import (
	"context"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

// layered records a network on x, whose weights are on the device: y and the sums of its rows are results.
func layered(t *testing.T, b *batch.Batch, dev *cpu.Device, x batch.Value, n int) (y, sums *batch.Result) {
	t.Helper()
	w := make([]float32, n*n)
	for i := range w {
		w[i] = float32(i%7-3) / float32(n)
	}
	weights, err := dev.Upload(t.Context(), w, n, n)
	require.NoError(t, err)
	t.Cleanup(func() { weights.Close() })
	h := x
	for range 3 {
		h = b.ReLU(b.Add(b.MatMul(h, b.Import(weights)), x))
	}
	return b.Read(b.Softmax(h)), b.Read(b.Sum(h, 1))
}

// A plan that has run a few times allocates nothing, with other inputs in every run, with one worker and with many, in small
// programs, which the caller runs itself, and in large ones.
func TestReplaysAllocateNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	for _, workers := range []int{1, 4} {
		for _, n := range []int{8, 192} {
			dev, err := cpu.Open(context.Background(), cpu.WithWorkers(workers))
			require.NoError(t, err)
			defer dev.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := batch.New(dev)
			var inputs [2]any
			for i := range inputs {
				data := make([]float32, n*n)
				for k := range data {
					data[k] = float32((k+i)%5) - 2
				}
				inputs[i] = data
			}
			x := b.Upload(inputs[0], n, n)
			y, sums := layered(t, b, dev, x, n)
			plan, err := b.Compile(ctx)
			require.NoError(t, err)
			defer plan.Close()
			var want [2][]float32
			for i := range inputs {
				require.NoError(t, plan.SetInput(x, inputs[i]))
				require.NoError(t, plan.Run(ctx))
				want[i] = append(want[i], sums.Float32s()...)
			}
			require.False(t, equal(want[0], want[1]))
			i := 0
			runs := 50
			if testing.Short() { // in emulation, where each takes long
				runs = 8
			}
			allocated := 1.0
			for tries := 0; tries < 3 && allocated > 0; tries++ { // Go's own threads, which it may start meanwhile, count too
				allocated = testing.AllocsPerRun(runs, func() {
					i = 1 - i
					if plan.SetInput(x, inputs[i]) != nil || plan.Run(ctx) != nil || len(y.Float32s()) != n*n || sums.Float32s()[n-1] != want[i][n-1] {
						t.Error("a replay went wrong")
					}
				})
			}
			if !racing {
				require.Zero(t, allocated, "%d workers, %d×%d", workers, n, n)
			}
			require.True(t, equal(want[i], sums.Float32s()))
		}
	}
}

// Forks of a plan run at the same time, each with inputs and results of its own.
func TestForksRunAtTheSameTime(t *testing.T) {
	dev := open(t)
	const n, forks, runs = 64, 3, 20
	b := batch.New(dev)
	x := b.Upload(make([]float32, n*n), n, n)
	y, sums := layered(t, b, dev, x, n)
	kept := b.Keep(b.Scale(x, 2))
	plan, err := b.Compile(t.Context())
	require.NoError(t, err)
	plans := []*batch.Plan{plan}
	for range forks - 1 {
		f, err := plans[len(plans)-1].Fork()
		require.NoError(t, err)
		plans = append(plans, f)
	}
	ones := func(v float32) []float32 {
		data := make([]float32, n*n)
		for i := range data {
			data[i] = v
		}
		return data
	}
	want := make([][]float32, forks) // by runs one after the other
	for i := range want {
		require.NoError(t, plan.SetInput(x, ones(float32(i+1))))
		require.NoError(t, plan.Run(t.Context()))
		want[i] = append(want[i], sums.Float32s()...)
		require.NoError(t, kept.Tensor().Close())
	}
	var all sync.WaitGroup
	for i, p := range plans {
		own, err := p.Result(sums)
		require.NoError(t, err)
		k, err := p.Kept(kept)
		require.NoError(t, err)
		soft, err := p.Result(y)
		require.NoError(t, err)
		require.NoError(t, p.SetInput(x, ones(float32(i+1))))
		all.Go(func() {
			for range runs {
				if err := p.Start().Await(context.Background()); err != nil {
					t.Error(err)
					return
				}
				got := make([]float32, n*n)
				if err := k.Tensor().(*cpu.Tensor).ReadAsync(got).Await(context.Background()); err != nil || got[n] != float32(2*(i+1)) {
					t.Errorf("kept %v, %v", got[n], err)
				}
				k.Tensor().Close()
				if !equal(want[i], own.Float32s()) || len(soft.Float32s()) != n*n {
					t.Errorf("fork %d: %v, want %v", i, own.Float32s()[:3], want[i][:3])
				}
			}
		})
	}
	all.Wait()
	same, err := plan.Result(sums)
	require.NoError(t, err)
	require.Same(t, sums, same)
	second, err := plans[1].Result(sums)
	require.NoError(t, err)
	third, err := plans[2].Result(second)
	require.NoError(t, err)
	require.NotSame(t, second, third)
	_, err = plan.Result(&batch.Result{})
	require.ErrorIs(t, err, compute.ErrForeignTensor)
	_, err = plan.Result(nil)
	require.ErrorIs(t, err, compute.ErrForeignTensor)
	_, err = plan.Kept(nil)
	require.ErrorIs(t, err, compute.ErrForeignTensor)

	// The program is there until the last of them is closed.
	for i, p := range plans {
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
		require.ErrorIs(t, p.Run(t.Context()), compute.ErrClosed)
		_, err := p.Fork()
		require.ErrorIs(t, err, compute.ErrClosed)
		if i+1 < len(plans) {
			require.NoError(t, plans[i+1].Run(t.Context()))
		}
	}
}

func equal(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A fork that is started while another run is in flight does not wait for it, and leaves its results alone.
func TestTwoRunsInFlight(t *testing.T) {
	dev, err := cpu.Open(context.Background(), cpu.WithWorkers(2))
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	entered, leave := make(chan struct{}), make(chan struct{})
	slow, err := cpu.NewKernel(dev, "slow", func(out compute.Operand, in []compute.Operand, _ any) error {
		x := in[0].Data.([]float32)
		if x[0] == 1 {
			close(entered)
			<-leave
		}
		copy(out.Data.([]float32), x)
		return nil
	})
	require.NoError(t, err)
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2})
	out := b.Read(b.Kernel(slow, nil, compute.Float32, []int{2}, x))
	plan, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer plan.Close()
	fork, err := plan.Fork()
	require.NoError(t, err)
	defer fork.Close()
	first := plan.Start()
	<-entered
	require.NoError(t, fork.SetInput(x, []float32{5, 6}))
	require.NoError(t, fork.Run(t.Context()))
	other, err := fork.Result(out)
	require.NoError(t, err)
	require.Equal(t, []float32{5, 6}, other.Float32s())
	require.Nil(t, out.Float32s(), "still running")
	close(leave)
	require.NoError(t, first.Await(t.Context()))
	require.Equal(t, []float32{1, 2}, out.Float32s())
	require.Equal(t, []float32{5, 6}, other.Float32s())
}

// Runs that are given up, and runs that fail, leave a plan that runs.
func TestRunsGivenUpLeaveThePlan(t *testing.T) {
	dev := open(t)
	const n = 192
	b := batch.New(dev)
	data := make([]float32, n*n)
	for i := range data {
		data[i] = float32(i%5) - 2
	}
	x := b.Upload(data, n, n)
	y, _ := layered(t, b, dev, x, n)
	plan, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer plan.Close()
	require.NoError(t, plan.Run(t.Context()))
	want := append([]float32{}, y.Float32s()...)
	given := 0
	for i := range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		if err := plan.Run(ctx); err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if y.Float32s() == nil { // it had begun
				given++
			}
		}
		require.True(t, y.Float32s() == nil || equal(want, y.Float32s()))
		cancel()
	}
	t.Logf("%d of 100 runs were given up", given)
	require.NoError(t, plan.Run(t.Context()))
	require.True(t, equal(want, y.Float32s()))
	closed, err := dev.Upload(t.Context(), data, n, n)
	require.NoError(t, err)
	b = batch.New(dev)
	w := b.Import(closed)
	out := b.Read(b.ReLU(w))
	other, err := b.Compile(t.Context())
	require.NoError(t, err)
	require.NoError(t, other.Run(t.Context()))
	require.NoError(t, closed.Close())
	for range 3 {
		require.ErrorIs(t, other.Run(t.Context()), compute.ErrClosed)
		require.Nil(t, out.Float32s())
	}
	fresh, err := dev.Upload(t.Context(), data, n, n)
	require.NoError(t, err)
	defer fresh.Close()
	require.NoError(t, other.SetTensor(w, fresh))
	require.NoError(t, other.Run(t.Context()))
	require.Len(t, out.Float32s(), n*n)
	require.NoError(t, other.Close())
}
