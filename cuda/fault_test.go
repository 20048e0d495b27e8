package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/ptx/args"
)

// everything uses a device for all that it is good for, and closes what it makes. The results are right unless there is an error.
func everything(d *Device) (err error) {
	ctx := context.Background()
	var open []interface{ Close() error }
	defer func() {
		slices.Reverse(open)
		for _, c := range open {
			if e := c.Close(); err == nil {
				err = e
			}
		}
	}()
	m, err := d.Load(coreText, WithMaxRegisters(64))
	if err != nil {
		return err
	}
	open = append(open, m)
	k, err := m.Kernel("scale")
	if err != nil {
		return err
	}
	if err := useStreams(ctx, d, k, func(c interface{ Close() error }) { open = append(open, c) }); err != nil {
		return err
	}
	if err := usePrograms(ctx, d, k); err != nil {
		return err
	}
	if _, err := d.Memory(); err != nil {
		return err
	}
	return d.Synchronize()
}

func useStreams(ctx context.Context, d *Device, k *Kernel, closes func(interface{ Close() error })) error {
	s, err := d.NewStream(StreamOptions{Timed: true})
	if err != nil {
		return err
	}
	closes(s)
	b, err := Alloc[float32](d, 3)
	if err != nil {
		return err
	}
	closes(b)
	h, err := AllocHost[float32](d, 3)
	if err != nil {
		return err
	}
	closes(h)
	if err := b.Upload(ctx, []float32{1, 2, 3}); err != nil {
		return err
	}
	var node Node
	g, err := s.Capture(func(c *Capture) (err error) {
		if node, err = c.Launch(k, over(3), scaleArgs(b, b, 2, 0)...); err != nil {
			return err
		}
		return CopyToHost(c, h, b)
	})
	if err != nil {
		return err
	}
	closes(g)
	if err := g.SetArgs(node, scaleArgs(b, b, 3, 0)...); err != nil {
		return err
	}
	r, err := s.Begin()
	if err != nil {
		return err
	}
	_ = r.Launch(k, over(3), scaleArgs(b, b, 1, 1)...) // Submit says what is wrong
	_ = r.Replay(g)
	x, err := r.Submit()
	if err != nil {
		return err
	}
	other, err := d.NewStream(StreamOptions{})
	if err != nil {
		return err
	}
	closes(other)
	if r, err = other.Begin(); err != nil {
		return err
	}
	_ = r.Wait(x)
	_ = Fill(r, b, 5)
	y, err := r.Submit()
	if err != nil {
		return err
	}
	for _, w := range []*Submitted{x, y} {
		if _, err := w.Wait(ctx); err != nil {
			return err
		}
	}
	if !slices.Equal(h.Slice(), []float32{6, 9, 12}) {
		return fmt.Errorf("the graph gives %v", h.Slice())
	}
	return nil
}

// usePrograms runs one with a user's kernel and another that uses all kinds of values, the latter often enough for replays.
func usePrograms(ctx context.Context, d *Device, k *Kernel) error {
	p := &program.Program{}
	x, w := p.Add(f32(3), program.FromHost), p.Add(f32(3), program.FromTensor)
	y := w
	for _, in := range []program.Slot{x, y} {
		z, err := p.ApplyKernel(k, scaleStep(3, 2, 1), f32(3), in)
		if err != nil {
			return err
		}
		if y, err = p.Apply(catalogue.Copy, program.Attr{}, z); err != nil {
			return err
		}
	}
	p.Read = []program.Slot{y}
	keeping := *p
	keeping.Keep = []program.Slot{y, x}

	t, err := d.Upload(ctx, []float32{2, 3, 4})
	if err != nil {
		return err
	}
	defer t.Close()
	for _, p := range []*program.Program{p, &keeping} {
		e, err := program.ExecutorOf(d).Compile(context.Background(), p)
		if err != nil {
			return err
		}
		defer e.Close()
		for range 4 {
			io := &program.IO{Host: []any{[]float32{1, 1, 1}}, Tensors: []compute.Tensor{t}, Read: []any{make([]float32, 3)}}
			if err := e.Start(io).Await(ctx); err != nil {
				return err
			}
			for _, t := range io.Keep {
				t.Close()
			}
			if !slices.Equal(io.Read[0].([]float32), []float32{5, 7, 9}) {
				return fmt.Errorf("the program gives %v", io.Read[0])
			}
		}
	}
	return nil
}

