package cuda

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
	at      located // the block is nil once closed
	cleanup runtime.Cleanup
}

var _ compute.Tensor = (*Tensor)(nil)

// newTensor takes over one reference to the block.
func newTensor(dev *Device, t program.Type, at located) *Tensor {
	x := &Tensor{dev: dev, typ: program.Type{DType: t.DType, Shape: slices.Clone(t.Shape)}, at: at}
	x.cleanup = runtime.AddCleanup(x, func(b *block) { b.release() }, at.block) // a net under a forgotten Close
	return x
}

// Shape returns a copy of the shape.
func (t *Tensor) Shape() []int { return slices.Clone(t.typ.Shape) }

// DType returns the element type.
func (t *Tensor) DType() compute.DType { return t.typ.DType }

// acquire returns the memory with one more reference.
func (t *Tensor) acquire() (located, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.block == nil {
		return located{}, closedError(fmt.Sprintf("tensor of shape %v", t.typ.Shape))
	}
	t.at.block.retain()
	return t.at, nil
}

// Close gives the memory back once the runs that use it have finished. It is idempotent.
func (t *Tensor) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.block != nil {
		t.cleanup.Stop()
		t.at.block.release()
		t.at.block = nil
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
	f, err := device.Start(d, p, io)
	if err != nil {
		return compute.Failed(err)
	}
	return f
}
