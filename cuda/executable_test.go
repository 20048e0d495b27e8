package cuda

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/program"
)

// chain is softmax(relu(x·w + y) + x) with sums over all of it: steps with scratch memory, inputs of all kinds.
func chain(t testing.TB, n int) *program.Program {
	p := &program.Program{}
	x, y := p.Add(f32(n, 7), program.FromHost), p.Add(f32(n, 7), program.FromHost)
	w := p.Add(f32(7, 7), program.FromTensor)
	a := with(t, p, "matmul", program.Attr{Options: compute.MatMulOptions{}}, x, w)
	a = with(t, p, "add", program.Attr{}, a, y)
	a = with(t, p, "relu", program.Attr{}, a)
	b := with(t, p, "softmax", program.Attr{}, with(t, p, "add", program.Attr{}, a, x))
	sum := with(t, p, "sum", program.Attr{Options: compute.AllAxes}, b)
	p.Read = []program.Slot{b, sum, a}
	return p
}

// chainIO is random data for a chain.
func chainIO(rng *rand.Rand, n int, w compute.Tensor) *program.IO {
	return &program.IO{Host: []any{randomFloats(rng, 7*n), randomFloats(rng, 7*n)}, Tensors: []compute.Tensor{w},
		Read: []any{make([]float32, 7*n), make([]float32, 1), make([]float32, 7*n)}}
}

// direct is what the program gives without graphs.
func direct(t testing.TB, d *Device, p *program.Program, io *program.IO) []any {
	t.Helper()
	x := compile(t, d, p)
	defer x.Close()
	want := &program.IO{Host: io.Host, Tensors: io.Tensors, Scalars: io.Scalars}
	for _, s := range p.Read {
		want.Read = append(want.Read, program.MakeSlice(p.Values[s].Type))
	}
	x.refused = true
	ran(t, x, want)
	return want.Read
}

func uploadRandom(t testing.TB, d *Device, rng *rand.Rand, shape ...int) compute.Tensor {
	t.Helper()
	n := 1
	for _, s := range shape {
		n *= s
	}
	x, err := d.Upload(context.Background(), randomFloats(rng, n), shape...)
	require.NoError(t, err)
	return x
}

// After a few runs a program is a graph, whose results are bit by bit those of single calls: with other inputs, with other
// contents of the same tensor's memory, and with other tensors.
func TestReplay(t *testing.T) {
	d := softDevice(t)
	rng := randomSource(t)
	n := 1 + rng.IntN(40)
	if testing.Short() {
		n = 1 + n%8
	}
	p := chain(t, n)
	x := compile(t, d, p)
	replays := func() uint64 { return d.Stats().Replays }
	run := func(w compute.Tensor) {
		t.Helper()
		io := chainIO(rng, n, w)
		ran(t, x, io)
		require.Equal(t, direct(t, d, p, io), io.Read)
	}
	w := uploadRandom(t, d, rng, 7, 7)
	for range warmUp {
		run(w)
	}
	require.Zero(t, replays())
	for i := range 4 {
		run(w)
		require.EqualValues(t, i+1, replays())
	}
	// One more graph for the second tensor; none for tensors that come once; the oldest makes room for one that stays.
	second := uploadRandom(t, d, rng, 7, 7)
	defer second.Close() // or the collector makes room for the third
	run(second)
	run(w)
	require.EqualValues(t, 6, replays())
	for range 3 {
		passing := uploadRandom(t, d, rng, 7, 7)
		defer passing.Close()
		run(passing)
	}
	require.EqualValues(t, 6, replays())
	require.Equal(t, mostGraphs, x.made)
	third := uploadRandom(t, d, rng, 7, 7)
	run(third)
	for range 3 {
		run(third)
	}
	require.EqualValues(t, 9, replays())
	require.Equal(t, mostGraphs, x.made)
	require.EqualValues(t, 15+15+6, d.Stats().Runs, "runs, direct ones, uploads")

	require.NoError(t, third.Close())
	io := chainIO(rng, n, third)
	require.ErrorIs(t, x.Start(io).Await(t.Context()), compute.ErrClosed)
	require.NoError(t, x.Close())
	require.ErrorIs(t, x.Start(chainIO(rng, n, w)).Await(t.Context()), compute.ErrClosed)
}