// nth makes the n-th of the calls fail that a test is about.
type nth struct {
	mu      sync.Mutex
	about   func(call string) bool
	n, seen int
	lasting bool // those after it, too
	off     bool
	with    driver.Result
	failed  string // the call that did
	// capturing tells that a graph is being recorded, in the end while that call was made.
	capturing bool
}

func (f *nth) next(call string) driver.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off || !f.about(call) {
		return driver.Success
	}
	f.seen++
	if f.failed == "" && (call == "StreamBeginCapture" || call == "StreamEndCapture") {
		f.capturing = call == "StreamBeginCapture"
	}
	if f.seen-1 < f.n || f.seen-1 > f.n && !f.lasting {
		return driver.Success
	}
	f.failed = call
	return f.with
}

// stop ends the failures.
func (f *nth) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off = true
}

// harmless are calls whose failure may be nobody's error: they give something back, only prefer something, or there is another
// way. Programs of which there can be no graph run without.
func harmless(call string, capturing bool) bool {
	switch call {
	case "LaunchKernel", "MemcpyHtoDAsync", "MemcpyDtoHAsync", "MemcpyDtoDAsync":
		return capturing
	case "CtxSetCurrent", "StreamSynchronize", "CtxSynchronize", "StreamQuery", // on the way out
		"PrimaryCtxSetFlags", "DeviceCount", "FuncGetParamInfo", "MemAlloc", "MemHostAlloc",
		"EventRecord", "EventCreate", "StreamWaitEvent",
		"StreamBeginCapture", "StreamEndCapture", "GraphInstantiate", "GraphUpload", "StreamCreate", "StreamPriorityRange",
		"ModuleUnload", "PrimaryCtxRelease":
		return true
	}
	return strings.Contains(call, "Destroy") || strings.Contains(call, "Free")
}

// sentinelOf is what errors with a code wrap.
func sentinelOf(r driver.Result) error { return (&Error{Code: int(r)}).Unwrap() }

// failEach lets each call in turn that a test is about fail in a life of a device: in opening it, in using and in closing it.
func failEach(t *testing.T, f *nth, step int, use func(*Device) error) (calls, errs int) {
	t.Helper()
	code := f.with
	for n := randomSource(t).IntN(step); ; n += step {
		f := &nth{about: f.about, n: n, with: code, lasting: f.lasting} // of this life
		g := softgpu.New(softgpu.Config{Inject: f.next})
		err := lifeOf(t, g, f, use)
		f.mu.Lock()
		failed, capturing := f.failed, f.capturing
		f.mu.Unlock()
		what := fmt.Sprintf("call %d, %s, %v", n, failed, code)
		if failed == "" {
			require.NoError(t, err, what)
			return n, errs
		}
		if err == nil {
			require.True(t, harmless(failed, capturing), "%s: no error", what)
		} else {
			errs++
			var e *Error
			require.ErrorAs(t, err, &e, what)
			require.ErrorIs(t, err, sentinelOf(code), what)
			require.Equal(t, int(code), e.Code, what)
			require.Equal(t, code.Name(), e.Name, what)
			if code.Sticky() && !strings.HasPrefix(failed, "Device") && failed != "Version" { // there is no context yet
				require.ErrorIs(t, err, ErrContextPoisoned, what)
				require.ErrorIs(t, err, compute.ErrDeviceLost, what)
				var p *PoisonedError
				require.ErrorAs(t, err, &p, what)
			}
		}
		left := softgpu.Live{}
		if failed == "PrimaryCtxRelease" {
			left.Contexts = 1
		}
		for begin := time.Now(); g.Live() != left; time.Sleep(20 * time.Microsecond) {
			require.Less(t, time.Since(begin), time.Minute, "%s: %v", what, g.Live())
		}
		if !strings.Contains(failed, "Destroy") && !strings.Contains(failed, "Free") && failed != "ModuleUnload" &&
			failed != "CtxSetCurrent" && failed != "PrimaryCtxRelease" && !code.Sticky() {
			require.NoError(t, g.Leaks(), what)
		}
	}
}

