package cpu

import (
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// Tensor is data that stays in the device's memory. It is safe for concurrent use; only operations that update it in place
// change it.
type Tensor struct {
	d      *Device
	typ    program.Type
	origin *origin               // of a tensor that a program computes; nil after Upload
	data   device.Handle[*block] // nil if there are no elements
}

// origin is the run that computes tensors. Runs that need them wait in it.
type origin struct {
	mu      sync.Mutex
	done    bool
	err     error
	waiting []*run
}

func (o *origin) resolve(err error) {
	o.mu.Lock()
	o.done, o.err = true, err
	waiting := o.waiting
	o.waiting = nil
	o.mu.Unlock()
	for _, r := range waiting {
		if err != nil {
			r.fail(err)
		}
		r.ready(false)
	}
}

// newTensor makes a tensor that owns one reference to data.
func (d *Device) newTensor(t program.Type, data *block, o *origin) *Tensor {
	x := &Tensor{d: d, typ: t.Clone(), origin: o}
	w := weak.Make(x)
	d.tensors.Add(w)
	x.data.Open(data, func(data *block) {
		data.release()
		d.tensors.Remove(w)
	})
	return x
}

// Shape returns a copy of the shape.
func (t *Tensor) Shape() []int { return slices.Clone(t.typ.Shape) }

// DType returns the element type.
func (t *Tensor) DType() compute.DType { return t.typ.DType }

// ReadAsync copies the elements to dst, a slice of the tensor's type and length. It waits for the program that computes
// the tensor.
func (t *Tensor) ReadAsync(dst any) *compute.Future {
	if t.d == nil { // the zero value
		return compute.Failed(device.TensorClosed(t.typ))
	}
	return device.Read(executor{t.d}, t, t.typ, dst)
}

// Close frees the tensor's memory once runs in flight no longer need it. It is idempotent.
func (t *Tensor) Close() error {
	t.data.Close()
	return nil
}

// acquire gives a run a reference to the data and makes it wait for the run that computes them.
func (t *Tensor) acquire(r *run) (*block, error) {
	data, ok := t.data.Acquire((*block).retain)
	if !ok {
		return nil, device.TensorClosed(t.typ)
	}
	if o := t.origin; o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err != nil {
			data.release()
			return nil, fmt.Errorf("tensor %v was not computed: %w", t.typ, o.err)
		}
		if !o.done {
			r.pending.Add(1)
			o.waiting = append(o.waiting, r)
		}
	}
	return data, nil
}
