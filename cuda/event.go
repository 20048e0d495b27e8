package cuda

import (
	"runtime"
	"sync"
	"time"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// events keeps events for reuse: making one takes longer than a launch.
type events struct {
	p    *primary
	mu   sync.Mutex
	idle [2][]driver.Event // without and with timing
}

func kindOf(timing bool) int {
	if timing {
		return 1
	}
	return 0
}

// get returns an event; the caller has entered the context.
func (e *events) get(timing bool) (driver.Event, error) {
	e.mu.Lock()
	list := &e.idle[kindOf(timing)]
	if n := len(*list); n > 0 {
		event := (*list)[n-1]
		*list = (*list)[:n-1]
		e.mu.Unlock()
		return event, nil
	}
	e.mu.Unlock()
	event, r := e.p.drv.EventCreate(timing)
	return event, e.p.check("cuEventCreate", r)
}

// put takes an event back, from any thread.
func (e *events) put(event driver.Event, timing bool) {
	e.mu.Lock()
	e.idle[kindOf(timing)] = append(e.idle[kindOf(timing)], event)
	e.mu.Unlock()
}

// close destroys the events; the caller has entered the context.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, list := range e.idle {
		for _, event := range list {
			e.p.drv.EventDestroy(event)
		}
	}
	e.idle = [2][]driver.Event{}
}

// patience is how long to poll an event before sleeping until it comes: waking up takes longer than most small programs.
const patience = 40 * time.Microsecond

// awaitEvent waits until an event has passed. It fails if the context is dead.
func (p *primary) awaitEvent(event driver.Event) error {
	err := p.enter()
	if err != nil {
		if p.poison.Load() != nil {
			return err
		}
		p.enterDead() // the host must not go on while the GPU uses its memory
	}
	defer p.leave()
	for begin := time.Now(); err == nil && time.Since(begin) < patience; runtime.Gosched() {
		r := p.drv.EventQuery(event)
		if r == driver.Success {
			return nil
		}
		if r != driver.NotReady {
			err = p.check("cuEventQuery", r)
		}
	}
	if e := p.check("cuEventSynchronize", p.drv.EventSynchronize(event)); err == nil {
		err = e
	}
	return err
}