// lifeOf opens a device, uses it, and closes it. After a failure that does not kill the context, everything works.
func lifeOf(t *testing.T, g *softgpu.GPU, f *nth, use func(*Device) error) error {
	t.Helper()
	d, err := Open(context.Background(), onDriver(g))
	if err != nil {
		f.stop()
		d, again := Open(context.Background(), onDriver(g))
		require.NoError(t, again, "opened again after %v", err)
		require.NoError(t, use(d))
		require.NoError(t, d.Close())
		return err
	}
	if err = use(d); err != nil {
		f.stop()
	}
	if err != nil && !f.with.Sticky() {
		require.NoError(t, use(d), "used again after %v", err)
		for begin, left := time.Now(), true; left; { // runs give back what they had a moment after they are done
			require.NoError(t, d.Trim())
			m, e := d.Memory()
			require.NoError(t, e)
			left = m.InUse+m.Pending+m.Cached+m.Host.InUse+m.Host.Cached != 0
			require.Less(t, time.Since(begin), time.Minute, "%v after %v", m, err)
		}
	}
	if err != nil && f.with.Sticky() {
		require.ErrorIs(t, use(d), ErrContextPoisoned)
		_, other := Open(context.Background(), onDriver(g))
		require.ErrorIs(t, other, ErrContextPoisoned, "the same context")
	}
	require.NoError(t, d.Close())
	return err
}

// large uses values so large that each is an allocation of its own: uploads, runs with and without graphs, what is kept, buffers.
func large(d *Device) (err error) {
	const n = 600_000
	ctx := context.Background()
	p := &program.Program{}
	x, w := p.Add(f32(n), program.FromHost), p.Add(f32(n), program.FromTensor)
	a, _ := p.Apply(catalogue.Copy, program.Attr{}, x)
	for range worthwhile {
		a, _ = p.Apply(catalogue.Copy, program.Attr{}, a)
	}
	b, _ := p.Apply(catalogue.Copy, program.Attr{}, w)
	p.Read = []program.Slot{a}
	keeping := *p
	keeping.Keep = []program.Slot{a, x, b}
	data := make([]float32, n)
	data[n-1] = 7
	t, err := d.Upload(ctx, data)
	if err != nil {
		return err
	}
	defer t.Close()
	for _, p := range []*program.Program{p, &keeping} {
		e, err := program.ExecutorOf(d).Compile(context.Background(), p)
		if err != nil {
			return err
		}
		defer e.Close()
		for range warmUp + 1 {
			io := &program.IO{Host: []any{data}, Tensors: []compute.Tensor{t}, Read: []any{make([]float32, n)}}
			if err := e.Start(io).Await(ctx); err != nil {
				return err
			}
			for _, t := range io.Keep {
				t.Close()
			}
			if !slices.Equal(io.Read[0].([]float32), data) {
				return errors.New("the program gives something else")
			}
		}
	}
	buffer, err := Alloc[float32](d, n)
	if err != nil {
		return err
	}
	defer buffer.Close()
	host, err := AllocHost[float32](d, n)
	if err != nil {
		return err
	}
	return host.Close()
}

