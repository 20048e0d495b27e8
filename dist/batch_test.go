//go:build !js

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/gpu"
)

// withTensors is a device with tensors.
type withTensors interface {
	dist.Device
	Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, error)
	Close() error
}

// devicesOf opens n devices of a kind, which share nothing.
func devicesOf(t *testing.T, kind string, n int) ([]withTensors, []*dist.Group) {
	t.Helper()
	list, of := make([]withTensors, n), make([]dist.Device, n)
	for i := range list {
		var err error
		switch kind {
		case "cpu":
			list[i], err = cpu.Open(t.Context())
		case "cuda":
			list[i], err = cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithCache(t.TempDir()))
		case "gpu":
			list[i], err = gpu.Open(t.Context(), gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff))
		}
		require.NoError(t, err)
		t.Cleanup(func() { list[i].Close() })
		of[i] = list[i]
	}
	groups, err := dist.Local(of...)
	require.NoError(t, err)
	return list, groups
}

// kinds are those of devices; the race detector would take long to watch software GPUs.
func kinds() []string {
	if testing.Short() {
		return []string{"cpu"}
	}
	return []string{"cpu", "cuda", "gpu"}
}

// TestBatch runs a batch with every collective on several devices of each kind.
func TestBatch(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			devices, groups := devicesOf(t, kind, 3)
			require.NoError(t, each(groups, func(g *dist.Group) error { return collectiveBatch(devices[g.Rank()], g) }))
		})
	}
}

// collectiveBatch records all collectives and steps that need them, that they need, and neither, and compares with what the members' data
// give. The numbers are small integers, whose sums are exact.
func collectiveBatch(d withTensors, g *dist.Group) error {
	ctx, size, rank := context.Background(), g.Size(), g.Rank()
	rows := 2 * size
	of := func(r, i int) float32 { return float32((i*7+r*5)%11 - 5) } // element i of rank r
	x, state := make([]float32, rows*3), make([]float32, rows*3)
	for i := range x {
		x[i] = of(rank, i)
		state[i] = float32(i % 4)
	}
	tensor, err := d.Upload(ctx, state, rows, 3)
	if err != nil {
		return err
	}
	defer tensor.Close()
	b := batch.New(d)
	in := b.Upload(x, rows, 3)
	kept := b.Import(tensor)
	twice := b.Scale(in, 2)
	before := b.Read(b.Add(kept, in)) // needs no collective, and the tensor before it changes
	sum := b.AllReduce(twice, g, dist.Sum)
	most := b.AllReduce(in, g, dist.Max)
	alone := b.Read(b.Scale(twice, 3))
	gathered := b.AllGather(b.Sub(twice, in), g)
	scattered := b.ReduceScatter(b.Add(sum, in), g, dist.Min)
	exchanged := b.AllToAll(in, g)
	root := b.Broadcast(in, g, size-1)
	met := b.Barrier(b.Scale(root, 2), g)
	ignored := b.AllReduce(most, g, dist.Sum) // carried out though nobody uses it
	_ = ignored
	every := b.Mul(b.Scale(sum, 0.5), root)
	index := make([]int32, rows)
	for i := range index {
		index[i] = int32(i)
	}
	updated := b.ScatterAdd(kept, b.Upload(index), every)
	again := b.AllReduce(updated, g, dist.Sum)
	keep := b.Keep(b.Neg(again))
	keepSum := b.Keep(sum)
	read := map[string]*batch.Result{"sum": b.Read(sum), "most": b.Read(most), "gathered": b.Read(gathered), "scattered": b.Read(scattered),
		"exchanged": b.Read(exchanged), "root": b.Read(root), "met": b.Read(met), "again": b.Read(again), "updated": b.Read(updated), "before": before, "alone": alone}
	if size > 1 {
		if rank == 0 {
			b.Send(twice, g, size-1)
		} else if rank == size-1 {
			read["received"] = b.Read(b.Scale(b.Recv(g, 0, compute.Float32, rows, 3), 2))
		}
	}
	plan, err := b.Compile(ctx)
	if err != nil {
		return err
	}
	defer plan.Close()
	for _, part := range []string{"all_reduce[sum](", "all_gather(", "reduce_scatter[min](", "all_to_all(", "broadcast[from ", "barrier("} {
		if !strings.Contains(plan.String(), part) {
			return fmt.Errorf("the plan does not list %s:\n%s", part, plan)
		}
	}
	want := map[string][]float32{}
	sumOf := func(i int) (s float32) {
		for r := range size {
			s += 2 * of(r, i)
		}
		return s
	}
	now := append([]float32(nil), state...) // what the tensor holds, the same for all members
	for run := range 3 {
		for i := range x {
			m := of(0, i)
			for r := range size {
				m = max(m, of(r, i))
			}
			put := func(name string, v float32) {
				if run == 0 || len(want[name]) < len(x) {
					want[name] = append(want[name], v)
				} else {
					want[name][i] = v
				}
			}
			put("before", now[i]+x[i])
			put("sum", sumOf(i))
			put("most", m)
			put("alone", 6*x[i])
			put("root", of(size-1, i))
			put("met", 2*of(size-1, i))
			put("received", 4*of(0, i))
			now[i] += 0.5 * sumOf(i) * of(size-1, i)
			put("updated", now[i])
			put("again", float32(size)*now[i])
			part, at := i/(6), i%6 // which member's part of two rows
			put("exchanged", of(part, rank*6+at))
			if i < 6 && run == 0 {
				v := sumOf(rank*6+i) + of(0, rank*6+i)
				for r := range size {
					v = min(v, sumOf(rank*6+i)+of(r, rank*6+i))
				}
				want["scattered"] = append(want["scattered"], v)
			}
		}
		if run == 0 {
			for r := range size {
				for i := range x {
					want["gathered"] = append(want["gathered"], of(r, i))
				}
			}
		}
		if err := plan.Run(ctx); err != nil {
			return err
		}
		for name, r := range read {
			if fmt.Sprint(r.Float32s()) != fmt.Sprint(want[name]) {
				return fmt.Errorf("run %d, rank %d, %s: %v, not %v\n%s", run, rank, name, r.Float32s(), want[name], plan)
			}
		}
		for _, k := range []struct {
			of    *batch.Kept
			want  []float32
			scale float32
		}{{keep, want["again"], -1}, {keepSum, want["sum"], 1}} {
			got := make([]float32, len(x))
			out := k.of.Tensor()
			if err := out.ReadAsync(got).Await(ctx); err != nil {
				return err
			}
			out.Close()
			for i := range got {
				if got[i] != k.scale*k.want[i] {
					return fmt.Errorf("run %d, rank %d: kept element %d is %v, not %v", run, rank, i, got[i], k.scale*k.want[i])
				}
			}
		}
	}
	return nil
}

