package device

import (
	"context"
	"fmt"
	"runtime"
	"sync"

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
	return Once(context.Background(), d, p, &program.IO{Tensors: []compute.Tensor{t}, Read: []any{dst}})
}

// TensorClosed is the error of use of a tensor that is closed.
func TensorClosed(t program.Type) error { return Closed(fmt.Sprintf("tensor of shape %v", t.Shape)) }

// Handle is the use of memory by a tensor or a buffer, of which it is a field. It ends with Close, or when the garbage collector finds
// the whole unreachable. It is safe for concurrent use.
type Handle[M any] struct {
	mu      sync.Mutex
	memory  M
	open    bool
	release func(M)
	cleanup runtime.Cleanup
}

// Open takes over one use of memory, which release will end.
func (h *Handle[M]) Open(memory M, release func(M)) {
	h.memory, h.open, h.release = memory, true, release
	h.cleanup = runtime.AddCleanup(h, release, memory)
}

// Acquire returns the memory after retain has added a use, or false if the handle is closed.
func (h *Handle[M]) Acquire(retain func(M) M) (m M, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open {
		return m, false
	}
	return retain(h.memory), true
}

// IsOpen reports whether the handle has not been closed.
func (h *Handle[M]) IsOpen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// Close ends the use of the memory. It is idempotent.
func (h *Handle[M]) Close() {
	h.mu.Lock()
	m, open := h.memory, h.open
	var none M
	h.memory, h.open = none, false
	h.mu.Unlock()
	if open {
		h.cleanup.Stop()
		h.release(m)
	}
}
