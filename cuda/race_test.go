package cuda

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/program"
)

// crowd is what goroutines share.
type crowd struct {
	*core
	exec  *executable // of chain, 5 rows
	w     compute.Tensor
	graph *Graph
	sum   *Buffer[float32] // to which the graph adds one
	runs  atomic.Int64     // of the graph
}

func newCrowd(c *core) *crowd {
	x := &crowd{core: c, w: uploadRandom(c.t, c.Device, rand.New(rand.NewPCG(1, 2)), 7, 7), sum: c.numbers(0)}
	x.exec = compile(c.t, c.Device, chain(c.t, 5))
	x.graph, _ = c.captured(c.stream(StreamOptions{}), x.sum, x.sum, [2]float32{1, 1})
	return x
}

// jobs are what a goroutine may do; each checks its results.
func (x *crowd) jobs() []func(rng *rand.Rand) error {
	ctx := context.Background()
	d := x.Device
	io := chainIO(rand.New(rand.NewPCG(3, 4)), 5, x.w)
	want := direct(x.t, d, x.exec.prog, io)
	return []func(rng *rand.Rand) error{
		func(*rand.Rand) error { // the shared program
			mine := &program.IO{Host: io.Host, Tensors: io.Tensors, Read: []any{make([]float32, 35), make([]float32, 1), make([]float32, 35)}}
			if err := x.exec.Start(mine).Await(ctx); err != nil {
				return err
			}
			return equal(want[0].([]float32), mine.Read[0].([]float32), "program")
		},
		func(rng *rand.Rand) error { // a batch of one's own, with a user's kernel
			n := 1 + rng.IntN(100)
			data := randomFloats(rng, n)
			b := batch.New(d)
			r := b.Read(b.Add(b.Kernel(x.scale, scaleStep(n, 2, 0).Options, compute.Float32, []int{n}, b.Upload(data)), b.Scalar(1)))
			if err := b.Start().Await(ctx); err != nil {
				return err
			}
			for i := range data {
				data[i] = 2*data[i] + 1
			}
			return equal(data, r.Float32s(), "batch")
		},
		func(rng *rand.Rand) error { // a stream with recordings
			s, err := d.NewStream(StreamOptions{Timed: rng.IntN(2) == 0})
			if err != nil {
				return err
			}
			defer s.Close()
			return x.record(s, rng)
		},
		func(*rand.Rand) error { // the shared graph
			s, err := d.NewStream(StreamOptions{})
			if err != nil {
				return err
			}
			defer s.Close()
			r, err := s.Begin()
			if err != nil {
				return err
			}
			replayed := r.Replay(x.graph)
			w, err := r.Submit()
			if err != nil {
				return err
			}
			if replayed == nil {
				x.runs.Add(1)
			}
			_, err = w.Wait(ctx)
			return err
		},
		func(rng *rand.Rand) error { // a tensor, and what is kept of it
			data := randomFloats(rng, 1+rng.IntN(5000))
			t, err := d.Upload(ctx, data)
			if err != nil {
				return err
			}
			defer t.Close()
			got := make([]float32, len(data))
			if err := t.(*Tensor).ReadAsync(got).Await(ctx); err != nil {
				return err
			}
			return equal(data, got, "tensor")
		},
		func(rng *rand.Rand) error { // a module
			m, err := d.Load(coreText)
			if err != nil {
				return err
			}
			defer m.Close()
			k, err := m.Kernel("scale")
			if err != nil {
				return err
			}
			b := batch.New(d)
			r := b.Read(b.Kernel(k, scaleStep(1, 3, 1).Options, compute.Float32, []int{1}, b.Upload([]float32{2})))
			if err := b.Start().Await(ctx); err != nil {
				return err
			}
			return equal([]float32{7}, r.Float32s(), "module")
		},
		func(rng *rand.Rand) error {
			if rng.IntN(4) == 0 {
				if err := d.Trim(); err != nil {
					return err
				}
			}
			if _, err := d.Memory(); err != nil {
				return err
			}
			return d.Synchronize()
		},
	}
}

// record uploads, computes and downloads on a stream, by single launches or a graph of its own.
func (x *crowd) record(s *Stream, rng *rand.Rand) error {
	ctx := context.Background()
	n := 1 + rng.IntN(300)
	data := randomFloats(rng, n)
	b, err := Alloc[float32](x.Device, n)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Upload(ctx, data); err != nil {
		return err
	}
	var g *Graph
	if rng.IntN(2) == 0 {
		g, err = s.Capture(func(c *Capture) error {
			_, err := c.Launch(x.scale, over(n), scaleArgs(b, b, 2, 1)...)
			return err
		})
		if err != nil {
			return err
		}
		defer g.Close()
	}
	r, err := s.Begin()
	if err != nil {
		return err
	}
	if g != nil {
		_ = r.Replay(g)
	} else {
		_ = r.Launch(x.scale, over(n), scaleArgs(b, b, 2, 1)...)
	}
	w, err := r.Submit()
	if err != nil {
		return err
	}
	if _, err := w.Wait(ctx); err != nil {
		return err
	}
	got := make([]float32, n)
	if err := b.Download(ctx, got); err != nil {
		return err
	}
	for i := range data {
		data[i] = float32(float64(data[i])*2 + 1)
	}
	return equal(data, got, "stream")
}