// TestBatchBarrier has a member come later than the others to a barrier of a compiled plan.
func TestBatchBarrier(t *testing.T) {
	devices, groups := devicesOf(t, "cpu", 3)
	var late atomic.Bool
	compiled := make(chan bool, len(groups))
	require.NoError(t, each(groups, func(g *dist.Group) error {
		b := batch.New(devices[g.Rank()])
		result := b.Read(b.Barrier(b.Upload([]float32{float32(g.Rank())}), g))
		plan, err := b.Compile(t.Context()) // which is a meeting of its own
		compiled <- true
		if err != nil {
			return err
		}
		defer plan.Close()
		if g.Rank() == 1 {
			for range groups {
				<-compiled
			}
			time.Sleep(30 * time.Millisecond)
			late.Store(true)
		}
		if err := plan.Run(t.Context()); err != nil {
			return err
		}
		if !late.Load() || result.Float32s()[0] != float32(g.Rank()) {
			return fmt.Errorf("rank %d passed with %v before another came", g.Rank(), result.Float32s())
		}
		return nil
	}))
}

// TestBatchUpdates has a tensor updated by a step that needs no collective, while one that reads what it was before needs one; and a value
// between steps updated when the caller keeps it, which must stay what it was.
func TestBatchUpdates(t *testing.T) {
	for _, kind := range kinds() {
		devices, groups := devicesOf(t, kind, 2)
		require.NoError(t, each(groups, func(g *dist.Group) error {
			ctx, d := t.Context(), devices[g.Rank()]
			tensor, err := d.Upload(ctx, []float32{1, 2, 3, 4}, 2, 2)
			if err != nil {
				return err
			}
			defer tensor.Close()
			b := batch.New(d)
			x := b.Upload([]float32{10, 20, 30, 40}, 2, 2)
			index := b.Upload([]int32{0, 1})
			state := b.Import(tensor)
			sum := b.AllReduce(b.Neg(x), g, dist.Sum)
			old := b.Read(b.Add(sum, state))
			b.ScatterAdd(state, index, x)
			between := b.Scale(x, 3)
			keep := b.Keep(between)
			changed := b.Read(b.ScatterAdd(between, index, sum))
			for run := range 2 {
				if err := b.Run(ctx); err != nil {
					return err
				}
				kept, now := make([]float32, 4), make([]float32, 4)
				of := keep.Tensor()
				if err := errors.Join(of.ReadAsync(kept).Await(ctx), tensor.ReadAsync(now).Await(ctx), of.Close()); err != nil {
					return err
				}
				got := fmt.Sprint(old.Float32s(), changed.Float32s(), kept, now)
				want := "[-19 -38 -57 -76] [10 20 30 40] [30 60 90 120] [11 22 33 44]"
				if run == 1 {
					want = "[-9 -18 -27 -36] [10 20 30 40] [30 60 90 120] [21 42 63 84]"
				}
				if got != want {
					return fmt.Errorf("%s, run %d: %s, not %s", kind, run, got, want)
				}
			}
			return nil
		}))
	}
}

