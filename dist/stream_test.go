//go:build linux && (amd64 || arm64)

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/dist/internal/nccl/nccltest"
)

// gpus opens n software GPUs, which share nothing, and makes a world of them, which is closed with the test unless it has been broken.
func gpus(t *testing.T, n int, options ...dist.Option) ([]*cuda.Device, []*dist.World) {
	t.Helper()
	library, err := nccltest.Build(t.TempDir(), 22703)
	require.NoError(t, err)
	t.Setenv(dist.NCCLLibraryVariable, library)
	devices, of, cache := make([]*cuda.Device, n), make([]dist.Device, n), t.TempDir()
	for i := range devices {
		devices[i], err = cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithCache(cache))
		require.NoError(t, err)
		t.Cleanup(func() { devices[i].Close() })
		of[i] = devices[i]
	}
	worlds, err := dist.LocalNCCL(t.Context(), of, options...)
	require.NoError(t, err)
	return devices, worlds
}

// members calls do for every member of a world in one process.
func members(worlds []*dist.World, do func(w *dist.World) error) error {
	errs := make([]error, len(worlds))
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Go(func() {
			if errs[i] = do(w); errs[i] != nil {
				errs[i] = fmt.Errorf("rank %d: %w", w.Rank(), errs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ordinary is a batch whose values check makes what they should be after each run, from 0 on.
type ordinary struct {
	name   string
	record func(b *batch.Batch, w *dist.World, x batch.Value) []*batch.Result
	check  func(rank, size int) string // of the results
}

// streamed are batches of collectives that NCCL has, on [rank+1, 2, 3, 4, 5, 6].
var streamed = []ordinary{
	{"all-reduce", func(b *batch.Batch, w *dist.World, x batch.Value) []*batch.Result {
		return []*batch.Result{b.Read(b.Scale(b.AllReduce(b.Scale(x, 2), w, dist.Sum), 10)), b.Read(b.AllReduce(b.Neg(x), w, dist.Mean)), b.Read(b.Scale(x, 3))}
	}, func(rank, size int) string {
		return fmt.Sprint([][]float32{{float32(10 * size * (size + 1)), float32(40 * size), float32(60 * size), float32(80 * size), float32(100 * size), float32(120 * size)},
			{-float32(size+1) / 2, -2, -3, -4, -5, -6}, {float32(3 * (rank + 1)), 6, 9, 12, 15, 18}})
	}},
	{"reused memory", func(b *batch.Batch, w *dist.World, x batch.Value) []*batch.Result {
		// Steps that go on while the collective does must not write where it reads.
		sum, y := b.AllReduce(b.Scale(x, 2), w, dist.Sum), x
		for range 8 {
			y = b.Softmax(b.Scale(y, 1.5))
		}
		return []*batch.Result{b.Read(b.Add(sum, b.Scale(y, 0)))}
	}, func(_, size int) string {
		return fmt.Sprint([][]float32{{float32(size * (size + 1)), float32(4 * size), float32(6 * size), float32(8 * size), float32(10 * size), float32(12 * size)}})
	}},
	{"moves", func(b *batch.Batch, w *dist.World, x batch.Value) []*batch.Result {
		g := b.AllGather(b.Neg(x), w)
		return []*batch.Result{b.Read(b.Neg(g)), b.Read(b.Broadcast(x, w, w.Size()-1)), b.Read(b.Barrier(b.Scale(x, 2), w)),
			b.Read(b.AllToAll(x, w)), b.Read(b.ReduceScatter(b.AllGather(x, w), w, dist.Sum))}
	}, func(rank, size int) string {
		var all, exchanged, sum []float32
		x := func(rank int) []float32 { return []float32{float32(rank + 1), 2, 3, 4, 5, 6} }
		for r := range size {
			all = append(all, x(r)...)
			exchanged = append(exchanged, x(r)[rank*6/size:(rank+1)*6/size]...)
		}
		own := x(rank)
		for i := range all[:6] {
			sum = append(sum, float32(size)*all[6*rank+i])
			own[i] *= 2
		}
		return fmt.Sprint([][]float32{all, x(size - 1), own, exchanged, sum})
	}},
	{"collectives of collectives", func(b *batch.Batch, w *dist.World, x batch.Value) []*batch.Result {
		// The last two of them nobody needs, and their order is that of recording.
		twice := b.AllReduce(b.AllReduce(x, w, dist.Sum), w, dist.Mean)
		b.Broadcast(b.Scale(x, 4), w, 0)
		b.AllReduce(twice, w, dist.Sum)
		return []*batch.Result{b.Read(b.Reshape(twice, 2, 3))}
	}, func(_, size int) string {
		return fmt.Sprint([][]float32{{float32(size*(size+1)) / 2, float32(2 * size), float32(3 * size), float32(4 * size), float32(5 * size), float32(6 * size)}})
	}},
	{"messages", func(b *batch.Batch, w *dist.World, x batch.Value) []*batch.Result {
		// All send to the next and receive from the one before, at the same time; Send comes first on half of the ranks.
		next, before := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
		x = b.Scale(b.AllReduce(x, w, dist.Mean), float32(w.Rank()+2))
		var in batch.Value
		if w.Rank()%2 == 0 {
			b.Send(x, w, next)
			in = b.Recv(w, before, compute.Float32, 6)
		} else {
			in = b.Recv(w, before, compute.Float32, 6)
			b.Send(x, w, next)
		}
		return []*batch.Result{b.Read(b.Neg(in))}
	}, func(rank, size int) string {
		from := float32((rank+size-1)%size + 2)
		return fmt.Sprint([][]float32{{-from * float32(size+1) / 2, -2 * from, -3 * from, -4 * from, -5 * from, -6 * from}})
	}},
}

func resultsOf(list []*batch.Result) string {
	values := make([][]float32, len(list))
	for i, r := range list {
		values[i] = r.Float32s()
	}
	return fmt.Sprint(values)
}

// TestStreams has collectives be on streams of software GPUs, and from the third run on in graphs.
func TestStreams(t *testing.T) {
	for _, size := range []int{2, 3} {
		if testing.Short() && size != 2 { // with the race detector
			continue
		}
		devices, worlds := gpus(t, size)
		for _, c := range streamed {
			require.NoError(t, members(worlds, func(w *dist.World) error {
				d := devices[w.Rank()]
				for _, o := range [][]batch.Option{nil, {batch.WithoutFusion()}, {batch.WithProfile()}} {
					b := batch.New(d, o...)
					x := []float32{float32(w.Rank() + 1), 2, 3, 4, 5, 6}
					list := c.record(b, w, b.Upload(x))
					plan, err := b.Compile(t.Context())
					if err != nil {
						return err
					}
					const runs = 5
					before := d.Stats()
					for run := range runs {
						if err := plan.Run(t.Context()); err != nil {
							return fmt.Errorf("%s, run %d: %w", c.name, run, err)
						}
						if got, want := resultsOf(list), c.check(w.Rank(), size); got != want {
							return fmt.Errorf("%s, run %d: %s, not %s\n%s", c.name, run, got, want, plan)
						}
					}
					if made := d.Stats().Runs - before.Runs; made != runs {
						return fmt.Errorf("%s: %d programs ran, not %d: the batch was cut", c.name, made, runs)
					}
					replays := d.Stats().Replays - before.Replays
					if profiled := len(o) > 0 && replays == 0; replays != runs-2 && !profiled {
						return fmt.Errorf("%s: %d replays\n%s", c.name, replays, plan)
					}
					if err := plan.Close(); err != nil {
						return err
					}
				}
				return nil
			}), c.name)
		}
		require.NoError(t, members(worlds, func(w *dist.World) error { return w.Close() }))
	}
}

// TestStreamsOfTensors has the graph of a plan be given other tensors, also on one member only, and updates them in place.
func TestStreamsOfTensors(t *testing.T) {
	devices, worlds := gpus(t, 2)
	require.NoError(t, members(worlds, func(w *dist.World) error {
		ctx, d := t.Context(), devices[w.Rank()]
		var tensors []compute.Tensor
		for range 2 {
			x, err := d.Upload(ctx, []float32{1, 2, 3, 4}, 2, 2)
			if err != nil {
				return err
			}
			defer x.Close()
			tensors = append(tensors, x)
		}
		b := batch.New(d)
		in := b.Import(tensors[0])
		sum := b.AllReduce(b.Scale(in, 2), w, dist.Sum)
		old := b.Read(b.Add(b.Neg(sum), in)) // before the update
		b.ScatterAdd(in, b.Upload([]int32{0, 1}), sum)
		plan, err := b.Compile(ctx)
		if err != nil {
			return err
		}
		defer plan.Close()
		now := [2]float32{1, 1} // the first element of each tensor: both members have the same
		for run := range 8 {
			which := 0
			if run >= 4 {
				which = run % 2
			}
			if err := plan.SetTensor(in, tensors[which]); err != nil {
				return err
			}
			if err := plan.Run(ctx); err != nil {
				return fmt.Errorf("run %d: %w", run, err)
			}
			if got := old.Float32s()[0]; got != -3*now[which] {
				return fmt.Errorf("run %d: %v, not %v", run, got, -3*now[which])
			}
			now[which] *= 5
			got := make([]float32, 4)
			if err := tensors[which].ReadAsync(got).Await(ctx); err != nil {
				return err
			}
			if got[0] != now[which] {
				return fmt.Errorf("run %d: the tensor holds %v, not %v", run, got[0], now[which])
			}
		}
		if r := d.Stats().Replays; r != 6 {
			return fmt.Errorf("%d replays", r)
		}
		return nil
	}))
	require.NoError(t, members(worlds, func(w *dist.World) error { return w.Close() }))
}

// TestStreamsOrNot has the host carry out what streams cannot, and all members do the same where only one of them has to.
func TestStreamsOrNot(t *testing.T) {
	devices, worlds := gpus(t, 2)
	host, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer host.Close()
	require.NoError(t, members(worlds, func(w *dist.World) error {
		half, err := w.Split(t.Context(), 0, 0)
		if err != nil {
			return err
		}
		cases := []func(b *batch.Batch, x batch.Value) batch.Value{
			func(b *batch.Batch, x batch.Value) batch.Value { return b.AllReduce(x, w, dist.Max) },
			func(b *batch.Batch, x batch.Value) batch.Value {
				b.AllReduce(x, half, dist.Sum)
				return b.AllReduce(x, w, dist.Max)
			},
			func(b *batch.Batch, x batch.Value) batch.Value {
				return b.Broadcast(x, w, 1)
			},
		}
		for i, record := range cases {
			var d batch.Device = devices[w.Rank()]
			if i == 2 && w.Rank() == 1 {
				d = host
			}
			b := batch.New(d)
			r := b.Read(b.Neg(record(b, b.Scale(b.Upload([]float32{float32(w.Rank()), 5}), 2))))
			plan, err := b.Compile(t.Context())
			if err != nil {
				return err
			}
			before := devices[w.Rank()].Stats().Runs
			if err := plan.Run(t.Context()); err != nil {
				return err
			}
			if got := fmt.Sprint(r.Float32s()); got != "[-2 -10]" {
				return fmt.Errorf("case %d: %s", i, got)
			}
			if runs := devices[w.Rank()].Stats().Runs - before; (i < 2 || w.Rank() == 0) && runs != 2 {
				return fmt.Errorf("case %d: %d programs ran: the batch was not cut", i, runs)
			}
			plan.Close()
		}
		return half.Barrier(t.Context())
	}))
	require.NoError(t, members(worlds, func(w *dist.World) error { return w.Close() }))
}

// TestStreamsInRankOrder has the world's sums be in the order of ranks, which NCCL's are not.
func TestStreamsInRankOrder(t *testing.T) {
	devices, worlds := gpus(t, 3, dist.WithRankOrder(), dist.WithTimeout(time.Minute))
	require.NoError(t, members(worlds, func(w *dist.World) error {
		b := batch.New(devices[w.Rank()])
		x := []float32{[]float32{1, 1e8, -1e8}[w.Rank()]}
		r := b.Read(b.AllReduce(b.Upload(x), w, dist.Sum))
		if err := b.Run(t.Context()); err != nil {
			return err
		}
		if r.Float32s()[0] != 0 {
			return fmt.Errorf("the sum is %v", r.Float32s())
		}
		return nil
	}))
	require.NoError(t, members(worlds, func(w *dist.World) error { return w.Close() }))
}

// TestStreamsFailure has a member fail before its collective: its group is broken, and the other one waits for it.
func TestStreamsFailure(t *testing.T) {
	devices, worlds := gpus(t, 2)
	err := members(worlds, func(w *dist.World) error {
		d := devices[w.Rank()]
		tensor, err := d.Upload(t.Context(), []float32{1, 2})
		if err != nil {
			return err
		}
		b := batch.New(d)
		b.Read(b.AllReduce(b.Scale(b.Import(tensor), 2), w, dist.Sum))
		plan, err := b.Compile(t.Context())
		if err != nil || w.Rank() == 0 {
			return err
		}
		defer plan.Close()
		tensor.Close()
		return plan.Run(t.Context())
	})
	require.ErrorIs(t, err, compute.ErrClosed)
	require.ErrorIs(t, err, dist.ErrBroken)
	require.ErrorContains(t, err, "rank 1 of world: all_reduce[sum], call ")
	require.ErrorContains(t, err, "stream_test.go:")
	require.Equal(t, worlds[1].Close(), worlds[1].Barrier(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, worlds[0].Barrier(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, worlds[0].Close(), dist.ErrBroken)
}

func TestLocalNCCLArguments(t *testing.T) {
	d, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer d.Close()
	_, err = dist.LocalNCCL(t.Context(), nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = dist.LocalNCCL(t.Context(), []dist.Device{d})
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = dist.LocalNCCL(t.Context(), []dist.Device{nil})
	require.ErrorIs(t, err, compute.ErrArgument)
	devices, _ := devicesOf(t, "cuda", 1)
	_, err = dist.LocalNCCL(t.Context(), []dist.Device{devices[0]}, nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	t.Setenv(dist.NCCLLibraryVariable, "libnothing.so.1")
	_, err = dist.LocalNCCL(t.Context(), []dist.Device{devices[0]})
	require.ErrorIs(t, err, compute.ErrUnavailable)
}
