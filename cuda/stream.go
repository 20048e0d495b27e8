package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
)

// Stream is a queue of work on a device. Work of one stream is done in the order of submission; different streams run at the
// same time as far as the GPU can. A [Recording] takes launches and copies, [Recording.Submit] returns a [Submitted], and
// [Submitted.Wait] a [Finished]. A stream has one recording at a time. It is safe for concurrent use.
type Stream struct {
	d      *state
	handle driver.Stream
	timed  bool

	mu        sync.Mutex
	closed    bool         // nothing new begins
	recording bool         // or a capture
	waiting   []completion // in the order of submission
	waiter    bool         // a goroutine looks after waiting
}

// completion is what to do when an event has passed.
type completion struct {
	event driver.Event
	done  func(error)
}

// StreamOptions describe a stream.
type StreamOptions struct {
	Priority int  // the GPU prefers lower numbers; it has few, usually 0 to −5, and takes the nearest
	Timed    bool // submissions measure the GPU's time
}

// NewStream makes a stream of the device, which closes it.
func (d *Device) NewStream(o StreamOptions) (*Stream, error) {
	if err := d.lifetime().Begin(); err != nil {
		return nil, err
	}
	defer d.life.End()
	s, err := d.newStream(o)
	if err != nil {
		return nil, err
	}
	d.pool.watch(s.handle)
	return s, nil
}

func (d *state) newStream(o StreamOptions) (*Stream, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	least, greatest, r := d.drv.StreamPriorityRange()
	if err := d.check("cuCtxGetStreamPriorityRange", r); err != nil {
		return nil, err
	}
	handle, r := d.drv.StreamCreate(max(greatest, min(least, o.Priority)))
	if err := d.check("cuStreamCreateWithPriority", r); err != nil {
		return nil, err
	}
	s := &Stream{d: d, handle: handle, timed: o.Timed}
	d.streams.Add(s)
	return s, nil
}

// Close closes the stream. It does not wait: the stream's work finishes, after which the stream is destroyed, and an open recording can
// still be submitted before that. Close is idempotent.
func (s *Stream) Close() error {
	if s.d.life.Hold() != nil {
		return nil // the device has closed it, or will
	}
	defer s.d.life.End()
	s.mu.Lock()
	closed, open := s.closed, s.recording
	s.closed = true
	s.mu.Unlock()
	if closed || open {
		return nil
	}
	return s.release()
}

// release is giveBack without waiting: in a goroutine if the stream has work. The caller has reserved the device.
func (s *Stream) release() error {
	s.d.enterDead()
	r := s.d.drv.StreamQuery(s.handle)
	s.d.leave()
	if r != driver.NotReady {
		return s.giveBack()
	}
	s.d.life.Extend()
	go func() {
		defer s.d.life.End()
		if err := s.giveBack(); err != nil {
			s.d.log.Warn("cuda: closing a stream", "error", err)
		}
	}()
	return nil
}

// giveBack waits and frees, unless the device has.
func (s *Stream) giveBack() error {
	if !s.d.streams.Remove(s) {
		return nil
	}
	s.d.enterDead()
	defer s.d.leave()
	err := errors.Join(s.d.pool.unwatch(s.handle), s.destroy())
	if s.d.poison.Load() != nil {
		return nil // everybody knows
	}
	return err
}

// destroy waits and frees; nobody else does it, and the caller has entered the context, dead or not.
func (s *Stream) destroy() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.d.check("cuStreamSynchronize", s.d.drv.StreamSynchronize(s.handle))
	return errors.Join(err, s.d.check("cuStreamDestroy", s.d.drv.StreamDestroy(s.handle)))
}

// begin reserves the stream for a recording.
func (s *Stream) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return device.Closed("stream")
	case s.recording:
		return fmt.Errorf("the stream has a recording that is not submitted yet: %w", compute.ErrArgument)
	}
	s.recording = true
	return nil
}

// endRecording makes room for another recording. The caller has reserved the device.
func (s *Stream) endRecording() {
	s.mu.Lock()
	s.recording = false
	closed := s.closed
	s.mu.Unlock()
	if closed {
		if err := s.release(); err != nil {
			s.d.log.Warn("cuda: closing a stream", "error", err)
		}
	}
}

// after calls done when everything submitted so far has been done, with the error that the context has by then, and returns
// the event that tells. Callbacks of one stream come in order, on a goroutine of their own. The caller has entered the
// context and reserved the device; unless after fails, the reservation ends after the callback.
func (s *Stream) after(done func(error)) (driver.Event, error) {
	event, err := s.d.events.get(false)
	if err != nil {
		return 0, err
	}
	if err := s.d.check("cuEventRecord", s.d.drv.EventRecord(event, s.handle)); err != nil {
		s.d.events.put(event, false)
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, completion{event, done})
	if !s.waiter {
		s.waiter = true
		go s.wait()
	}
	return event, nil
}

// wait waits for one event after the other until there are none.
func (s *Stream) wait() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.waiter = false
			s.waiting = nil
			s.mu.Unlock()
			return
		}
		c := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		c.done(s.d.awaitEvent(c.event))
		s.d.events.put(c.event, false)
		s.d.life.End()
	}
}
