package gpu

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// Tensor is data that stays on a device; see [compute.Tensor].
type Tensor struct {
	dev *Device
	typ program.Type

	buf device.Handle[*buffer]
}

var _ compute.Tensor = (*Tensor)(nil)

// newTensor takes over one reference to b.
func newTensor(dev *Device, t program.Type, b *buffer) *Tensor {
	x := &Tensor{dev: dev, typ: t.Clone()}
	x.buf.Open(b, (*buffer).release)
	return x
}

// Shape returns a copy of the shape.
func (t *Tensor) Shape() []int { return slices.Clone(t.typ.Shape) }

// DType returns the element type.
func (t *Tensor) DType() compute.DType { return t.typ.DType }

// acquire returns the buffer with one more reference.
func (t *Tensor) acquire() (*buffer, error) {
	b, ok := t.buf.Acquire((*buffer).retain)
	if !ok {
		return nil, device.TensorClosed(t.typ)
	}
	return b, nil
}

// Close frees the memory once the runs that use it have finished. It is idempotent.
func (t *Tensor) Close() error {
	t.buf.Close()
	return nil
}

// ReadAsync copies the elements to dst; see [compute.Tensor].
func (t *Tensor) ReadAsync(dst any) *compute.Future {
	if t.dev == nil { // the zero value
		return compute.Failed(device.TensorClosed(t.typ))
	}
	return device.Read(executor{t.dev}, t, t.typ, dst)
}
