package cuda

import (
	"fmt"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// CopyToDevice records a copy from pinned memory, which must not be written before the work is done. Lengths have to be equal.
// Either may be closed once this has returned.
func CopyToDevice[T Element](r Recorder, dst *Buffer[T], src *HostBuffer[T]) error {
	w := workOf(r)
	if err := w.use("copy to the device", dst, src); err != nil || dst.n == 0 {
		return err
	}
	return w.copyToDevice(dst.at, src.at, dst.Bytes())
}

// CopyToHost records a copy to pinned memory, which must not be read before the work is done. Lengths have to be equal. Either
// may be closed once this has returned.
func CopyToHost[T Element](r Recorder, dst *HostBuffer[T], src *Buffer[T]) error {
	w := workOf(r)
	if err := w.use("copy to the host", dst, src); err != nil || dst.n == 0 {
		return err
	}
	return w.copyToHost(dst.at, src.at, src.Bytes())
}

// CopyOnDevice records a copy between buffers of one device. Lengths have to be equal, and the two must not overlap. Either may
// be closed once this has returned.
func CopyOnDevice[T Element](r Recorder, dst, src *Buffer[T]) error {
	w := workOf(r)
	if err := w.use("copy on the device", dst, src); err != nil || dst.n == 0 {
		return err
	}
	if overlap(dst, src) {
		return w.refused("copy on the device", errOverlap)
	}
	return w.copyOnDevice(dst.at, src.at, dst.Bytes())
}

var errOverlap = fmt.Errorf("the buffers overlap: %w", compute.ErrArgument)

// overlap reports whether two buffers, of equal length and of one address space, have bytes in common.
func overlap[T Element](a, b *Buffer[T]) bool {
	n := driver.Ptr(a.Bytes())
	return a.at < b.at+n && b.at < a.at+n
}

// Fill records a fill of all elements with value. The buffer may be closed once this has returned.
func Fill[T Element](r Recorder, dst *Buffer[T], value T) error {
	w := workOf(r)
	if err := w.use("fill", dst, dst); err != nil || dst.n == 0 {
		return err
	}
	return w.fill(dst.at, unsafe.Slice((*byte)(unsafe.Pointer(&value)), unsafe.Sizeof(value)), dst.Bytes())
}

// workOf is what a recorder has; nil for a nil one.
func workOf(r Recorder) *work {
	if r == nil {
		return nil
	}
	return r.recorder()
}

// memoryOf is a buffer whose memory work can keep.
type memoryOf interface {
	Len() int
	keptBy(w *work) error
}

func (b *Buffer[T]) keptBy(w *work) error {
	m, err := b.acquire(w.s.d)
	if err == nil {
		w.keep(m)
	}
	return err
}

func (b *HostBuffer[T]) keptBy(w *work) error {
	m, err := b.acquire(w.s.d)
	if err == nil {
		w.keep(m)
	}
	return err
}

// use keeps both buffers, of equal length, until the work is done.
func (w *work) use(what string, dst, src memoryOf) error {
	if w == nil {
		return fmt.Errorf("%s: nil recording: %w", what, compute.ErrArgument)
	}
	err := w.ready()
	if err == nil {
		err = dst.keptBy(w)
	}
	if err == nil {
		err = src.keptBy(w)
	}
	if err == nil && dst.Len() != src.Len() {
		err = lengths(dst.Len(), src.Len())
	}
	if err != nil {
		return w.refused(what, err)
	}
	return nil
}

// ready says why nothing can be recorded any more.
func (w *work) ready() error {
	if !w.open {
		return w.over()
	}
	return w.err
}

// fill repeats an element.
func (w *work) fill(dst driver.Ptr, element []byte, bytes uint64) error {
	if same(element, 1) {
		return w.fill8(dst, element[0], bytes)
	}
	if len(element)%4 == 0 && same(element, 4) {
		return w.fill32(dst, *(*uint32)(unsafe.Pointer(&element[0])), bytes/4)
	}
	// The driver has no such fill: set the first element byte by byte, then double the filled part by copies.
	for i, b := range element {
		if err := w.fill8(dst+driver.Ptr(i), b, 1); err != nil {
			return err
		}
	}
	for done := uint64(len(element)); done < bytes; done *= 2 {
		if err := w.copyOnDevice(dst+driver.Ptr(done), dst, min(done, bytes-done)); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether b repeats its first n bytes.
func same(b []byte, n int) bool { return string(b[n:]) == string(b[:len(b)-n]) }

func lengths(dst, src int) error {
	return fmt.Errorf("%d elements to %d: %w", src, dst, compute.ErrShape)
}

// refused notes an error that no call of the driver returned.
func (w *work) refused(what string, err error) error { return w.note(fmt.Errorf("%s: %w", what, err)) }
