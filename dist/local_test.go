package dist_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/dist"
)

// each calls do for every member, each in a goroutine of its own.
func each(groups []*dist.Group, do func(g *dist.Group) error) error {
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { errs[i] = do(g) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func TestLocal(t *testing.T) {
	defer func(s bool) { short = s }(short)
	for n := 1; n <= 4; n++ {
		if testing.Short() && n != 3 {
			continue
		}
		short = short || n > 2 // large data once, as that is slow for what it finds
		groups, err := dist.Local(make([]dist.Device, n)...)
		require.NoError(t, err)
		require.NoError(t, each(groups, func(g *dist.Group) error { return suite(g, true) }))
	}
}

func TestLocalSplit(t *testing.T) {
	groups, err := dist.Local(make([]dist.Device, 5)...)
	require.NoError(t, err)
	require.NoError(t, each(groups, func(g *dist.Group) error {
		half, err := g.Split(t.Context(), g.Rank()%2, -g.Rank())
		if err != nil {
			return err
		}
		got := make([]int32, half.Size())
		if err := half.AllGather(t.Context(), got, []int32{int32(g.Rank())}); err != nil {
			return err
		}
		if want := fmt.Sprint([][]int32{{4, 2, 0}, {3, 1}}[g.Rank()%2]); fmt.Sprint(got) != want {
			return fmt.Errorf("%s of rank %d: %v, not %s", half, g.Rank(), got, want)
		}
		return nil
	}))
}

// Members who call different things learn of it, and go on learning.
func TestLocalMismatch(t *testing.T) {
	groups, err := dist.Local(nil, nil)
	require.NoError(t, err)
	err = each(groups, func(g *dist.Group) error {
		x := make([]float32, 2000)
		if g.Rank() == 0 {
			return g.Broadcast(t.Context(), x, 1)
		}
		return g.AllGather(t.Context(), make([]float32, 4000), x)
	})
	require.ErrorIs(t, err, dist.ErrMismatch)
	require.ErrorContains(t, err, "broadcast of 8000 bytes by 1")
	require.ErrorContains(t, err, "gather of 8000 bytes")
	for _, g := range groups {
		again := g.Barrier(t.Context())
		var broken *dist.BrokenError
		require.ErrorAs(t, again, &broken)
		require.ErrorIs(t, again, dist.ErrBroken)
		require.ErrorIs(t, again, dist.ErrMismatch)
		require.Contains(t, broken.Caller, "local_test.go:")
		require.EqualValues(t, 1, broken.Sequence)
	}
}

// ending is a context that ends when a call waits for it which has begun: it is asked before that, too.
type ending struct {
	context.Context
	cancel context.CancelFunc
	asked  atomic.Int32
}

func (e *ending) Done() <-chan struct{} {
	if e.asked.Add(1) == 2 {
		e.cancel()
	}
	return e.Context.Done()
}

// A context that ends breaks the group, and those who wait on other members learn of it.
func TestLocalCancelled(t *testing.T) {
	groups, err := dist.Local(nil, nil, nil)
	require.NoError(t, err)
	inner, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := &ending{Context: inner, cancel: cancel}
	err = each(groups[:2], func(g *dist.Group) error {
		if g.Rank() == 0 {
			return g.Barrier(ctx)
		}
		return g.Barrier(context.Background())
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, strings.Count(err.Error(), "rank 0 of local: Barrier, call 1, at "), err.Error())
	require.ErrorIs(t, groups[2].Barrier(t.Context()), dist.ErrBroken)
}

func TestLocalTensors(t *testing.T) {
	devices := make([]dist.Device, 3)
	open := make([]*cpu.Device, 3)
	for i := range devices {
		d, err := cpu.Open(t.Context())
		require.NoError(t, err)
		defer d.Close()
		devices[i], open[i] = d, d
	}
	groups, err := dist.Local(devices...)
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, each(groups, func(g *dist.Group) error {
		x := []float32{1, 2, 3, 4, 5, 6}
		for i := range x {
			x[i] *= float32(int(1) << (4 * g.Rank()))
		}
		in, err := open[g.Rank()].Upload(ctx, x, 3, 2)
		if err != nil {
			return err
		}
		defer in.Close()
		for _, c := range []struct {
			name  string
			call  func() (compute.Tensor, error)
			shape []int
			want  []float32
		}{
			{"AllReduce", func() (compute.Tensor, error) { return g.AllReduceTensor(ctx, in, dist.Sum) }, []int{3, 2}, []float32{273, 546, 819, 1092, 1365, 1638}},
			{"ReduceScatter", func() (compute.Tensor, error) { return g.ReduceScatterTensor(ctx, in, dist.Max) }, []int{1, 2},
				[]float32{256 * float32(1+2*g.Rank()), 256 * float32(2+2*g.Rank())}},
			{"Broadcast", func() (compute.Tensor, error) { return g.BroadcastTensor(ctx, in, 1) }, []int{3, 2}, []float32{16, 32, 48, 64, 80, 96}},
			{"AllToAll", func() (compute.Tensor, error) { return g.AllToAllTensor(ctx, in) }, []int{3, 2},
				[]float32{x0(g, 0, 0), x0(g, 0, 1), x0(g, 1, 0), x0(g, 1, 1), x0(g, 2, 0), x0(g, 2, 1)}},
			{"AllGather", func() (compute.Tensor, error) { return g.AllGatherTensor(ctx, in) }, []int{9, 2},
				[]float32{1, 2, 3, 4, 5, 6, 16, 32, 48, 64, 80, 96, 256, 512, 768, 1024, 1280, 1536}},
		} {
			out, err := c.call()
			if err != nil {
				return err
			}
			got := make([]float32, len(c.want))
			if err := out.ReadAsync(got).Await(ctx); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if fmt.Sprint(out.Shape(), got) != fmt.Sprint(c.shape, c.want) {
				return fmt.Errorf("%s, rank %d: %v %v, not %v %v", c.name, g.Rank(), out.Shape(), got, c.shape, c.want)
			}
			out.Close()
		}
		return nil
	}))
	none, err := dist.Local(nil)
	require.NoError(t, err)
	in, err := open[0].Upload(ctx, []float32{1})
	require.NoError(t, err)
	_, err = none[0].AllReduceTensor(ctx, in, dist.Sum)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = groups[0].AllReduceTensor(ctx, nil, dist.Sum)
	require.ErrorIs(t, err, compute.ErrArgument)
}

// x0 is what member r sends to g: element i of row g of its tensor.
func x0(g *dist.Group, r, i int) float32 {
	return float32(2*g.Rank()+i+1) * float32(int(1)<<(4*r))
}

// TestLocalMany makes a hundred thousand collectives while the collector runs, and looks for what they have left.
func TestLocalMany(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 2000
	}
	groups, err := dist.Local(nil, nil)
	require.NoError(t, err)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				runtime.GC()
			}
		}
	}()
	do := func(n int) {
		require.NoError(t, each(groups, func(g *dist.Group) error {
			for i := range n {
				x := make([]float32, 1+i%100)
				for j := range x {
					x[j] = float32(i + j + g.Rank())
				}
				if err := g.AllReduce(t.Context(), x, x, dist.Sum); err != nil {
					return err
				}
				for j, got := range x {
					if want := float32(2*(i+j) + 1); got != want {
						return fmt.Errorf("call %d, element %d: %v, not %v", i, j, got, want)
					}
				}
			}
			return nil
		}))
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // empties pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	do(100)
	goroutines, bytes := runtime.NumGoroutine(), heap()
	do(n)
	close(stop)
	<-stopped
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	require.Less(t, heap(), bytes+uint64(16*n), "bytes of the heap")
}

