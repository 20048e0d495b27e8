package softgpu

import (
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// event is a position in a stream, as of its last record.
type event struct {
	context *primary
	timing  bool
	mark    *mark    // nil while it has not been recorded
	capture *capture // that it was last recorded in
	after   []int    // the capture's nodes before it
}

// EventCreate makes an event.
func (g *GPU) EventCreate(timing bool) (driver.Event, driver.Result) {
	c, r := g.enter("EventCreate", anyCall)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	return driver.Event(g.add(&event{context: c, timing: timing})), driver.Success
}

// EventDestroy destroys the event; who waits for it still gets what was recorded.
func (g *GPU) EventDestroy(h driver.Event) driver.Result {
	c, r := g.enter("EventDestroy", destroyCall)
	if c == nil {
		return r
	}
	defer g.mu.Unlock()
	if _, ok := lookup[*event](g, uintptr(h)); !ok {
		return driver.InvalidHandle
	}
	delete(g.handles, uintptr(h))
	return r
}

// EventRecord moves the event to the end of the stream, which has to be of the event's context.
func (g *GPU) EventRecord(h driver.Event, stream driver.Stream) driver.Result {
	c, r := g.enter("EventRecord", anyCall)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	s := g.streamOf(c, stream)
	e, ok := lookup[*event](g, uintptr(h))
	if s == nil || !ok || e.context != c {
		return driver.InvalidHandle
	}
	if k := s.capture; k != nil {
		if k.invalid {
			return driver.CaptureInvalidated
		}
		e.mark, e.capture, e.after = nil, k, s.tail
		return driver.Success
	}
	e.mark, e.capture, e.after = newMark(), nil, nil
	s.push(&recordOp{e.mark})
	return driver.Success
}

// EventSynchronize waits until the event is complete. One that was never recorded is.
func (g *GPU) EventSynchronize(h driver.Event) driver.Result {
	c, e, r := g.ask("EventSynchronize", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if m := e.mark; m != nil {
		g.mu.Unlock()
		<-m.done
		g.mu.Lock()
	}
	return worse(c.fault, e.context.fault)
}

// EventQuery is NotReady while the event is not complete.
func (g *GPU) EventQuery(h driver.Event) driver.Result {
	_, e, r := g.ask("EventQuery", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if e.mark != nil && !e.mark.reached() {
		return driver.NotReady
	}
	return e.context.fault
}

// EventElapsed is the time by the host's clock.
func (g *GPU) EventElapsed(start, end driver.Event) (float32, driver.Result) {
	c, r := g.enter("EventElapsed", anyCall)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	a, ok := lookup[*event](g, uintptr(start))
	b, ok2 := lookup[*event](g, uintptr(end))
	switch {
	case !ok || !ok2 || a.context != c || b.context != c || !a.timing || !b.timing || a.mark == nil || b.mark == nil:
		return 0, driver.InvalidHandle
	case !a.mark.reached() || !b.mark.reached():
		return 0, driver.NotReady
	}
	return float32(b.mark.at.Sub(a.mark.at).Seconds() * 1e3), driver.Success
}

// ask begins a call that asks how far an event is.
func (g *GPU) ask(call string, h driver.Event) (*primary, *event, driver.Result) {
	c, r := g.enter(call, unsafeCall)
	if r != driver.Success {
		return nil, nil, r
	}
	e, ok := lookup[*event](g, uintptr(h))
	switch {
	case !ok:
		r = driver.InvalidHandle
	case e.capture != nil:
		e.capture.invalid = true
		r = capturedEvent
	default:
		return c, e, r
	}
	g.mu.Unlock()
	return nil, nil, r
}

// worse is the first of two results that is an error.
func worse(a, b driver.Result) driver.Result {
	if a != driver.Success {
		return a
	}
	return b
}
