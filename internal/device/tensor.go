package device

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// CheckIO validates the data of a run of p. Tensors have to be of type T, and the device's own: the error wraps
// compute.ErrForeignTensor. It allocates nothing where nothing is wrong.
func CheckIO[T interface {
	comparable
	compute.Tensor
}](p *program.Program, io *program.IO, own func(t T) (typ program.Type, ok bool)) error {
	var none T
	for i, t := range io.Tensors {
		x, ok := t.(T)
		if t == nil || ok && x == none {
			return fmt.Errorf("tensor %d is nil: %w", i, compute.ErrArgument)
		}
		if ok {
			_, ok = own(x)
		}
		if !ok {
			return fmt.Errorf("tensor %d of shape %v: %w", i, t.Shape(), compute.ErrForeignTensor)
		}
	}
	return p.CheckIO(io, func(t compute.Tensor) program.Type {
		typ, _ := own(t.(T))
		return typ
	})
}

// Read copies the elements of a tensor of a device to dst.
func Read(d program.Executor, t compute.Tensor, typ program.Type, dst any) *compute.Future {
	p := &program.Program{}
	p.Read = []program.Slot{p.Add(typ, program.FromTensor)}
	return Once(d, p, &program.IO{Tensors: []compute.Tensor{t}, Read: []any{dst}})
}

// TensorClosed is the error of use of a tensor that is closed.
func TensorClosed(t program.Type) error { return Closed(fmt.Sprintf("tensor of shape %v", t.Shape)) }
