package softgpu

import (
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/monotime"
)

// operation is work in a stream.
type operation interface {
	// run does it; an error kills the context.
	run(c *primary) error
	// finish is called after run, or instead of it if the context is dead, with the GPU's lock held.
	finish()
}

// done is embedded in operations that nobody waits for.
type done struct{}

func (done) finish() {}

// stream is a queue of operations. A goroutine works it off while there are any.
type stream struct {
	context *primary
	queue   []operation
	running bool // there is a goroutine
	gone    bool // destroyed
	// While it is captured:
	capture *capture
	tail    []int // the capture's nodes that the next one of this stream comes after
	node    int   // the last one that a call on this stream made
}

// push queues an operation. The GPU's lock is held.
func (s *stream) push(o operation) {
	s.queue = append(s.queue, o)
	if !s.running {
		s.running = true
		s.context.workers.Add(1)
		go s.work()
	}
}

func (s *stream) work() {
	c := s.context
	g := c.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(s.queue) > 0 {
		o := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		if c.open && c.fault == driver.Success {
			g.mu.Unlock()
			err := o.run(c)
			g.mu.Lock()
			if err != nil {
				c.fail(err)
			}
		}
		o.finish()
	}
	s.queue, s.running = nil, false
	if s.gone {
		delete(c.streams, s)
	}
	c.workers.Done()
}

// mark is a position in a stream.
type mark struct {
	done chan struct{} // closed when the stream has come there
	at   monotime.Time // when that was
}

func newMark() *mark { return &mark{done: make(chan struct{})} }

func (m *mark) reached() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// recordOp reaches a mark.
type recordOp struct{ mark *mark }

func (o *recordOp) run(*primary) error { return nil }

func (o *recordOp) finish() {
	o.mark.at = monotime.Now()
	close(o.mark.done)
}

// waitOp waits for a mark.
type waitOp struct {
	done
	mark *mark
}

func (o *waitOp) run(c *primary) error {
	select {
	case <-o.mark.done:
	case <-c.alive.Done():
	}
	return nil
}

// streamOf is the stream with the handle, if it belongs to the context; 0 is the default stream.
func (g *GPU) streamOf(c *primary, h driver.Stream) *stream {
	if h == 0 {
		return c.zero
	}
	if s, ok := lookup[*stream](g, uintptr(h)); ok && s.context == c {
		return s
	}
	return nil
}

// StreamCreate makes a stream. Priorities outside the range are moved into it, and change nothing here.
func (g *GPU) StreamCreate(priority int) (driver.Stream, driver.Result) {
	c, r := g.enter("StreamCreate", anyCall)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	s := &stream{context: c}
	c.streams[s] = true
	return driver.Stream(g.add(s)), driver.Success
}

// StreamPriorityRange is 0 to -5.
func (g *GPU) StreamPriorityRange() (least, greatest int, r driver.Result) {
	if _, r := g.enter("StreamPriorityRange", anyCall); r != driver.Success {
		return 0, 0, r
	}
	defer g.mu.Unlock()
	return 0, -5, driver.Success
}

// StreamDestroy returns at once; what is queued still runs.
func (g *GPU) StreamDestroy(h driver.Stream) driver.Result {
	c, r := g.enter("StreamDestroy", destroyCall)
	if c == nil {
		return r
	}
	defer g.mu.Unlock()
	s := g.streamOf(c, h)
	if s == nil || h == 0 {
		return driver.InvalidHandle
	}
	if k := s.capture; k != nil {
		k.invalid = true
		if k.origin == s {
			k.end()
		}
	}
	delete(g.handles, uintptr(h))
	if !s.running {
		delete(c.streams, s)
	}
	s.gone = true
	return r
}

// StreamSynchronize waits for what the stream has been given so far.
func (g *GPU) StreamSynchronize(h driver.Stream) driver.Result {
	s, r := g.watch("StreamSynchronize", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if s.running {
		m := newMark()
		s.push(&recordOp{m})
		g.mu.Unlock()
		<-m.done
		g.mu.Lock()
	}
	return s.context.fault
}

// StreamQuery is NotReady while there is work.
func (g *GPU) StreamQuery(h driver.Stream) driver.Result {
	s, r := g.watch("StreamQuery", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if s.running {
		return driver.NotReady
	}
	return driver.Success
}

// watch begins a call that asks how far a stream is. That breaks a capture that the stream is in, whichever thread asks.
func (g *GPU) watch(call string, h driver.Stream) (*stream, driver.Result) {
	c, r := g.enter(call, unsafeCall)
	if r != driver.Success {
		return nil, r
	}
	s := g.streamOf(c, h)
	switch {
	case s == nil:
		r = driver.InvalidHandle
	case s.capture != nil:
		s.capture.invalid = true
		r = driver.CaptureUnsupported
	default:
		return s, r
	}
	g.mu.Unlock()
	return nil, r
}

// StreamWaitEvent lets the stream wait for the event as it is at the call: the last record, or nothing.
func (g *GPU) StreamWaitEvent(h driver.Stream, e driver.Event) driver.Result {
	c, r := g.enter("StreamWaitEvent", anyCall)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	s := g.streamOf(c, h)
	ev, ok := lookup[*event](g, uintptr(e))
	switch {
	case s == nil || !ok:
		return driver.InvalidHandle
	case ev.capture != nil || s.capture != nil:
		return s.join(ev)
	case ev.mark != nil && !ev.mark.reached():
		s.push(&waitOp{mark: ev.mark})
	}
	return driver.Success
}
