//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// tensor is what an encoding of a tensor map passes to C besides numbers.
type tensor struct {
	encoded [tensormap.Size + tensormap.Align]byte // with room to align it
	of      tensormap.Map
}

// TensorMapEncode: the numbers of package tensormap's enumerations are the driver's.
func (d *library) TensorMapEncode(to []byte, m *tensormap.Map) driver.Result {
	f := take()
	t := &f.tensor
	t.of = *m
	for i := range t.of.ElementStrides {
		t.of.ElementStrides[i] = uint32(m.Step(i))
	}
	first := int(-uintptr(unsafe.Pointer(&t.encoded)) % tensormap.Align)
	at, of := uintptr(unsafe.Pointer(&t.encoded[first])), &t.of
	dims, strides, steps := uintptr(unsafe.Pointer(&of.Dims)), uintptr(unsafe.Pointer(&of.Strides)), uintptr(unsafe.Pointer(&of.ElementStrides))
	var r driver.Result
	if m.Pixels > 0 {
		r = f.call(d.cuTensorMapEncodeIm2col, at, uintptr(m.Type), uintptr(m.Rank), uintptr(m.Address), dims, strides,
			uintptr(unsafe.Pointer(&of.Lower)), uintptr(unsafe.Pointer(&of.Upper)), uintptr(m.Channels), uintptr(m.Pixels), steps,
			uintptr(m.Interleave), uintptr(m.Swizzle), uintptr(m.Promotion), uintptr(m.Fill))
	} else {
		r = f.call(d.cuTensorMapEncodeTiled, at, uintptr(m.Type), uintptr(m.Rank), uintptr(m.Address), dims, strides,
			uintptr(unsafe.Pointer(&of.Box)), steps, uintptr(m.Interleave), uintptr(m.Swizzle), uintptr(m.Promotion), uintptr(m.Fill))
	}
	if r == driver.Success {
		copy(to, t.encoded[first:first+tensormap.Size])
	}
	f.give()
	return r
}