// TestAlone has a member compute without the others, and counts what it would send.
func TestAlone(t *testing.T) {
	sent := map[string]int{}
	g, err := dist.Alone(1, 3, func(collective string, bytes int) { sent[collective] += bytes })
	require.NoError(t, err)
	require.Equal(t, "1 of 3", fmt.Sprint(g.Rank(), " of ", g.Size()))
	ctx, x, all := t.Context(), []float32{1, 2, 3}, make([]float32, 9)
	require.NoError(t, g.AllReduce(ctx, x, x, dist.Sum))
	require.Equal(t, []float32{1, 2, 3}, x)
	require.NoError(t, g.AllGather(ctx, all, x))
	require.Equal(t, []float32{1, 2, 3, 1, 2, 3, 1, 2, 3}, all)
	require.NoError(t, g.AllToAll(ctx, x, x))
	require.NoError(t, g.ReduceScatter(ctx, x[:1], x, dist.Max))
	require.NoError(t, g.Broadcast(ctx, x, 0))
	require.NoError(t, g.Barrier(ctx))
	require.Equal(t, map[string]int{"all-reduce": 12, "all-gather": 12, "all-to-all": 8, "broadcast": 12, "barrier": 0}, sent)
	require.ErrorIs(t, g.Send(ctx, x, 0), compute.ErrUnsupported)
	_, err = g.Split(ctx, 0, 0)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = dist.Alone(3, 3, nil)
	require.ErrorIs(t, err, compute.ErrArgument)
}

