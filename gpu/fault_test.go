package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// faulty wraps the real driver. It fails the call that it was told to fail, and checks that objects are used and freed as
// the seam demands.
type faulty struct {
	webgpu.Driver
	t testing.TB

	mu       sync.Mutex
	fail     string // name of the call that fails next
	with     error
	live     map[*watched]bool
	inFlight map[*watched]int
	dead     error
	closed   bool
	calls    map[string]int  // since reset
	written  []int           // bytes of each write since then
	order    []string        // of calls that concern staging, and submissions
	buffers  int             // command buffers
	gates    []chan struct{} // of the next submissions, whose ends are told when they are open

	compiling atomic.Pointer[chan struct{}] // until when pipelines are not made
}

func (f *faulty) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.written, f.order, f.buffers = map[string]int{}, nil, nil, 0
}

type watched struct {
	webgpu.Object
	f     *faulty
	group bool
	freed bool
}

func (w *watched) Free() {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	if w.freed || w.f.closed {
		w.f.t.Errorf("%T freed twice, or after its driver", w.Object)
		return
	}
	if w.f.inFlight[w] > 0 {
		if !w.group { // submissions hold bind groups themselves
			w.f.t.Errorf("%T freed while a submission uses it", w.Object)
		}
	}
	w.freed = true
	delete(w.f.live, w)
	w.Object.Free()
}

// openFaulty opens the software device behind a faulty driver.
func openFaulty(t testing.TB, opts ...Option) (*Device, *faulty) {
	c, err := newConfig(append([]Option{WithSoftware(), WithTuneCache(tuneDir(t))}, opts...))
	require.NoError(t, err)
	drv, info, err := openDriver(ctx, c)
	require.NoError(t, err, noAdapter)
	f := &faulty{Driver: drv, t: t, live: map[*watched]bool{}, inFlight: map[*watched]int{}}
	d := newDevice(f, info, c)
	t.Cleanup(func() { d.Close() })
	return d, f
}

func (f *faulty) arm(call string, with error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.with = call, with
}

// hit reports whether this call is to fail, once.
func (f *faulty) hit(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.t.Errorf("%s after close", call)
	}
	if f.calls != nil {
		f.calls[call]++
	}
	if f.fail != call {
		return nil
	}
	f.fail = ""
	if errors.Is(f.with, compute.ErrDeviceLost) {
		f.dead = f.with
	}
	return fmt.Errorf("injected: %w", f.with)
}

func (f *faulty) watch(o webgpu.Object) *watched {
	w := &watched{Object: o, f: f}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[w] = true
	return w
}

func (f *faulty) unwrap(o webgpu.Object) webgpu.Object {
	if o == nil {
		return nil
	}
	w := o.(*watched)
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.freed {
		f.t.Errorf("%T used after free", w.Object)
	}
	return w.Object
}

func (f *faulty) NewBuffer(kind webgpu.BufferKind, size uint64) (webgpu.Object, error) {
	if err := f.hit("newBuffer " + kind.String()); err != nil {
		return nil, err
	}
	o, err := f.Driver.NewBuffer(kind, size)
	if err != nil {
		return nil, err
	}
	return f.watch(o), nil
}

func (f *faulty) NewPipeline(k *wgsl.Kernel) (webgpu.Object, error) {
	if gate := f.compiling.Load(); gate != nil {
		<-*gate
	}
	if err := f.hit("newPipeline"); err != nil {
		return nil, err
	}
	o, err := f.Driver.NewPipeline(k)
	if err != nil {
		return nil, err
	}
	return f.watch(o), nil
}

func (f *faulty) NewGroup(pipeline webgpu.Object, bind []webgpu.Binding) (webgpu.Object, error) {
	if err := f.hit("newGroup"); err != nil {
		return nil, err
	}
	raw := make([]webgpu.Binding, len(bind))
	for i, b := range bind {
		raw[i] = webgpu.Binding{Buffer: f.unwrap(b.Buffer), Offset: b.Offset, Size: b.Size}
	}
	o, err := f.Driver.NewGroup(f.unwrap(pipeline), raw)
	if err != nil {
		return nil, err
	}
	w := f.watch(o)
	w.group = true
	return w, nil
}