func equal(want, got []float32, what string) error {
	if !slices.Equal(want, got) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// noGoroutines waits until none is left that belongs to a device.
func noGoroutines(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	mine := func() (left []string) {
		for i, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if i > 0 && strings.Contains(g, "/cuda.") {
				left = append(left, g)
			}
		}
		return left
	}
	for begin := time.Now(); len(mine()) > 0; time.Sleep(time.Millisecond) {
		require.Less(t, time.Since(begin), time.Minute, "%v", mine())
	}
}

// Eight goroutines share a device, and do everything there is at once.
func TestCrowd(t *testing.T) {
	x := newCrowd(newCore(t))
	jobs := x.jobs()
	iterations := 40
	if testing.Short() {
		iterations = 12
	}
	seed := randomSource(t)
	var wg sync.WaitGroup
	for range 8 {
		rng := rand.New(rand.NewPCG(seed.Uint64(), 0))
		wg.Go(func() {
			for range iterations {
				noError(t, jobs[rng.IntN(len(jobs))](rng))
			}
		})
	}
	wg.Wait()
	require.Equal(t, []float32{float32(x.runs.Load())}, x.read(x.sum))
	require.EqualValues(t, 1, x.module.holders.Load()-1, "the test's and the graph's")
}

// The device is closed in the midst of it: what was begun ends well, what comes later is told so, and nothing stays behind.
func TestCrowdAtClosing(t *testing.T) {
	seed := randomSource(t)
	iterations := 5
	if testing.Short() {
		iterations = 2
	}
	for range iterations {
		m := newMachine(t, softgpu.Config{})
		d, err := Open(t.Context(), m.on, WithoutCache())
		require.NoError(t, err)
		x := newCrowd(coreOn(t, m, d))
		jobs := x.jobs()
		var wg sync.WaitGroup
		for range 8 {
			rng := rand.New(rand.NewPCG(seed.Uint64(), 0))
			wg.Go(func() {
				for {
					err := jobs[rng.IntN(len(jobs))](rng)
					if err == nil {
						continue
					}
					if !errors.Is(err, compute.ErrClosed) {
						t.Error(err)
					}
					return
				}
			})
		}
		time.Sleep(time.Duration(seed.IntN(10)) * time.Millisecond)
		require.NoError(t, d.Close())
		wg.Wait()
		require.Eventually(t, func() bool { return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)
	}
	noGoroutines(t)
}

// Ten thousand launches, by recordings, graphs and programs, leave the heap, the driver's memory and its handles as they were.
func TestNoGrowth(t *testing.T) {
	c := newCore(t)
	s := c.stream(StreamOptions{Timed: true})
	b := c.numbers(1)
	g, _ := c.captured(s, b, b, [2]float32{1, 0}, [2]float32{1, 0}, [2]float32{1, 0}, [2]float32{1, 0})
	p := &program.Program{}
	v := p.Add(f32(1), program.FromHost)
	for range worthwhile {
		v = applied(t, p, c.scale, scaleStep(1, 1, 0), f32(1), v)
	}
	p.Read = []program.Slot{v}
	replayed := compile(t, c.Device, p)
	single := &program.Program{}
	v = single.Add(f32(1), program.FromHost)
	single.Keep = []program.Slot{applied(t, single, c.scale, scaleStep(1, 1, 0), f32(1), v)}
	launched := compile(t, c.Device, single)
	host, result := []any{[]float32{1}}, []any{make([]float32, 1)}
	round := func() (launches int) {
		r := begun(t, s)
		for range 20 {
			c.times(r, b, 1, 0)
		}
		require.NoError(t, r.Replay(g))
		finished(t, submitted(t, r))
		ran(t, replayed, &program.IO{Host: host, Read: result})
		kept := &program.IO{Host: host}
		ran(t, launched, kept)
		require.NoError(t, kept.Keep[0].Close())
		return 20 + g.Nodes() + worthwhile + 1
	}
	state := func() (heap uint64, live softgpu.Live, m Memory) {
		require.NoError(t, c.Synchronize())
		var stats runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&stats)
		m = c.memoryThen(t)
		m.Reused, m.Host.Reused = 0, 0
		return stats.HeapAlloc, c.m.Live(), m
	}
	launches, most := 0, 10_000
	if testing.Short() {
		most = 2_000
	}
	for range 50 {
		round()
	}
	heap, live, memory := state()
	for launches < most {
		launches += round()
	}
	heap2, live2, memory2 := state()
	t.Logf("%d launches: heap of %d bytes, then %d; %v", launches, heap, heap2, live2)
	require.InDelta(t, live.Events, live2.Events, 4, "how many are under way at once varies")
	live2.Events = live.Events
	require.Equal(t, live, live2)
	require.Equal(t, memory, memory2)
	require.Less(t, heap2, heap+100_000)
	for _, used := range []any{b, g, replayed, launched} { // the collector would close them
		runtime.KeepAlive(used)
	}
}