// Wrong arguments are errors, and the group stays whole.
func TestArguments(t *testing.T) {
	groups, err := dist.Local(nil, nil)
	require.NoError(t, err)
	g, ctx, x := groups[0], t.Context(), make([]float32, 6)
	require.ErrorIs(t, g.AllReduce(ctx, x, x[:5], dist.Sum), compute.ErrShape)
	require.ErrorIs(t, g.AllReduce(ctx, x, make([]int32, 6), dist.Sum), compute.ErrDType)
	require.ErrorIs(t, g.AllReduce(ctx, x, x, dist.Min+1), compute.ErrArgument)
	require.ErrorIs(t, g.AllReduce(ctx, x, []float64{1}, dist.Sum), compute.ErrDType)
	require.ErrorIs(t, g.AllReduce(ctx, nil, x, dist.Sum), compute.ErrDType)
	require.ErrorIs(t, g.AllGather(ctx, x, x), compute.ErrShape)
	require.ErrorIs(t, g.ReduceScatter(ctx, x, x, dist.Sum), compute.ErrShape)
	require.ErrorIs(t, g.AllToAll(ctx, x[:5], x[:5]), compute.ErrShape)
	require.ErrorIs(t, g.Broadcast(ctx, x, 2), compute.ErrArgument)
	require.ErrorIs(t, g.Broadcast(ctx, x, -1), compute.ErrArgument)
	require.ErrorIs(t, g.Send(ctx, x, 0), compute.ErrArgument)
	require.ErrorIs(t, g.Recv(ctx, x, 0), compute.ErrArgument)
	require.ErrorIs(t, g.Barrier(nil), compute.ErrArgument) //nolint:staticcheck
	_, err = g.Split(ctx, -1, 0)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = dist.Local()
	require.ErrorIs(t, err, compute.ErrArgument)
	require.NoError(t, each(groups, func(g *dist.Group) error { return g.Barrier(ctx) }))
}

// A process without a launcher is alone.
func TestWorldOfOne(t *testing.T) {
	for _, v := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK", dist.EngineVariable} {
		t.Setenv(v, "")
	}
	w, err := dist.Init(t.Context())
	require.NoError(t, err)
	require.Equal(t, dist.Info{Engine: dist.EngineNone, Size: 1}, w.Info())
	require.NoError(t, suite(w.Group, true))
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Barrier(t.Context()), compute.ErrClosed)

	t.Setenv("RANK", "1")
	t.Setenv("WORLD_SIZE", "2")
	_, err = dist.Init(t.Context())
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = dist.Init(t.Context(), dist.WithEngine("pigeons"))
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = dist.Init(t.Context(), nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = dist.Init(t.Context(), dist.WithTimeout(0))
	require.ErrorIs(t, err, compute.ErrArgument)
	t.Setenv(dist.EngineVariable, "none")
	w, err = dist.Init(t.Context(), dist.WithEngine(dist.EngineMPI))
	require.NoError(t, err, "the environment decides")
	require.NoError(t, w.Close())
}
