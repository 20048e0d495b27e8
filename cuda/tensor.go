package cuda

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

	at device.Handle[located]
}

var _ compute.Tensor = (*Tensor)(nil)

// newTensor takes over one reference to the block.
func newTensor(dev *Device, t program.Type, at located) *Tensor {
	x := &Tensor{dev: dev, typ: t.Clone()}
	x.at.Open(at, located.release)
	return x
}

// Shape returns a copy of the shape.
func (t *Tensor) Shape() []int { return slices.Clone(t.typ.Shape) }

// DType returns the element type.
func (t *Tensor) DType() compute.DType { return t.typ.DType }

// acquire returns the memory with one more reference.
func (t *Tensor) acquire() (located, error) {
	at, ok := t.at.Acquire(located.retain)
	if !ok {
		return located{}, device.TensorClosed(t.typ)
	}
	return at, nil
}

// Close frees the memory once the runs that use it have finished. It is idempotent.
func (t *Tensor) Close() error {
	t.at.Close()
	return nil
}

// ReadAsync copies the elements to dst; see [compute.Tensor].
func (t *Tensor) ReadAsync(dst any) *compute.Future {
	if t.dev == nil { // the zero value
		return compute.Failed(device.TensorClosed(t.typ))
	}
	return device.Read(executor{t.dev}, t, t.typ, dst)
}