// Memory runs out at each allocation in turn, of the device and of the host, and stays short or not.
func TestEveryAllocationFails(t *testing.T) {
	for _, call := range []string{"MemAlloc", "MemHostAlloc"} {
		about := func(c string) bool { return c == call }
		calls, errs := failEach(t, &nth{about: about, with: driver.OutOfMemory, lasting: true}, 1, everything)
		require.Positive(t, errs)
		once, kept := failEach(t, &nth{about: about, with: driver.OutOfMemory}, 1, everything)
		t.Logf("%s: %d calls, %d errors; %d and %d where there is memory at the next try", call, calls, errs, once, kept)
	}
}

// With however little memory, work ends with its results or says that there was too little; what it had is free again then.
func TestMemoryRunsOutAnywhere(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	failed := map[string]int{}
	step := uint64(1 << 20)
	if testing.Short() {
		step *= 4
	}
	for limit := step; ; limit += step {
		d, err := Open(t.Context(), m.on, WithoutCache(), WithMemoryLimit(limit))
		require.NoError(t, err)
		err = large(d)
		for begin, left := time.Now(), true; left; {
			require.NoError(t, d.Trim())
			now, e := d.Memory()
			require.NoError(t, e)
			left = now.InUse+now.Pending+now.Cached+now.Host.InUse+now.Host.Cached != 0
			require.Less(t, time.Since(begin), time.Minute, "%v after %v", now, err)
		}
		require.NoError(t, d.Close())
		require.Eventually(t, func() bool { return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, compute.ErrOutOfMemory)
		what, _, _ := strings.Cut(err.Error(), ":")
		failed[what]++
	}
	t.Log(failed)
	require.NotEmpty(t, failed)
}

// Each call fails in turn, and some with codes of each other kind; but for make proofs one in four of them.
func TestEveryCallOfALifeFails(t *testing.T) {
	steps := map[driver.Result]int{driver.InvalidHandle: 1, driver.IllegalAddress: 5, driver.OutOfMemory: 7, driver.Unknown: 11}
	for code, step := range steps {
		if !testseed.Whole() {
			step *= 4 // others by each seed
		}
		if testing.Short() {
			step = 40 // of some 340 calls
		}
		calls, errs := failEach(t, &nth{about: func(string) bool { return true }, with: code}, step, everything)
		t.Logf("%v: %d calls, %d errors", code, calls, errs)
		require.Greater(t, errs, calls/(4*step))
	}
	noGoroutines(t)
}

// Codes become sentinels.
func TestErrors(t *testing.T) {
	for code, want := range map[driver.Result]error{
		driver.OutOfMemory: compute.ErrOutOfMemory, driver.NoDevice: compute.ErrUnavailable, driver.InvalidDevice: compute.ErrUnavailable,
		driver.InvalidPTX: compute.ErrArgument, driver.LaunchOutOfResources: compute.ErrTooLarge, driver.Unknown: compute.ErrArgument,
		driver.NoBinaryForGPU: compute.ErrUnsupported, driver.NotSupported: compute.ErrUnsupported,
		driver.InvalidHandle:  compute.ErrArgument,
		driver.IllegalAddress: compute.ErrDeviceLost, driver.LaunchTimeout: compute.ErrDeviceLost,
		driver.ECCUncorrectable: compute.ErrDeviceLost,
		driver.Contained:        compute.ErrDeviceLost, driver.TensorMemoryLeak: compute.ErrDeviceLost,
	} {
		require.ErrorIs(t, newError(softgpu.New(softgpu.Config{}), "cuX", code), want, code.Name())
	}
	e := &Error{Call: "cuModuleLoadDataEx", Code: 218, Name: "CUDA_ERROR_INVALID_PTX", Text: "bad",
		Detail: "here", Log: " ptxas: no\n"}
	require.Equal(t, "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): bad: here\nptxas: no", e.Error())
	p := &PoisonedError{Cause: e, Launches: []LaunchRecord{{7, "k", xyz(1, 2, 3), xyz(4, 5, 6)}}}
	require.Equal(t, ErrContextPoisoned.Error()+": "+e.Error()+"\nlast launches:\n  #7 k, grid [1 2 3], block [4 5 6]", p.Error())
	require.ErrorIs(t, p, ErrContextPoisoned)
	require.ErrorIs(t, p, compute.ErrArgument)
}

// astrayStep makes the kernel poke write where no memory is.
func astrayStep(offset uint64) program.Attr {
	return program.Attr{Options: Launch{Block: xyz(1), Args: []Arg{Result(), Operand(0), args.U64(offset)}}}
}

// A kernel goes astray in the middle of a batch: all that is under way fails with the reason, all that comes later at once.
func TestStickyErrorInABatch(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	c := coreOn(t, m, d)
	gate := newGate(t, d)
	kept := c.numbers(1)
	s := c.stream(StreamOptions{Timed: true})
	tensor, err := d.Upload(t.Context(), []float32{1, 2})
	require.NoError(t, err)
	graph, _ := c.captured(s, kept, kept, [2]float32{1, 1})
	good := batch.New(d)
	good.Read(good.Kernel(c.scale, scaleStep(2, 2, 0).Options, compute.Float32, []int{2}, good.Import(tensor)))
	fine, err := good.Compile(t.Context())
	require.NoError(t, err)
	require.NoError(t, fine.Start().Await(t.Context()))
	other, err := fine.Fork()
	require.NoError(t, err)

	bad := batch.New(d)
	v := bad.Kernel(c.scale, scaleStep(2, 2, 0).Options, compute.Float32, []int{2}, bad.Import(tensor))
	v = bad.Kernel(c.poke, astrayStep(astray).Options, compute.Float32, []int{2}, v)
	v = bad.Kernel(c.scale, scaleStep(2, 2, 0).Options, compute.Float32, []int{2}, v)
	bad.Read(v)
	bad.Keep(v)
	fatal, err := bad.Compile(t.Context())
	require.NoError(t, err)

	d.in(t, func() { gate.shut(d.defaultStream.handle) })
	first := fatal.Start()
	later := []*compute.Future{fine.Start(), other.Start(), tensor.ReadAsync(make([]float32, 2))}
	r := begun(t, s)
	require.NoError(t, r.Replay(graph))
	d.in(t, func() { gate.shut(s.handle) })
	beside := submitted(t, r)
	recording := begun(t, c.stream(StreamOptions{}))
	gate.mu.Lock()
	gate.release[0]() // the default stream alone
	gate.release = gate.release[1:]
	gate.mu.Unlock()

	err = first.Await(t.Context())
	var dead *PoisonedError
	require.ErrorAs(t, err, &dead)
	require.ErrorIs(t, err, ErrContextPoisoned)
	require.ErrorIs(t, err, compute.ErrDeviceLost)
	require.ErrorContains(t, err, "run of a program of 3 steps")
	require.Equal(t, int(driver.IllegalAddress), dead.Cause.Code)
	require.Equal(t, "CUDA_ERROR_ILLEGAL_ADDRESS", dead.Cause.Name)
	require.Contains(t, dead.Cause.Detail, "poke", "the software GPU knows the kernel")
	var last []string
	for i, l := range dead.Launches {
		last = append(last, l.Kernel)
		require.True(t, i == 0 || l.Number == dead.Launches[i-1].Number+1)
	}
	require.Equal(t, []string{"scale", "poke", "scale", "scale", "scale"}, last[len(last)-5:])
	for _, f := range later {
		var same *PoisonedError
		require.ErrorAs(t, f.Await(t.Context()), &same)
		require.Same(t, dead, same)
	}
	_, err = beside.Wait(t.Context())
	require.ErrorIs(t, err, ErrContextPoisoned)

	gate.open()

	_, err = recording.Submit()
	require.ErrorIs(t, err, ErrContextPoisoned)
	for name, call := range map[string]func() error{
		"run":       func() error { return fine.Start().Await(t.Context()) },
		"compile":   func() error { _, err := good.Compile(t.Context()); return err },
		"upload":    func() error { _, err := d.Upload(t.Context(), []float32{1}); return err },
		"load":      func() error { _, err := d.Load(coreText); return err },
		"stream":    func() error { _, err := d.NewStream(StreamOptions{}); return err },
		"recording": func() error { _, err := s.Begin(); return err },
		"capture":   func() error { _, err := s.Capture(func(*Capture) error { return nil }); return err },
		"wait":      func() error { return d.Synchronize() },
		"memory":    func() error { _, err := d.Memory(); return err },
		"read":      func() error { return tensor.ReadAsync(make([]float32, 2)).Await(t.Context()) },
		"open":      func() error { _, err := Open(t.Context(), m.on, WithoutCache()); return err },
	} {
		calls := m.Calls()["LaunchKernel"]
		begin := time.Now()
		require.ErrorIs(t, call(), ErrContextPoisoned, name)
		require.Less(t, time.Since(begin), time.Minute, name)
		require.Equal(t, calls, m.Calls()["LaunchKernel"], name)
	}
	for _, x := range []interface{ Close() error }{tensor, graph, s, kept, fine, c.module, d} {
		require.NoError(t, x.Close())
	}
	require.Eventually(t, func() bool { return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)

	fresh := coreOn(t, m, m.device(t))
	b := fresh.numbers(4)
	r = begun(t, fresh.stream(StreamOptions{}))
	fresh.times(r, b, 2, 1)
	finished(t, submitted(t, r))
	require.Equal(t, []float32{9}, fresh.read(b))
}

// With debugging the kernel at fault is named by the call that launched it.
func TestDebugNamesTheGuilty(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d, err := Open(t.Context(), m.on, WithoutCache(), WithDebug())
	require.NoError(t, err)
	defer d.Close()
	c := coreOn(t, m, d)
	b := c.numbers(1, 2)
	r := begun(t, c.stream(StreamOptions{}))
	c.times(r, b, 2, 0)
	err = r.Launch(c.poke, Launch{Block: xyz(1)}, b.Arg(), b.Arg(), args.U64(astray))
	require.ErrorIs(t, err, ErrContextPoisoned)
	require.ErrorContains(t, err, "kernel poke, grid [1 1 1], block [1 1 1]: ")
	var dead *PoisonedError
	require.ErrorAs(t, err, &dead)
	require.Equal(t, "poke", dead.Launches[len(dead.Launches)-1].Kernel)
	require.ErrorIs(t, r.Launch(c.scale, over(2), scaleArgs(b, b, 1, 1)...), ErrContextPoisoned)
	_, err = r.Submit()
	require.ErrorContains(t, err, "kernel poke")
	require.NoError(t, d.Close())

	d, err = Open(t.Context(), m.on, WithoutCache(), WithDebug())
	require.NoError(t, err)
	defer d.Close()
	c = coreOn(t, m, d)
	bt := batch.New(d)
	v := bt.Kernel(c.poke, astrayStep(0).Options, compute.Float32, []int{1}, bt.Upload([]float32{8}))
	v = bt.Kernel(c.poke, astrayStep(astray).Options, compute.Float32, []int{1}, v)
	bt.Read(bt.Kernel(c.scale, scaleStep(1, 2, 0).Options, compute.Float32, []int{1}, v))
	err = bt.Start().Await(t.Context())
	require.ErrorContains(t, err, "kernel poke")
	require.ErrorIs(t, err, ErrContextPoisoned)
}

// The history is as long as it should be, and in order.
func TestHistory(t *testing.T) {
	var h history
	require.Empty(t, h.last())
	for i := range 3 * remembered {
		h.add(fmt.Sprint(i), &driver.Launch{})
		all := h.last()
		require.Len(t, all, min(i+1, remembered))
		require.Equal(t, fmt.Sprint(i), all[len(all)-1].Kernel)
		require.EqualValues(t, i, all[len(all)-1].Number)
	}
}