func (f *faulty) Together(g func() error) error { return f.Driver.Together(g) }

func (f *faulty) Ready(o webgpu.Object, g func(error)) { f.Driver.Ready(f.unwrap(o), g) }

func (f *faulty) Write(o webgpu.Object, at uint64, data []byte) {
	f.mu.Lock()
	f.written, f.order = append(f.written, len(data)), append(f.order, "write")
	f.mu.Unlock()
	f.Driver.Write(f.unwrap(o), at, data)
}

func (f *faulty) Read(o webgpu.Object, at uint64, dst []byte) {
	f.mu.Lock()
	f.order = append(f.order, "read")
	f.mu.Unlock()
	f.Driver.Read(f.unwrap(o), at, dst)
}

func (f *faulty) Unmap(o webgpu.Object) error {
	if err := f.hit("unmap"); err != nil {
		return err
	}
	f.mu.Lock()
	f.order = append(f.order, "unmap")
	f.mu.Unlock()
	return f.Driver.Unmap(f.unwrap(o))
}

func (f *faulty) Submit(s *webgpu.Submission) error {
	if err := f.hit("submit"); err != nil {
		return err
	}
	raw := *s
	raw.Commands, raw.Staging = nil, nil
	var used []*watched
	use := func(o webgpu.Object) webgpu.Object {
		if o != nil {
			used = append(used, o.(*watched))
		}
		return f.unwrap(o)
	}
	for _, c := range s.Commands {
		c.Pipeline, c.Group, c.From, c.To = use(c.Pipeline), use(c.Group), use(c.From), use(c.To)
		raw.Commands = append(raw.Commands, c)
	}
	for _, o := range s.Staging {
		raw.Staging = append(raw.Staging, use(o))
	}
	late := f.hit("complete")
	gate := make(chan struct{})
	f.mu.Lock()
	if len(f.gates) > 0 {
		gate, f.gates = f.gates[0], f.gates[1:]
	} else {
		close(gate)
	}
	f.mu.Unlock()
	done := func(err error) {
		f.mu.Lock()
		for _, w := range used {
			f.inFlight[w]--
		}
		f.mu.Unlock()
		s.GPUTime = raw.GPUTime
		s.Done(errors.Join(err, late))
	}
	raw.Done = func(err error) {
		select {
		case <-gate:
			done(err)
		default:
			go func() {
				<-gate
				done(err)
			}()
		}
	}
	f.mu.Lock()
	f.order, f.buffers = append(f.order, "submit"), f.buffers+len(s.Cuts)+1
	for _, w := range used {
		f.inFlight[w]++
	}
	f.mu.Unlock()
	return f.Driver.Submit(&raw)
}

func (f *faulty) Lost() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.dead, f.Driver.Lost())
}

func (f *faulty) Close() {
	f.mu.Lock()
	f.closed = true
	left := len(f.live)
	f.mu.Unlock()
	if left != 0 {
		f.t.Errorf("driver closed with %d objects alive", left)
	}
	f.Driver.Close()
}

