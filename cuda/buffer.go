package cuda

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/ptx/args"
)

// Element is an element type of buffers. 16-bit floats are stored as their bits, uint16.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Buffer is memory of a device for elements of one type, for kernels, copies and fills on any of its streams. It is safe for
// concurrent use; the order of what the GPU does with its contents is up to streams.
type Buffer[T Element] struct {
	dev   *Device
	at    driver.Ptr
	n     int
	block device.Handle[*block]
}

// Alloc returns a buffer of n elements, whose contents are not defined. It may be empty. Errors wrap compute.ErrOutOfMemory if
// there is no memory, and then say what there is.
func Alloc[T Element](d *Device, n int) (*Buffer[T], error) {
	b, err := alloc[T](d, n)
	if err != nil {
		return nil, fmt.Errorf("buffer of %d elements of %T: %w", n, *new(T), err)
	}
	return b, nil
}

func alloc[T Element](d *Device, n int) (b *Buffer[T], err error) {
	err = reserve[T](d, n, func(bytes uint64) error {
		m, err := d.pool.getAny(bytes)
		if err == nil {
			b = newBuffer[T](d, m, m.ptr, n)
		}
		return err
	})
	return b, err
}

// reserve calls get, with the size of n elements, in the device's context.
func reserve[T Element](d *Device, n int, get func(bytes uint64) error) error {
	bytes, err := sizeOf[T](d, n)
	if err != nil {
		return err
	}
	if err := d.life.Begin(); err != nil {
		return err
	}
	defer d.life.End()
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	return get(bytes)
}

// newBuffer takes over one use of the block.
func newBuffer[T Element](d *Device, m *block, at driver.Ptr, n int) *Buffer[T] {
	b := &Buffer[T]{dev: d, at: at, n: n}
	b.block.Open(m, (*block).release)
	return b
}

// sizeOf is n elements in bytes.
func sizeOf[T Element](d *Device, n int) (uint64, error) {
	if d == nil || d.state == nil {
		return 0, fmt.Errorf("nil device: %w", compute.ErrArgument)
	}
	if n < 0 {
		return 0, fmt.Errorf("negative length: %w", compute.ErrArgument)
	}
	high, low := bits.Mul64(uint64(n), uint64(unsafe.Sizeof(*new(T))))
	if high != 0 {
		return 0, fmt.Errorf("more bytes than addresses: %w", compute.ErrTooLarge)
	}
	return low, nil
}

// Len is the number of elements.
func (b *Buffer[T]) Len() int { return b.n }

// Bytes is the size.
func (b *Buffer[T]) Bytes() uint64 { return uint64(b.n) * uint64(unsafe.Sizeof(*new(T))) }

// Arg is the address of the buffer, for launches. Launches with a closed buffer fail with compute.ErrClosed. The argument
// does not keep the buffer alive: it has to stay reachable and open until the work that uses it has been submitted. Element
// type and device are not checked at a launch.
func (b *Buffer[T]) Arg() args.Arg {
	if b == nil {
		return args.Arg{}
	}
	if !b.block.IsOpen() {
		return args.Closed()
	}
	return args.Ptr(uint64(b.at))
}

// Slice returns elements from to to−1 as a buffer that shares the memory and is closed on its own: the memory goes back when
// the buffer and all its slices are closed.
func (b *Buffer[T]) Slice(from, to int) (*Buffer[T], error) {
	if b != nil && (from < 0 || to < from || to > b.n) {
		return nil, fmt.Errorf("slice from %d to %d of a buffer of %d elements: %w", from, to, b.n, compute.ErrArgument)
	}
	m, err := b.acquire(nil)
	if err != nil {
		return nil, err
	}
	return newBuffer[T](b.dev, m, b.at+driver.Ptr(uint64(from)*uint64(unsafe.Sizeof(*new(T)))), to-from), nil
}

// acquire returns the memory with one more user. The buffer has to be one of d, if that is not nil.
func (b *Buffer[T]) acquire(d *state) (*block, error) {
	if b == nil {
		return nil, fmt.Errorf("nil buffer: %w", compute.ErrArgument)
	}
	if d != nil && b.dev.state != d {
		return nil, fmt.Errorf("buffer of %d elements: %w", b.n, compute.ErrForeignTensor)
	}
	m, ok := b.block.Acquire((*block).retain)
	if !ok {
		return nil, device.Closed(fmt.Sprintf("buffer of %d elements", b.n))
	}
	return m, nil
}

// Close frees the memory for reuse after all work submitted to the device so far. It is idempotent.
func (b *Buffer[T]) Close() error {
	if b != nil {
		b.block.Close()
	}
	return nil
}