// TestBatchOverlap has steps that need no collective run while one waits: another member begins it only when they are done.
func TestBatchOverlap(t *testing.T) {
	devices, groups := devicesOf(t, "cpu", 2)
	b := batch.New(devices[0])
	tensor, err := devices[0].Upload(t.Context(), []float32{0, 0}, 1, 2)
	require.NoError(t, err)
	x := b.Upload([]float32{1, 2}, 1, 2)
	r := b.Read(b.AllReduce(b.Scale(x, 2), groups[0], dist.Sum))
	b.ScatterAdd(b.Import(tensor), b.Upload([]int32{0}), x)
	run := make(chan error)
	go func() { run <- b.Run(t.Context()) }()
	other := batch.New(devices[1])
	other.AllReduce(other.Upload([]float32{5, 6}, 1, 2), groups[1], dist.Sum)
	plan, err := other.Compile(t.Context())
	require.NoError(t, err)
	got := make([]float32, 2)
	require.Eventually(t, func() bool {
		return tensor.ReadAsync(got).Await(t.Context()) == nil && got[1] == 2
	}, time.Minute, time.Millisecond, "the update waits for the collective")
	select {
	case err := <-run:
		t.Fatalf("the run has ended before the collective: %v", err)
	default:
	}
	require.NoError(t, plan.Run(t.Context()))
	require.NoError(t, <-run)
	require.Equal(t, []float32{7, 10}, r.Float32s())
}

// TestBatchProfile times collectives as steps.
func TestBatchProfile(t *testing.T) {
	devices, groups := devicesOf(t, "cpu", 2)
	require.NoError(t, each(groups, func(g *dist.Group) error {
		b := batch.New(devices[g.Rank()], batch.WithProfile())
		b.Read(b.AllReduce(b.Scale(b.Upload(make([]float32, 1000)), 2), g, dist.Sum))
		plan, err := b.Compile(t.Context())
		if err != nil {
			return err
		}
		defer plan.Close()
		if err := plan.Run(t.Context()); err != nil {
			return err
		}
		p, err := plan.Profile()
		if err != nil {
			return err
		}
		if len(p.Steps) != 2 || p.Steps[1].Operation != "all_reduce[sum]" || p.Steps[1].Time <= 0 {
			return fmt.Errorf("profile: %+v", p.Steps)
		}
		return nil
	}))
}