// The memory of a tensor whose contents have changed is read anew.
func TestReplayReadsTensorsAnew(t *testing.T) {
	c := newCore(t)
	rng := randomSource(t)
	p := chain(t, 3)
	x := compile(t, c.Device, p)
	w := uploadRandom(t, c.Device, rng, 7, 7)
	at, err := w.(*Tensor).acquire()
	require.NoError(t, err)
	defer at.block.release()
	for i := range 6 {
		h, err := AllocHost[float32](c.Device, 49)
		require.NoError(t, err)
		copy(h.Slice(), randomFloats(rng, 49))
		c.in(t, func() {
			c.drv.MemcpyHtoDAsync(at.ptr(), h.at, 4*49, c.defaultStream.handle)
			c.drv.StreamSynchronize(c.defaultStream.handle)
		})
		require.NoError(t, h.Close())
		io := chainIO(rng, 3, w)
		ran(t, x, io)
		require.Equal(t, direct(t, c.Device, p, io), io.Read, "run %d", i)
	}
	require.EqualValues(t, 4, c.Stats().Replays)
}

// Runs overlap, by graphs as far as there are, each with memory of its own.
func TestRunsOverlap(t *testing.T) {
	d := softDevice(t)
	g := newGate(t, d)
	rng := randomSource(t)
	p := chain(t, 9)
	x := compile(t, d, p)
	w := uploadRandom(t, d, rng, 7, 7)
	for range 2 {
		d.in(t, func() { g.shut(d.defaultStream.handle) })
		var ios []*program.IO
		var futures []*compute.Future
		for range 8 {
			io := chainIO(rng, 9, w)
			input := io.Host[0].([]float32)
			mine := append([]float32(nil), input...)
			futures = append(futures, x.Start(io))
			clear(input) // the caller's again
			io.Host[0] = mine
			ios = append(ios, io)
		}
		for _, f := range futures {
			pending(t, f.Done())
		}
		g.open()
		for i, f := range futures {
			require.NoError(t, f.Await(t.Context()))
			require.Equal(t, direct(t, d, p, ios[i]), ios[i].Read)
		}
	}
	require.EqualValues(t, 2*mostGraphs, d.Stats().Replays)
}

// What is kept is new memory in each run.
func TestKeep(t *testing.T) {
	d := softDevice(t)
	p := &program.Program{}
	x, w := p.Add(f32(4), program.FromHost), p.Add(f32(4), program.FromTensor)
	y := with(t, p, "add", program.Attr{}, x, w)
	z := with(t, p, "add", program.Attr{}, y, w)
	p.Keep = []program.Slot{z, x, w, z}
	e := compile(t, d, p)
	tensor, err := d.Upload(t.Context(), []float32{1, 1, 1, 1})
	require.NoError(t, err)
	var all []*program.IO
	for i := range 5 {
		v := float32(i)
		io := &program.IO{Host: []any{[]float32{v, v + 1, v + 2, v + 3}}, Tensors: []compute.Tensor{tensor}}
		ran(t, e, io)
		all = append(all, io)
	}
	require.NoError(t, tensor.Close())
	require.NoError(t, e.Close())
	for i, io := range all {
		v := float32(i)
		sum := []float32{v + 2, v + 3, v + 4, v + 5}
		for k, want := range [][]float32{sum, {v, v + 1, v + 2, v + 3}, {1, 1, 1, 1}, sum} {
			got := make([]float32, 4)
			require.NoError(t, io.Keep[k].(*Tensor).ReadAsync(got).Await(t.Context()))
			require.Equal(t, want, got)
			require.NoError(t, io.Keep[k].Close())
		}
	}
	require.Zero(t, d.memoryThen(t).InUse)
}

