package batch

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Result is a value read by [Batch.Read]. It holds data once its batch or plan has run; each further run overwrites it.
type Result struct {
	typ      program.Type
	data     any
	run      atomic.Pointer[compute.Future] // the latest
	recorded *Result                        // the one that the batch returned; nil if this is it
}

func (r *Result) origin() *Result {
	if r.recorded != nil {
		return r.recorded
	}
	return r
}

// ready reports whether the latest run has delivered.
func (r *Result) ready() bool {
	run := r.run.Load()
	if run == nil {
		return false
	}
	select {
	case <-run.Done():
		return delivered(run.Err())
	default:
		return false
	}
}

// delivered reports whether a run that ended with err has results.
func delivered(err error) bool {
	if err == nil {
		return true // without the variable, for which memory is allocated
	}
	var found *GuardError
	return errors.As(err, &found) && found.Delivered
}

// Shape returns a copy of the result's shape.
func (r *Result) Shape() []int { return slices.Clone(r.typ.Shape) }

// DType returns the result's element type.
func (r *Result) DType() compute.DType { return r.typ.DType }

// Data returns the result as a slice of its element type, or ErrNotRun if the latest run is not done or failed.
func (r *Result) Data() (any, error) {
	if !r.ready() {
		return nil, fmt.Errorf("result %v: %w", r.typ, compute.ErrNotRun)
	}
	return r.data, nil
}

// Float32s returns the elements, or nil if the batch has not run or the element type is another.
func (r *Result) Float32s() []float32 { return elements[float32](r) }

// Int32s returns the elements, or nil if the batch has not run or the element type is another.
func (r *Result) Int32s() []int32 { return elements[int32](r) }

// Uint32s returns the elements, or nil if the batch has not run or the element type is another.
func (r *Result) Uint32s() []uint32 { return elements[uint32](r) }

// Uint8s returns the elements, or nil if the batch has not run or the element type is another.
func (r *Result) Uint8s() []uint8 { return elements[uint8](r) }

// F16s returns the elements of a Float16 result, or nil if the batch has not run or the element type is another.
func (r *Result) F16s() []compute.F16 { return elements[compute.F16](r) }

// BF16s returns the elements of a BFloat16 result, or nil if the batch has not run or the element type is another.
func (r *Result) BF16s() []compute.BF16 { return elements[compute.BF16](r) }

// Scalar returns the only element of a float32 result; false if there is not exactly one or the batch has not run.
func (r *Result) Scalar() (float32, bool) {
	if s := r.Float32s(); len(s) == 1 {
		return s[0], true
	}
	return 0, false
}

func elements[E any](r *Result) []E {
	if !r.ready() {
		return nil
	}
	s, _ := r.data.([]E)
	return s
}

// Kept is a value retained by [Batch.Keep].
type Kept struct {
	recorded *Kept // the one that the batch returned; nil if this is it

	mu     sync.Mutex
	tensor compute.Tensor // of the latest run
	taken  bool           // it is the caller's
}

func (k *Kept) origin() *Kept {
	if k.recorded != nil {
		return k.recorded
	}
	return k
}

// Tensor returns the tensor that the latest run made, or nil before the first. From then on it is the caller's to close.
func (k *Kept) Tensor() compute.Tensor {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taken = true
	return k.tensor
}

// set replaces the tensor, and closes the one before if nobody has taken it.
func (k *Kept) set(t compute.Tensor) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tensor != nil && !k.taken {
		k.tensor.Close()
	}
	k.tensor, k.taken = t, false
}