// Every failure that a driver call can return, at every such call of a program that uses all of them.
func TestFaults(t *testing.T) {
	calls := []string{"newBuffer storage", "newBuffer uniform", "newBuffer upload", "newBuffer readback", "newPipeline", "newGroup",
		"submit", "complete", "unmap"}
	odd := errors.New("something odd")
	for _, call := range calls {
		for _, with := range []error{compute.ErrOutOfMemory, compute.ErrDeviceLost, odd} {
			t.Run(fmt.Sprintf("%s/%v", call, with), func(t *testing.T) {
				d, f := openFaulty(t)
				kernel := func() (*Kernel, error) { return NewKernel(ctx, d, affineDesc()) }
				k := affine(t, d)
				if call == "newPipeline" {
					f.arm(call, with)
					desc := affineDesc()
					desc.WGSL += "\n"
					_, err := NewKernel(ctx, d, desc)
					require.ErrorIs(t, err, with)
				} else {
					io, err := faultRun(d, k, func() { f.arm(call, with) })
					switch {
					case call == "unmap": // the results were delivered before; the buffer is not used again
						require.NoError(t, err)
					case with == compute.ErrOutOfMemory && call[:3] == "new" && call != "newGroup":
						require.NoError(t, err, "after memory was given back the second try succeeds")
					default:
						require.ErrorIs(t, err, with)
						for _, x := range io.Keep {
							x.Close()
						}
					}
				}
				idle(t, d)
				_, err := kernel()
				if with == compute.ErrDeviceLost {
					require.ErrorIs(t, err, compute.ErrDeviceLost, "loss is for ever")
					_, err = d.Upload(ctx, []float32{1})
					require.ErrorIs(t, err, compute.ErrDeviceLost)
				} else {
					require.NoError(t, err)
					_, err = faultRun(d, k, func() {})
					require.NoError(t, err, "the device stays usable")
				}
				require.NoError(t, d.Close())
				require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.closed }, time.Minute, time.Millisecond)
			})
		}
	}
}

// faultRun runs a program that uploads, dispatches with a uniform, keeps a tensor and reads back.
func faultRun(d *Device, k *Kernel, arm func()) (*program.IO, error) {
	p := &program.Program{}
	s := p.Add(program.F32(100), program.FromHost)
	y, err := p.ApplyKernel(k, program.Attr{Options: affineLaunch(100, 2, 1)}, program.F32(100), s)
	if err != nil {
		return nil, err
	}
	z, err := p.ApplyKernel(k, program.Attr{Options: affineLaunch(100, 3, 1)}, program.F32(100), y)
	if err != nil {
		return nil, err
	}
	p.Keep, p.Read = []program.Slot{y}, []program.Slot{z}
	x, err := program.ExecutorOf(d).Compile(context.Background(), p)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	arm()
	got := make([]float32, 100)
	io := &program.IO{Host: []any{make([]float32, 100)}, Read: []any{got}}
	if err := x.Start(io).Await(context.Background()); err != nil {
		return io, err
	}
	if got[99] != 4 {
		return io, fmt.Errorf("got %v, want 4", got[99])
	}
	return io, io.Keep[0].Close()
}

// A device lost before a submission, and with work in flight.
func TestLost(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		d := open(t)
		k := affine(t, d)
		x, err := d.Upload(ctx, []float32{1})
		require.NoError(t, err)
		why := lose(d)
		require.Eventually(t, func() bool { return d.drv.Lost() != nil }, time.Minute, time.Millisecond)
		err = k.Run(ctx, affineLaunch(1, 1, 1), make([]float32, 1), x)
		require.ErrorIs(t, err, compute.ErrDeviceLost)
		require.ErrorContains(t, err, why)
		require.NoError(t, x.Close())
		require.Zero(t, d.Memory().InUse)
		require.NoError(t, d.Close())
	})
	t.Run("in flight", func(t *testing.T) {
		d := open(t)
		k, l := slow(t, d)
		y := make([]float32, 64)
		f := k.RunAsync(l, y, []float32{1})
		lose(d)
		err := f.Await(ctx)
		require.ErrorIs(t, err, compute.ErrDeviceLost)
		require.Zero(t, y[0])
		idle(t, d)
		_, err = d.Upload(ctx, []float32{1})
		require.ErrorIs(t, err, compute.ErrDeviceLost)
		require.NoError(t, d.Close())
		// Another device is not concerned.
		e := open(t)
		_, err = e.Upload(ctx, []float32{1})
		require.NoError(t, err)
	})
}
