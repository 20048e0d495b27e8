package gpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// Tensor is data that stays on a device; see [compute.Tensor].
type Tensor struct {
	dev *Device
	typ program.Type

	mu      sync.Mutex
	buf     *buffer // nil once closed
	cleanup runtime.Cleanup
}

var _ compute.Tensor = (*Tensor)(nil)

// newTensor takes over one reference to b.
func newTensor(dev *Device, t program.Type, b *buffer) *Tensor {
	x := &Tensor{dev: dev, typ: program.Type{DType: t.DType, Shape: slices.Clone(t.Shape)}, buf: b}
	x.cleanup = runtime.AddCleanup(x, func(b *buffer) { b.release() }, b) // in case Close is forgotten
	return x
}

// Shape returns a copy of the shape.
func (t *Tensor) Shape() []int { return slices.Clone(t.typ.Shape) }

// DType returns the element type.
func (t *Tensor) DType() compute.DType { return t.typ.DType }

// acquire returns the buffer with one more reference.
func (t *Tensor) acquire() (*buffer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf == nil {
		return nil, fmt.Errorf("tensor of shape %v: %w", t.typ.Shape, compute.ErrClosed)
	}
	return t.buf.retain(), nil
}

// Close frees the memory once the runs that use it have finished. It is idempotent.
func (t *Tensor) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf != nil {
		t.cleanup.Stop()
		t.buf.release()
		t.buf = nil
	}
	return nil
}

// ReadAsync copies the elements to dst; see [compute.Tensor].
func (t *Tensor) ReadAsync(dst any) *compute.Future {
	p := &program.Program{}
	p.Read = []program.Slot{p.Add(t.typ, program.FromTensor)}
	return t.dev.once(p, &program.IO{Tensors: []compute.Tensor{t}, Read: []any{dst}})
}

// once runs a program that is made for it.
func (d *Device) once(p *program.Program, io *program.IO) *compute.Future {
	f, err := device.Start(executor{d}, p, io)
	if err != nil {
		return compute.Failed(err)
	}
	return f
}
