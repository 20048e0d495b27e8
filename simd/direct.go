package simd

import (
	"context"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// Begin implements op.Direct. Runs that outlive their waiters, those of detached programs, have futures all the same.
func (x *executable) Begin(io *op.IO) (op.Waiter, error) {
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

// Wait implements op.Waiter.
func (f future) Wait(ctx context.Context) error { return f.AwaitOrAbandon(ctx) }

// handle returns an idle handle without a future, or a new one.
func (x *executable) handle() *handle {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.handles); n > 0 {
		h := x.handles[n-1]
		x.handles = x.handles[:n-1]
		h.state.Store(queued)
		h.stop.Store(false)
		return h
	}
	return &handle{x: x, ended: make(chan error, 1)}
}

// Wait implements op.Waiter.
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
	h.x.mu.Lock()
	defer h.x.mu.Unlock()
	if !h.x.closed && len(h.x.handles) < spare {
		h.x.handles = append(h.x.handles, h)
	}
	return err
}
