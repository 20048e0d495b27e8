package cuda

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
)

// Recorder takes work for a stream: a [*Recording] or a [*Capture].
type Recorder interface {
	recorder() *work
}

// work is what a recording and a capture have in common: calls go to the stream at once, the first error sticks.
type work struct {
	*held
	open   bool
	err    error
	params []byte // of the launch that is being made
	launch driver.Launch

	capturing bool
}

// held is what has to be given back when work is done, or was given up.
type held struct {
	s     *Stream
	kept  []releaser
	start driver.Event // of a recording on a timed stream
}

// releaser is what work holds on to until it is done.
type releaser interface{ release() }

// do runs one call of the driver for the stream.
func (w *work) do(f func(drv driver.Driver, s driver.Stream) error) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.s.d.leave()
	return w.note(f(w.s.d.drv, w.s.handle))
}

func (w *work) enter() error {
	if !w.open {
		return w.over()
	}
	if w.err != nil {
		return w.err
	}
	return w.note(w.s.d.enter())
}

// over is the error of work that takes no more.
func (w *work) over() error {
	if w.capturing {
		return device.Closed("the capture is over")
	}
	return device.Closed("the recording is submitted")
}

// note keeps the first error.
func (w *work) note(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// keep holds on to x until the work is done.
func (h *held) keep(x releaser) { h.kept = append(h.kept, x) }

func (h *held) releaseKept() {
	for _, x := range h.kept {
		x.release()
	}
	h.kept = nil
}

// launchKernel checks a launch, makes its parameter block and gives it to the driver, without allocating.
func (w *work) launchKernel(k *Kernel, l *Launch, a []Arg) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.s.d.leave()
	return w.note(w.tryLaunch(k, l, a))
}

func (w *work) tryLaunch(k *Kernel, l *Launch, a []Arg) error {
	if len(l.Args) > 0 {
		return fmt.Errorf("launch: Launch.Args are for steps of a batch, elsewhere arguments are given beside the launch: %w",
			compute.ErrArgument)
	}
	if err := k.prepare(w.s.d, l, &w.launch); err != nil {
		return err
	}
	if w.capturing {
		w.keep(k.module)
	} else {
		defer k.module.release() // which waits for what has been launched before it unloads
	}
	n := k.layout.Size()
	if cap(w.params) < n {
		w.params = make([]byte, n)
	}
	w.launch.Params = w.params[:n]
	if err := k.layout.Pack(w.launch.Params, a...); err != nil {
		return fmt.Errorf("kernel %s: %w", k.name, err)
	}
	r := w.s.d.drv.LaunchKernel(k.function, &w.launch, w.s.handle)
	return w.s.d.launched(k.name, &w.launch, w.s.handle, r, w.capturing)
}

func (w *work) copyToDevice(dst driver.Ptr, src unsafe.Pointer, bytes uint64) error {
	return w.do(func(drv driver.Driver, s driver.Stream) error {
		return w.s.d.check("cuMemcpyHtoDAsync", drv.MemcpyHtoDAsync(dst, src, bytes, s))
	})
}

func (w *work) copyToHost(dst unsafe.Pointer, src driver.Ptr, bytes uint64) error {
	return w.do(func(drv driver.Driver, s driver.Stream) error {
		return w.s.d.check("cuMemcpyDtoHAsync", drv.MemcpyDtoHAsync(dst, src, bytes, s))
	})
}

func (w *work) copyOnDevice(dst, src driver.Ptr, bytes uint64) error {
	return w.do(func(drv driver.Driver, s driver.Stream) error {
		return w.s.d.check("cuMemcpyDtoDAsync", drv.MemcpyDtoDAsync(dst, src, bytes, s))
	})
}

func (w *work) fill8(dst driver.Ptr, value uint8, bytes uint64) error {
	return w.do(func(drv driver.Driver, s driver.Stream) error {
		return w.s.d.check("cuMemsetD8Async", drv.MemsetD8Async(dst, value, bytes, s))
	})
}

func (w *work) fill32(dst driver.Ptr, value uint32, words uint64) error {
	return w.do(func(drv driver.Driver, s driver.Stream) error {
		return w.s.d.check("cuMemsetD32Async", drv.MemsetD32Async(dst, value, words, s))
	})
}

// Recording is work given to a stream, which may begin with it at once. Its errors are returned where they occur, and the
// first one again by Submit. It belongs to one goroutine.
//
// A recording has to be submitted: until then the stream takes no other recording, and stream and device remain open even
// after Close. A forgotten recording is discarded by the garbage collector; the work that it gave to the stream runs
// nevertheless.
type Recording struct {
	work
	net runtime.Cleanup
}

func (r *Recording) recorder() *work {
	if r == nil {
		return nil
	}
	return &r.work
}

// Begin begins a recording.
func (s *Stream) Begin() (*Recording, error) {
	if err := s.d.life.Begin(); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		s.d.life.End()
		return nil, err
	}
	h := &held{s: s}
	if s.timed {
		if err := h.begin(); err != nil {
			h.discard()
			return nil, err
		}
	}
	r := &Recording{work: work{held: h, open: true}}
	r.net = runtime.AddCleanup(r, func(h *held) { go h.discard() }, h) // a net under a forgotten Submit
	return r, nil
}

