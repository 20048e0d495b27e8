package cuda

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// Recorder takes work for a stream: a [*Recording] or a [*Capture].
type Recorder interface {
	recorder() *work
}

// work is what a recording and a capture have in common: calls go to the stream at once, the first error is kept.
type work struct {
	s      *Stream
	open   bool
	err    error
	params []byte // of the launch that is being made
	launch driver.Launch
	kept   []releaser

	capturing bool
}

// releaser is what work holds on to until it is done.
type releaser interface{ release() }

func (w *work) recorder() *work { return w }

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
		return closedError("recording") // submitted, discarded, or outside of its capture
	}
	if w.err != nil {
		return w.err
	}
	return w.note(w.s.d.enter())
}

// note keeps the first error.
func (w *work) note(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// keep holds on to x until the work is done.
func (w *work) keep(x releaser) { w.kept = append(w.kept, x) }

func (w *work) releaseKept() {
	for _, x := range w.kept {
		x.release()
	}
	w.kept = nil
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

// Recording is work that is given to a stream, which may begin with it at once. Its errors are returned where they occur, and
// the first one again by Submit. It belongs to one goroutine.
type Recording struct {
	work
	start driver.Event // of a timed stream
}

// Begin begins a recording. It has to be submitted.
func (s *Stream) Begin() (*Recording, error) {
	if err := s.d.begin(); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		s.d.end()
		return nil, err
	}
	r := &Recording{work: work{s: s, open: true}}
	if s.timed {
		if err := r.do(r.mark(&r.start)); err != nil {
			r.discard()
			return nil, err
		}
	}
	return r, nil
}

// mark records an event that knows the time.
func (r *Recording) mark(e *driver.Event) func(driver.Driver, driver.Stream) error {
	return func(drv driver.Driver, s driver.Stream) (err error) {
		if *e, err = r.s.d.events.get(true); err != nil {
			return err
		}
		return r.s.d.check("cuEventRecord", drv.EventRecord(*e, s))
	}
}

// Launch runs a kernel. Its arguments are checked against its declaration. Memory that they point to must not be closed before
// the work is submitted.
func (r *Recording) Launch(k *Kernel, l Launch, a ...Arg) error { return r.launchKernel(k, &l, a) }

// Wait makes what follows wait until other work is done, of any stream of the same device. The host does not wait.
func (r *Recording) Wait(other *Submitted) error {
	return r.do(func(drv driver.Driver, s driver.Stream) error {
		if other == nil || other.s.d != r.s.d {
			return fmt.Errorf("waiting for work of another device: %w", compute.ErrArgument)
		}
		// What the other stream has by now includes what is waited for.
		e, err := r.s.d.events.get(false)
		if err != nil {
			return err
		}
		defer r.s.d.events.put(e, false) // a wait takes the event as it is now
		if err := r.s.d.check("cuEventRecord", drv.EventRecord(e, other.s.handle)); err != nil {
			return err
		}
		return r.s.d.check("cuStreamWaitEvent", drv.StreamWaitEvent(s, e))
	})
}

// Replay runs a graph as part of the recording.
func (r *Recording) Replay(g *Graph) error {
	return r.do(func(drv driver.Driver, s driver.Stream) error { return g.launch(r, drv, s) })
}

// Submit ends the recording, and returns the work that is under way, or the first error of the recording; what was given to the
// stream before that runs nevertheless.
func (r *Recording) Submit() (*Submitted, error) {
	if !r.open {
		return nil, closedError("recording")
	}
	if r.err != nil {
		err := r.err
		r.discard()
		return nil, err
	}
	x := &Submitted{s: r.s, done: make(chan struct{}), start: r.start}
	err := r.do(func(driver.Driver, driver.Stream) error {
		if r.s.timed {
			if err := r.do(r.mark(&x.stop)); err != nil {
				return err
			}
		}
		return r.s.after(func(err error) { x.finish(r, err) })
	})
	if err != nil {
		r.discard()
		return nil, err
	}
	r.open = false
	r.s.endRecording()
	return x, nil
}

// discard gives up: waits for what was given to the stream, so that what is kept can go.
func (r *Recording) discard() {
	r.open = false
	if r.s.d.enter() == nil {
		_ = r.s.d.check("cuStreamSynchronize", r.s.d.drv.StreamSynchronize(r.s.handle)) // the recording has an error already
		r.s.d.leave()
	}
	r.releaseKept()
	if r.start != 0 {
		r.s.d.events.put(r.start, true)
	}
	r.s.endRecording()
	r.s.d.end()
}

// Submitted is work under way.
type Submitted struct {
	s           *Stream
	done        chan struct{}
	err         error
	start, stop driver.Event
	elapsed     time.Duration
}

// finish is called once, when the work is done.
func (x *Submitted) finish(r *Recording, err error) {
	d := x.s.d
	if x.stop != 0 {
		if err == nil {
			err = d.enter()
		}
		if err == nil {
			ms, result := d.drv.EventElapsed(x.start, x.stop)
			err = d.check("cuEventElapsedTime", result)
			x.elapsed = time.Duration(float64(ms) * float64(time.Millisecond))
			d.leave()
		}
		d.events.put(x.start, true)
		d.events.put(x.stop, true)
	}
	r.releaseKept()
	x.err = err
	close(x.done)
	d.end()
}

// Done returns a channel that is closed when the work is done, or has failed.
func (x *Submitted) Done() <-chan struct{} { return x.done }

// Wait waits until the work is done and returns its error, or until ctx ends; then the work goes on, and Wait may be called
// again.
func (x *Submitted) Wait(ctx context.Context) (*Finished, error) {
	select {
	case <-x.done:
	default:
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

// Finished is work that is done: what it wrote can be read.
type Finished struct{ x *Submitted }

// Elapsed is the GPU's time from the first to the last of the work; 0 unless the stream is timed.
func (f *Finished) Elapsed() time.Duration { return f.x.elapsed }
