package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall/js"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
)

// enqueue runs f after all that was enqueued on the device before. F starts work and may wait for compilers, but not for the work.
func (d *opened) enqueue(f func()) {
	d.queue = append(d.queue, f)
	if !d.draining {
		d.draining = true
		go d.drain()
	}
}

func (d *opened) drain() {
	for len(d.queue) > 0 {
		f := d.queue[0]
		d.queue[0] = nil
		d.queue = d.queue[1:]
		f()
	}
	d.queue = nil
	d.draining = false
}

// call is a call that JavaScript waits for.
type call struct {
	number int
	ctx    context.Context
	done   chan struct{} // closed when it is settled
}

func newCall(number int) *call {
	ctx, cancel := context.WithCancel(context.Background())
	calls[number] = cancel
	return &call{number, ctx, make(chan struct{})}
}

// resolve settles the call. Results are what become elements of a JavaScript array.
func (c *call) resolve(results ...any) { c.settle(js.Null(), results) }

func (c *call) reject(err error) { c.settle(failure(err), nil) }

func (c *call) settle(failure js.Value, results []any) {
	cancel := calls[c.number]
	if cancel == nil {
		return // a panic after it was settled
	}
	cancel()
	delete(calls, c.number)
	close(c.done)
	page.settle.Invoke(c.number, failure, js.ValueOf(results))
}

// guard makes a panic, which would be a mistake of the library, the call's failure: the program goes on.
func (c *call) guard() {
	if v := recover(); v != nil {
		c.reject(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
	}
}

// start enqueues the start of work. Begin returns what is to be awaited, and what then makes the results, or undoes the start if the
// work failed or nobody waits any more.
func (c *call) start(d *opened, begin func() (f *compute.Future, deliver func() ([]any, error), undo func())) {
	d.enqueue(func() {
		defer c.guard()
		if c.ctx.Err() != nil {
			c.reject(c.ctx.Err())
			return
		}
		f, deliver, undo := begin()
		go func() {
			defer c.guard()
			err := f.AwaitOrAbandon(c.ctx)
			var results []any
			if err == nil {
				results, err = deliver()
			}
			if err != nil {
				undo()
				c.reject(err)
				return
			}
			c.resolve(results...)
		}()
	})
}

// sentinels are the errors that have a class of their own in JavaScript.
var sentinels = []struct {
	err  error
	name string
}{
	{compute.ErrClosed, "ClosedError"}, {compute.ErrDeviceLost, "DeviceLostError"}, {compute.ErrOutOfMemory, "OutOfMemoryError"},
	{compute.ErrTooLarge, "TooLargeError"}, {compute.ErrUnavailable, "UnavailableError"}, {compute.ErrUnsupported, "UnsupportedError"},
	{compute.ErrForeignTensor, "ForeignTensorError"}, {compute.ErrInFlight, "InFlightError"}, {compute.ErrNotRun, "NotRunError"}, {compute.ErrDType, "DTypeError"},
	{compute.ErrShape, "ShapeError"}, {compute.ErrArgument, "ArgumentError"},
}

// said is an error's text for a page: what to ask for is called as JavaScript calls it.
func said(err error) string {
	return strings.ReplaceAll(err.Error(), "WithSoftware", "the option software: true")
}

// failure says an error to JavaScript: the class, the message and, for a shader, the position.
func failure(err error) js.Value {
	var shader *gpu.ShaderError
	if errors.As(err, &shader) {
		return js.ValueOf([]any{"ShaderError", said(err), shader.Line, shader.Column, shader.Details})
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return js.ValueOf([]any{s.name, said(err)})
		}
	}
	return js.ValueOf([]any{"WavelaneError", said(err)})
}

// recorded is the error of a batch without the line of Go code that recorded it, which means nothing to a page.
func recorded(b *batch.Batch) error {
	if err := b.Err(); err != nil {
		return errors.Unwrap(err)
	}
	return nil
}
