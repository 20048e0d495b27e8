package main

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// tensor is a resident tensor and the device that it belongs to.
type tensor struct {
	compute.Tensor
	device *opened
}

// record is a batch while it is recorded.
type record struct {
	device  *opened
	batch   *batch.Batch
	values  []batch.Value
	outputs []output // in the order of read and keep
	failed  error
}

// plan is a compiled batch.
type plan struct {
	*batch.Plan
	device  *opened
	values  []batch.Value
	outputs []output
	latest  <-chan struct{} // closed when the latest run has delivered its results, which belong to the plan; nil before the first
	failed  error           // of an input set while runs were waiting
}

// output is a requested result of a batch: one of the two.
type output struct {
	read *batch.Result
	keep *batch.Kept

	tensor compute.Tensor // of keep, once a run has begun
}

// owned is what has to be closed before its device.
type owned interface {
	owner() *opened
	Close() error
}

func (t *tensor) owner() *opened { return t.device }
func (p *plan) owner() *opened   { return p.device }

// handles are the objects that JavaScript holds, by their number. A number is never used again.
var (
	handles    = map[int]any{}
	lastHandle int
)

func hold(x any) int {
	lastHandle++
	handles[lastHandle] = x
	return lastHandle
}

// held returns the object of a handle that was not released.
func held[T any](handle int) (T, error) {
	x, ok := handles[handle].(T)
	if !ok {
		return x, fmt.Errorf("object %d: %w", handle, compute.ErrClosed)
	}
	return x, nil
}

// release forgets an object, and closes it after the calls that were made before: a page may close what a waiting call uses, and its
// garbage collector may find that nobody else does.
func release(handle int) {
	switch x := handles[handle].(type) {
	case owned:
		x.owner().enqueue(func() { x.Close() })
	case *opened:
		x.enqueue(func() { x.executor.Close() })
	}
	delete(handles, handle)
}

// calls are those in flight; JavaScript cancels them by their number.
var calls = map[int]context.CancelFunc{}