// TestBatchMismatch has members record different things, of which Compile tells all of them; the group stays whole.
func TestBatchMismatch(t *testing.T) {
	devices, groups := devicesOf(t, "cpu", 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() {
			b := batch.New(devices[i])
			x := b.Upload(make([]float32, 4+2*i))
			b.Read(b.AllReduce(b.Upload([]float32{1}), g, dist.Sum))
			b.Read(b.AllReduce(x, g, dist.Mean))
			_, errs[i] = b.Compile(t.Context())
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.ErrorIs(t, err, dist.ErrMismatch)
		require.ErrorContains(t, err, "collective 2 of the batches for local: rank 0 has all_reduce[mean] [[4]], rank 1 has all_reduce[mean] [[6]]")
		require.ErrorContains(t, err, fmt.Sprintf("rank %d recorded it at ", i))
		require.ErrorContains(t, err, "batch_test.go:")
	}
	require.NoError(t, each(groups, func(g *dist.Group) error { return g.Barrier(t.Context()) }))
}

// TestBatchFailure has a member fail between compiling and a collective: the others learn of it.
func TestBatchFailure(t *testing.T) {
	devices, groups := devicesOf(t, "cpu", 2)
	err := each(groups, func(g *dist.Group) error {
		d := devices[g.Rank()]
		tensor, err := d.Upload(t.Context(), []float32{1, 2})
		if err != nil {
			return err
		}
		b := batch.New(d)
		sum := b.AllReduce(b.Scale(b.Import(tensor), 2), g, dist.Sum)
		b.Read(sum)
		b.Keep(b.Neg(sum))
		plan, err := b.Compile(t.Context())
		if err != nil {
			return err
		}
		defer plan.Close()
		if g.Rank() == 1 {
			tensor.Close()
		}
		return fmt.Errorf("rank %d: %w", g.Rank(), plan.Run(t.Context()))
	})
	require.ErrorIs(t, err, compute.ErrClosed)
	require.ErrorIs(t, err, dist.ErrBroken)
	require.ErrorContains(t, err, "rank 0: all_reduce[sum], recorded at ")
	var broken *dist.BrokenError
	require.True(t, errors.As(groups[0].Barrier(t.Context()), &broken))
	require.Equal(t, 1, broken.Rank)
	require.Contains(t, broken.Caller, "batch_test.go:")
}

func TestBatchArguments(t *testing.T) {
	devices, groups := devicesOf(t, "cpu", 2)
	g := groups[0]
	for name, c := range map[string]struct {
		record func(b *batch.Batch, x batch.Value)
		want   error
	}{
		"no group":    {func(b *batch.Batch, x batch.Value) { b.AllReduce(x, nil, dist.Sum) }, compute.ErrArgument},
		"typed nil":   {func(b *batch.Batch, x batch.Value) { b.AllReduce(x, (*dist.Group)(nil), dist.Sum) }, compute.ErrArgument},
		"odd rows":    {func(b *batch.Batch, x batch.Value) { b.ReduceScatter(x, g, dist.Sum) }, compute.ErrShape},
		"scalar":      {func(b *batch.Batch, x batch.Value) { b.AllGather(b.Scalar(1), g) }, compute.ErrShape},
		"root":        {func(b *batch.Batch, x batch.Value) { b.Broadcast(x, g, 2) }, compute.ErrArgument},
		"to itself":   {func(b *batch.Batch, x batch.Value) { b.Send(x, g, 0) }, compute.ErrArgument},
		"from nobody": {func(b *batch.Batch, x batch.Value) { b.Recv(g, -1, compute.Float32, 1) }, compute.ErrArgument},
		"mean":        {func(b *batch.Batch, x batch.Value) { b.AllReduce(b.Upload([]int32{1}), g, dist.Mean) }, compute.ErrDType},
		"reduction":   {func(b *batch.Batch, x batch.Value) { b.AllReduce(x, g, 9) }, compute.ErrArgument},
		"no value":    {func(b *batch.Batch, x batch.Value) { b.AllReduce(batch.Value{}, g, dist.Sum) }, compute.ErrArgument},
	} {
		b := batch.New(devices[0])
		c.record(b, b.Upload(make([]float32, 3)))
		require.ErrorIs(t, b.Err(), c.want, name)
	}
	b := batch.New(devices[0], batch.WithGuard(batch.NaN, batch.Stop))
	b.Read(b.AllReduce(b.Upload([]float32{1}), g, dist.Sum))
	_, err := b.Compile(t.Context())
	require.ErrorIs(t, err, compute.ErrUnsupported)
}

// TestBatchForks has runs of a plan and its fork come one after the other, also if the plan is closed meanwhile.
func TestBatchForks(t *testing.T) {
	devices, groups := devicesOf(t, "cpu", 2)
	require.NoError(t, each(groups, func(g *dist.Group) error {
		b := batch.New(devices[g.Rank()])
		x := []float32{1, 2, 3}
		in := b.Upload(x)
		r := b.Read(b.Scale(b.AllReduce(b.Scale(in, 2), g, dist.Sum), 10))
		plan, err := b.Compile(t.Context())
		if err != nil {
			return err
		}
		fork, err := plan.Fork()
		if err != nil {
			return err
		}
		if err := fork.SetInput(in, []float32{5, 6, 7}); err != nil {
			return err
		}
		first, second := plan.Start(), fork.Start()
		x[0] = 100 // inputs have been read
		plan.Close()
		fork.Close()
		if err := errors.Join(first.Await(t.Context()), second.Await(t.Context())); err != nil {
			return err
		}
		of, err := fork.Result(r)
		if err != nil {
			return err
		}
		if got := fmt.Sprint(r.Float32s(), of.Float32s()); got != "[40 80 120] [200 240 280]" {
			return fmt.Errorf("rank %d: %s", g.Rank(), got)
		}
		return nil
	}))
}