// begin takes the time.
func (h *held) begin() (err error) {
	if err := h.s.d.enter(); err != nil {
		return err
	}
	defer h.s.d.leave()
	h.start, err = h.mark()
	return err
}

// mark records an event that knows the time.
func (h *held) mark() (driver.Event, error) {
	d := h.s.d
	e, err := d.events.get(true)
	if err != nil {
		return 0, err
	}
	if err := d.check("cuEventRecord", d.drv.EventRecord(e, h.s.handle)); err != nil {
		d.events.put(e, true)
		return 0, err
	}
	return e, nil
}

// Launch runs a kernel. Its arguments are checked against its declaration. Memory that they point to must not be closed before
// the work is submitted.
func (r *Recording) Launch(k *Kernel, l Launch, a ...Arg) error { return r.launchKernel(k, &l, a) }

// Wait makes later work of this recording wait until other work of the same device is done, even if its stream has been
// closed since. The host does not wait. If the work has failed already, Wait returns its error.
func (r *Recording) Wait(other *Submitted) error {
	return r.do(func(drv driver.Driver, s driver.Stream) error {
		switch {
		case other == nil || other.d == nil:
			return fmt.Errorf("wait: nothing submitted: %w", compute.ErrArgument)
		case other.d != r.s.d:
			return fmt.Errorf("wait: the work %w", compute.ErrForeignTensor)
		}
		return other.before(s)
	})
}

// Replay runs a graph as part of the recording. The graph may be closed once this has returned.
func (r *Recording) Replay(g *Graph) error {
	return r.do(func(drv driver.Driver, s driver.Stream) error { return g.launch(r, drv, s) })
}

// Submit ends the recording and returns its work, or the first error of the recording; work given to the stream before the
// error runs nevertheless.
func (r *Recording) Submit() (*Submitted, error) {
	if !r.open {
		return nil, r.over()
	}
	x, err := r.submit()
	r.open = false
	r.net.Stop()
	if err != nil {
		r.discard()
		return nil, err
	}
	r.s.endRecording()
	return x, nil
}

func (r *Recording) submit() (x *Submitted, err error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	h, d := r.held, r.s.d
	defer d.leave()
	x = &Submitted{d: d, done: make(chan struct{}), start: h.start}
	if h.s.timed {
		if x.stop, err = h.mark(); err != nil {
			return nil, err
		}
	}
	if x.event, err = h.s.after(func(err error) { x.finish(h, err) }); err != nil {
		if x.stop != 0 {
			d.events.put(x.stop, true)
		}
		return nil, err
	}
	return x, nil
}

// discard gives up: waits for what was given to the stream, so that what it holds can be released. The recording is no longer
// in use.
func (h *held) discard() {
	d := h.s.d
	d.enterDead()
	_ = d.check("cuStreamSynchronize", d.drv.StreamSynchronize(h.s.handle)) // there is an error already, or nobody to tell
	d.leave()
	h.releaseKept()
	if h.start != 0 {
		d.events.put(h.start, true)
	}
	h.s.endRecording()
	d.life.End()
}

// Submitted is work in flight.
type Submitted struct {
	d           *state
	event       driver.Event // after the work, until it is done
	start, stop driver.Event // 0 unless the stream is timed
	elapsed     time.Duration

	mu   sync.Mutex
	done chan struct{}
	err  error
}

// before makes a stream wait for the work. The caller has entered the context.
func (x *Submitted) before(s driver.Stream) error {
	x.mu.Lock() // the event is x's as long as the work is not done
	defer x.mu.Unlock()
	select {
	case <-x.done:
		return x.err
	default:
		return x.d.check("cuStreamWaitEvent", x.d.drv.StreamWaitEvent(s, x.event))
	}
}

// finish is called once, when the work is done.
func (x *Submitted) finish(h *held, err error) {
	if x.stop != 0 {
		if err == nil {
			err = x.measure()
		}
		x.d.events.put(x.start, true)
		x.d.events.put(x.stop, true)
	}
	h.releaseKept()
	x.mu.Lock()
	x.err = err
	close(x.done)
	x.mu.Unlock()
}

func (x *Submitted) measure() error {
	if err := x.d.enter(); err != nil {
		return err
	}
	defer x.d.leave()
	ms, r := x.d.drv.EventElapsed(x.start, x.stop)
	x.elapsed = time.Duration(float64(ms) * float64(time.Millisecond))
	return x.d.check("cuEventElapsedTime", r)
}

// Done returns a channel that is closed when the work is done, or has failed.
func (x *Submitted) Done() <-chan struct{} { return x.done }

// Wait waits until the work is done and returns its error, or until ctx ends; then the work goes on, and Wait may be called
// again.
func (x *Submitted) Wait(ctx context.Context) (*Finished, error) {
	select {
	case <-x.done:
	default:
		if ctx == nil {
			return nil, compute.CheckContext(ctx)
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if x.err != nil {
		return nil, x.err
	}
	return &Finished{x}, nil
}

// Finished is completed work: its results can be read.
type Finished struct{ x *Submitted }

// Elapsed is the GPU's time for the work, or 0 unless the stream is timed.
func (f *Finished) Elapsed() time.Duration { return f.x.elapsed }
