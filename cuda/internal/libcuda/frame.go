//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// maxArguments is that of cuTensorMapEncodeIm2col, launchArguments that of cuLaunchKernel.
const (
	maxArguments    = 15
	launchArguments = 11
)

// frame is all the memory that a call needs. It comes from a pool and so lies on the heap: addresses in it, which go to C as
// plain numbers, stay right while Go's stacks move.
type frame struct {
	args [maxArguments]uintptr
	// out is what C writes: one value per element, or text.
	out [maxText / 8]uint64
	// keep is Go memory that C reads.
	keep unsafe.Pointer
	launch
	tensor tensor
}

// maxText is the size of a buffer for text, with its NUL.
const maxText = 256

var frames = sync.Pool{New: func() any {
	f := &frame{}
	f.config.attrs = &f.attrs[0]
	return f
}}

func take() *frame { return frames.Get().(*frame) }

// give returns a frame. It has to be the last use, which also keeps the frame alive through the call.
func (f *frame) give() {
	f.keep = nil
	frames.Put(f)
}

// call calls a function that needs nothing but its arguments.
func call(fn uintptr, args ...uintptr) driver.Result {
	f := take()
	r := f.call(fn, args...)
	f.give()
	return r
}

// create calls a function whose first argument is where to write a handle or an address.
func create(fn uintptr, args ...uintptr) (uintptr, driver.Result) {
	f := take()
	f.args[0] = f.at(0)
	n := copy(f.args[1:], args)
	r := f.invoke(fn, 1+n)
	h := f.handle(0)
	f.give()
	return h, r
}

func (f *frame) call(fn uintptr, args ...uintptr) driver.Result {
	return f.invoke(fn, copy(f.args[:], args))
}

// invoke calls a function, if the library has it, with the first n of f.args.
func (f *frame) invoke(fn uintptr, n int) driver.Result {
	if fn == 0 {
		return driver.NotSupported
	}
	r, _, _ := purego.SyscallN(fn, f.args[:n]...)
	return driver.Result(int32(r)) // the upper half of the register is anything
}

// at is the address of the i-th value that C writes.
func (f *frame) at(i int) uintptr {
	f.out[i] = 0
	return f.address(i)
}

// int, float32, … read the i-th value, of the type that C wrote.
func (f *frame) int(i int) int                { return int(*(*int32)(unsafe.Pointer(&f.out[i]))) }
func (f *frame) float32(i int) float32        { return *(*float32)(unsafe.Pointer(&f.out[i])) }
func (f *frame) handle(i int) uintptr         { return *(*uintptr)(unsafe.Pointer(&f.out[i])) }
func (f *frame) pointer(i int) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&f.out[i])) }

func (f *frame) address(i int) uintptr { return uintptr(unsafe.Pointer(&f.out[i])) }

// text is the address of a buffer of maxText bytes.
func (f *frame) text() uintptr {
	clear(f.out[:])
	return f.address(0)
}

// string is what C wrote to text.
func (f *frame) string() string {
	return cut(unsafe.Slice((*byte)(unsafe.Pointer(&f.out)), maxText))
}

// held is the address of memory that C reads during the call, one per call.
func (f *frame) held(p unsafe.Pointer) uintptr {
	f.keep = p
	return uintptr(p)
}

// cut is a string of C: the bytes before the first NUL.
func cut(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
