package cuda

import (
	"fmt"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// Variable is a variable of a module, in the .global or .const space, as a buffer, to be read and written between launches. It is
// not checked that the text declares elements of this type, only that they fill the variable. The buffer and its slices keep
// the module loaded until they are closed.
func Variable[T Element](m *Module, name string) (*Buffer[T], error) {
	b, err := variable[T](m, name)
	if err != nil {
		return nil, fmt.Errorf("variable of %T: %w", *new(T), err)
	}
	return b, nil
}

func variable[T Element](m *Module, name string) (*Buffer[T], error) {
	if m == nil {
		return nil, fmt.Errorf("nil module: %w", compute.ErrArgument)
	}
	at, size, err := m.Global(name)
	if err != nil {
		return nil, err
	}
	element := int(unsafe.Sizeof(*new(T)))
	if size%element != 0 {
		return nil, fmt.Errorf("%s has %d bytes, elements have %d: %w", name, size, element, compute.ErrShape)
	}
	if err := m.retain(); err != nil {
		return nil, err
	}
	b := &block{ptr: driver.Ptr(at), bytes: uint64(size), module: m}
	b.users.Store(1)
	return newBuffer[T](&Device{state: m.d}, b, b.ptr, size/element), nil
}
