package compute

import (
	"context"
	"fmt"
	"sync"
)

// Future is the result of an asynchronous operation. Once it is done its error never changes. Destinations passed to the
// operation hold their results when it is done without error.
type Future struct {
	done chan struct{}

	mu        sync.Mutex
	err       error
	resolved  bool
	abandoned bool
	onAbandon func()
}

// Resolve completes a future. Deliver, when not nil, writes the results into the caller's memory; it is not called if err is
// not nil or the caller no longer waits. Only the first call counts.
type Resolve func(err error, deliver func())

// NewFuture is for devices: it returns a future and the function that completes it.
// onAbandon, when not nil, is called at most once if the only waiter gives up.
func NewFuture(onAbandon func()) (*Future, Resolve) {
	f := &Future{done: make(chan struct{}), onAbandon: onAbandon}
	return f, f.resolve
}

// CheckContext is for functions that take a context: it returns why they must not begin, ErrArgument for a nil context or ctx.Err().
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("nil context: %w", ErrArgument)
	}
	return ctx.Err()
}

// Failed returns a future that is done with err.
func Failed(err error) *Future {
	f := &Future{done: make(chan struct{}), err: err, resolved: true}
	close(f.done)
	return f
}

func (f *Future) resolve(err error, deliver func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resolved {
		return
	}
	f.resolved = true
	if err == nil && f.abandoned {
		err = context.Canceled // nobody's memory holds the results
	}
	if err == nil && deliver != nil {
		deliver()
	}
	f.err = err
	close(f.done)
}

// Done returns a channel that is closed when the operation has finished, for use in a select.
func (f *Future) Done() <-chan struct{} { return f.done }

// Err returns the operation's error, or nil while it is running.
func (f *Future) Err() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

// InFlight reports whether the operation may still write to the caller's slices: it is neither done nor abandoned.
func (f *Future) InFlight() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.resolved && !f.abandoned
}

// Await waits until the operation is done and returns its error, or until ctx ends and returns ctx.Err().
// In the latter case the operation goes on: its slices stay in use, and Await may be called again.
func (f *Future) Await(ctx context.Context) error {
	select {
	case <-f.done: // finished work is never reported as cancelled
		return f.err
	default:
	}
	if err := CheckContext(ctx); err != nil {
		return err
	}
	if f.done == nil {
		return fmt.Errorf("a future of no operation: %w", ErrArgument)
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AwaitOrAbandon is Await for the only waiter. When ctx ends first, the caller may use its slices again on return: nothing is
// written to them any more. Memory that the device still uses stays alive until the device no longer needs it.
func (f *Future) AwaitOrAbandon(ctx context.Context) error {
	err := f.Await(ctx)
	select {
	case <-f.done:
		return f.err
	default:
	}
	f.mu.Lock()
	if f.resolved {
		f.mu.Unlock()
		return f.err
	}
	first := !f.abandoned
	f.abandoned = true
	f.mu.Unlock()
	if first && f.onAbandon != nil {
		f.onAbandon()
	}
	return err
}