// Graphs keep memory between runs; Trim and want of memory take it away from those that are idle.
func TestIdleGraphsGiveWay(t *testing.T) {
	m := newMachine(t, softgpu.Config{Memory: 32 << 20})
	d := m.device(t)
	rng := randomSource(t)
	const n = 500_000
	p := &program.Program{}
	s := p.Add(f32(n), program.FromHost)
	for range worthwhile + 1 { // the last need not be made
		p.Read = []program.Slot{with(t, p, "copy", program.Attr{}, s)}
	}
	x := compile(t, d, p)
	io := &program.IO{Host: []any{randomFloats(rng, n)}, Read: []any{make([]float32, n)}}
	use := func() {
		t.Helper()
		for range warmUp + 1 {
			ran(t, x, io)
		}
		require.Equal(t, 1, m.Live().GraphExecs)
	}
	use()
	require.Greater(t, d.memoryThen(t).InUse, uint64(2*n*4))
	require.NoError(t, d.Trim())
	require.Zero(t, m.Live().GraphExecs)
	require.Zero(t, d.memoryThen(t).InUse)

	for _, alloc := range []func() (interface{ Close() error }, error){
		func() (interface{ Close() error }, error) { return Alloc[byte](d, 30<<20) },
		func() (interface{ Close() error }, error) { return d.Upload(t.Context(), make([]uint32, 15<<19)) },
	} {
		use()
		b, err := alloc()
		require.NoError(t, err)
		require.Zero(t, m.Live().GraphExecs)
		require.NoError(t, b.Close())
		require.NoError(t, d.Trim())
	}
	ran(t, x, io)
	require.Equal(t, io.Host, io.Read)
}

// Inputs that are larger than what may be pinned take the stager's way, as every other input does to the same end.
func TestLargeInputs(t *testing.T) {
	d := softDevice(t)
	rng := randomSource(t)
	n := 700
	if testing.Short() {
		n = 300
	}
	p := chain(t, n)
	w := uploadRandom(t, d, rng, 7, 7)
	small := compile(t, d, p)
	d.large = 999
	large := compile(t, d, p)
	require.Equal(t, []bool{true, true}, large.plan.large)
	require.Zero(t, large.upload)
	require.NotZero(t, small.upload)
	for range 5 {
		io := chainIO(rng, n, w)
		again := chainIO(rng, n, w)
		again.Host = io.Host
		ran(t, small, io)
		ran(t, large, again)
		require.Equal(t, io.Read, again.Read)
	}
	require.EqualValues(t, 6, d.Stats().Replays)
	data := randomFloats(rng, 5000)
	x, f := d.UploadAsync(data, 5000)
	require.NoError(t, f.Await(t.Context()))
	got := make([]float32, 5000)
	require.NoError(t, x.(*Tensor).ReadAsync(got).Await(t.Context()))
	require.Equal(t, data, got)
}

// Closing a program while others start it fails those that come late, and nothing else.
func TestExecutableClosesWhileStarted(t *testing.T) {
	c := newCore(t)
	p := &program.Program{}
	s := p.Add(f32(5), program.FromHost)
	for range worthwhile {
		s = applied(t, p, c.scale, scaleStep(5, 2, 0), f32(5), s)
	}
	p.Read = []program.Slot{s}
	for range 10 {
		x := compile(t, c.Device, p)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					io := &program.IO{Host: []any{[]float32{1, 2, 3, 4, 5}}, Read: []any{make([]float32, 5)}}
					if err := x.Start(io).Await(context.Background()); err != nil {
						noError(t, onlyClosed(err))
						return
					}
					if io.Read[0].([]float32)[4] != 80 {
						t.Error(io.Read[0])
					}
				}
			})
		}
		time.Sleep(time.Millisecond)
		require.NoError(t, x.Close())
		require.NoError(t, x.Close())
		wg.Wait()
	}
	require.EqualValues(t, 1, c.module.holders.Load())
	require.Eventually(t, func() bool { return c.m.Live().GraphExecs == 0 }, time.Minute, time.Millisecond)
}

func onlyClosed(err error) error {
	if errors.Is(err, compute.ErrClosed) {
		return nil
	}
	return err
}

// The collector closes what was forgotten.
func TestForgottenExecutable(t *testing.T) {
	c := newCore(t)
	func() {
		p := &program.Program{}
		s := p.Add(f32(5), program.FromHost)
		p.Read = []program.Slot{applied(t, p, c.scale, scaleStep(5, 2, 0), f32(5), s)}
		compile(t, c.Device, p)
	}()
	require.Eventually(t, func() bool { runtime.GC(); return c.module.holders.Load() == 1 }, time.Minute, time.Millisecond)
}

