package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
)

// HostBuffer is pinned host memory for elements of one type, which streams copy directly. The buffer is safe for concurrent
// use; its contents are not.
//
// Pinned memory is scarce: close buffers. A forgotten buffer holds its memory until the device is closed, because its slice
// may still be in use.
type HostBuffer[T Element] struct {
	dev *Device
	at  unsafe.Pointer
	n   int

	mu    sync.Mutex
	block *hostBlock // nil when closed
}

// AllocHost returns a buffer of n elements, whose contents are not defined. Errors wrap compute.ErrOutOfMemory.
func AllocHost[T Element](d *Device, n int) (*HostBuffer[T], error) {
	b, err := allocHost[T](d, n)
	if err != nil {
		return nil, fmt.Errorf("host buffer of %d elements of %T: %w", n, *new(T), err)
	}
	return b, nil
}

func allocHost[T Element](d *Device, n int) (b *HostBuffer[T], err error) {
	err = reserve[T](d, n, func(bytes uint64) error {
		m, err := d.host.get(bytes)
		if err == nil {
			b = &HostBuffer[T]{dev: d, at: m.at, n: n, block: m}
		}
		return err
	})
	return b, err
}

// Len is the number of elements.
func (b *HostBuffer[T]) Len() int { return b.n }

// Slice is the memory. It is nil once the buffer is closed; slices taken before must not be used after Close, nor after the
// device's.
func (b *HostBuffer[T]) Slice() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.block == nil {
		return nil
	}
	return unsafe.Slice((*T)(b.at), b.n)
}

// acquire returns the memory with one more user.
func (b *HostBuffer[T]) acquire(d *state) (*hostBlock, error) {
	if b == nil {
		return nil, fmt.Errorf("nil host buffer: %w", compute.ErrArgument)
	}
	if b.dev.state != d {
		return nil, fmt.Errorf("host buffer of %d elements: %w", b.n, compute.ErrForeignTensor)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.block == nil {
		return nil, device.Closed(fmt.Sprintf("host buffer of %d elements", b.n))
	}
	return b.block.retain(), nil
}

// Close frees the memory; copies in flight finish before it is reused. It is idempotent.
func (b *HostBuffer[T]) Close() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.block != nil {
		b.block.release()
		b.block = nil
	}
	return nil
}
