package device

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
)

// Lifetime is the time during which a device can be used. Calls and runs in flight hold the device: it is torn down when it has been
// closed and nobody holds it any more. It is safe for concurrent use. A nil
// Lifetime is that of a device that was not opened.
type Lifetime struct {
	name     string
	fault    func() error
	teardown func()

	mu     sync.Mutex
	closed bool
	holds  int
}

// NewLifetime returns the lifetime of an open device. Name is that of the kind of device, for errors. Fault tells why an open device
// must not be used, such as its loss; it may be nil. Teardown is called once, by whoever ends the last use.
func NewLifetime(name string, fault func() error, teardown func()) *Lifetime {
	return &Lifetime{name: name, fault: fault, teardown: teardown}
}

// Begin holds the device for a call or a run, until End. The error wraps compute.ErrClosed, or is the device's fault.
func (l *Lifetime) Begin() error {
	if err := l.Hold(); err != nil {
		return err
	}
	if l.fault == nil {
		return nil
	}
	err := l.fault()
	if err != nil {
		l.End()
	}
	return err
}

// Hold is Begin for calls that only free something, which is possible on a device with a fault too.
func (l *Lifetime) Hold() error {
	if l == nil {
		return fmt.Errorf("the device was not opened: %w", compute.ErrArgument)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Closed(l.name + " device")
	}
	l.holds++
	return nil
}

// Extend holds the device once more, on behalf of a caller that holds it, for work that goes on after the call.
func (l *Lifetime) Extend() {
	l.mu.Lock()
	l.holds++
	l.mu.Unlock()
}

// End ends what Begin, Hold or Extend began.
func (l *Lifetime) End() {
	l.mu.Lock()
	l.holds--
	last := l.closed && l.holds == 0
	l.mu.Unlock()
	if last {
		l.teardown()
	}
}

// Close closes the device. It does not wait and is idempotent.
func (l *Lifetime) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	last := !l.closed && l.holds == 0
	l.closed = true
	l.mu.Unlock()
	if last {
		l.teardown()
	}
}

// Closed is the error of later use of something closed.
func Closed(what string) error { return fmt.Errorf("%s: %w", what, compute.ErrClosed) }

// Children is a set of what was made from a device and is closed with it. The zero value is empty. It is safe for concurrent use.
type Children[C comparable] struct {
	mu  sync.Mutex
	set map[C]struct{}
}

// Add adds a child.
func (c *Children[C]) Add(child C) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == nil {
		c.set = map[C]struct{}{}
	}
	c.set[child] = struct{}{}
}

// Remove removes a child and reports whether it was there.
func (c *Children[C]) Remove(child C) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.set[child]
	delete(c.set, child)
	return ok
}

// Len is the number of children.
func (c *Children[C]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.set)
}

// All lists the children.
func (c *Children[C]) All() []C {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.set))
}
