package cpu

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// handle is the starter's part of a run, which outlives it.
type handle struct {
	x     *executable
	state atomic.Int32
	stop  atomic.Bool

	future  *compute.Future // nil for a starter that waits at once
	resolve compute.Resolve
	ended   chan error // instead; holds one
}

// States of a handle.
const (
	queued int32 = iota
	running
	abandoned // before it began
)

var errAbandoned = fmt.Errorf("abandoned before the end: %w", context.Canceled)

// settle tells the starter of the run's end.
func (h *handle) settle(err error) {
	if h.future != nil {
		h.resolve(err, nil)
	} else {
		h.ended <- err
	}
}

// abandon is called when the only waiter gives up. On return the run no longer touches the caller's slices.
func (h *handle) abandon() {
	if h.x.keeps {
		return // the tensors may be in use; host slices were copied by Start
	}
	if h.state.CompareAndSwap(queued, abandoned) {
		h.resolve(errAbandoned, nil)
		return
	}
	h.stop.Store(true)
	if !h.x.detached() {
		<-h.future.Done()
	}
}

// Start begins one run. Small programs are done when it returns.
func (x *executable) Start(io *program.IO) *compute.Future {
	h := &handle{x: x}
	h.future, h.resolve = compute.NewFuture(h.abandon)
	if err := x.start(io, h); err != nil {
		return compute.Failed(err)
	}
	return h.future
}

// Begin implements program.Direct. Runs that outlive their waiters, those of detached programs, have futures all the same.
func (x *executable) Begin(io *program.IO) (program.Waiter, error) {
	if x.detached() {
		return future{x.Start(io)}, nil
	}
	h := x.handle()
	if err := x.start(io, h); err != nil {
		return nil, err
	}
	return h, nil
}

// future is a compute.Future as a Waiter.
type future struct{ *compute.Future }

// Wait implements program.Waiter.
func (f future) Wait(ctx context.Context) error { return f.AwaitOrAbandon(ctx) }

// handle returns an idle handle without a future, or a new one.
func (x *executable) handle() *handle {
	if h, ok, _ := x.handles.Take(); ok {
		h.state.Store(queued)
		h.stop.Store(false)
		return h
	}
	return &handle{x: x, ended: make(chan error, 1)}
}

// Wait implements program.Waiter.
func (h *handle) Wait(ctx context.Context) error {
	var err error
	select {
	case err = <-h.ended: // finished work is never reported as cancelled
	default:
		select {
		case err = <-h.ended:
		case <-ctx.Done():
			err = ctx.Err()
			if h.state.CompareAndSwap(queued, abandoned) {
				return err // the run will still tell the handle of its end
			}
			h.stop.Store(true)
			<-h.ended
		}
	}
	h.x.handles.Put(h, spare)
	return err
}