// A module that was closed under a program that is still there goes with the device.
func TestModuleOfAnOpenProgram(t *testing.T) {
	c := newCore(t)
	m, err := c.Load(coreText)
	require.NoError(t, err)
	k, err := m.Kernel("scale")
	require.NoError(t, err)
	b := batch.New(c.Device)
	r := b.Read(b.Kernel(k, scaleStep(2, 3, 1).Options, compute.Float32, []int{2}, b.Upload([]float32{1, 2})))
	plan, err := b.Compile(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, plan.Start().Await(t.Context()))
	require.Equal(t, []float32{4, 7}, r.Float32s())
	_, err = b.Compile(t.Context())
	require.ErrorIs(t, err, compute.ErrClosed)
	// The plan stays open: closing the device has to unload the module.
}

// TestLaunches has steps that need no launch, since they look at memory in another way: the launches and times of the others stay
// theirs.
func TestLaunches(t *testing.T) {
	d := softDevice(t)
	p := &program.Program{}
	x := with(t, p, "relu", program.Attr{}, p.Add(f32(4, 6), program.FromHost))
	for _, shape := range [][]int{{24}, {6, 4}, {2, 12}} {
		x = with(t, p, "reshape", program.Attr{Options: compute.ReshapeOptions{Shape: shape}}, x)
	}
	p.Read = []program.Slot{with(t, p, "softmax", program.Attr{}, x)}
	e := compile(t, d, p)
	defer e.Close()
	steps := e.Launches()
	require.Len(t, steps, 5)
	for i, want := range []string{"relu", "", "", "", "softmax"} {
		if want == "" {
			require.Empty(t, steps[i], i)
			continue
		}
		require.Len(t, steps[i], 1, i)
		require.Contains(t, steps[i][0].Kernel, want)
		require.NotZero(t, steps[i][0].Grid[0]*steps[i][0].Block[0])
	}
	before := d.Stats().Launches
	io := &program.IO{Host: []any{make([]float32, 24)}, Read: []any{make([]float32, 24)}, Times: make([]time.Duration, 5)}
	ran(t, e, io)
	require.EqualValues(t, 2, d.Stats().Launches-before)
	require.NotZero(t, io.Times[0]*io.Times[4], "%v", io.Times)
}

// TestSteps asks a plan what it runs.
func TestSteps(t *testing.T) {
	d := softDevice(t)
	w, err := d.Upload(t.Context(), make([]float32, 12), 3, 4)
	require.NoError(t, err)
	b := batch.New(d, batch.WithSources())
	recorded := func(x batch.Value) batch.Value { return b.Scale(b.ReLU(x), 2) }
	x := b.Upload(make([]float32, 6), 2, 3)
	b.Read(b.Softmax(recorded(b.MatMul(x, b.Import(w)))))
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer p.Close()
	steps, err := p.Steps()
	require.NoError(t, err)
	var all, tensors []int
	launches := 0
	for _, s := range steps {
		require.Len(t, s.Sources, len(s.Recorded))
		for _, chain := range s.Sources {
			require.Regexp(t, `executable_test\.go:\d+$`, chain[0])
		}
		all, launches = append(all, s.Recorded...), launches+len(s.Launches)
		for _, at := range s.Tensors {
			require.Same(t, w, at)
			tensors = append(tensors, s.Recorded...)
		}
	}
	require.Contains(t, all, 3, "softmax")
	require.Len(t, tensors, 1)
	before := d.Stats().Launches
	require.NoError(t, p.Start().AwaitOrAbandon(t.Context()))
	require.EqualValues(t, launches, d.Stats().Launches-before)
	for _, s := range steps {
		if s.Recorded[0] == 2 || s.Recorded[0] == 1 {
			require.Len(t, s.Sources[0], 2, "the function and its caller")
		}
	}

	b = batch.New(d)
	b.Read(b.ReLU(b.Upload(make([]float32, 3))))
	plain, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer plain.Close()
	steps, err = plain.Steps()
	require.NoError(t, err)
	require.Empty(t, steps[0].Sources)
}
