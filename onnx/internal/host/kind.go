// Package host has tensors of all of ONNX's element types in host memory, and its operators on them.
//
// It computes what is known when a model is compiled, such as the arithmetic of shapes, and at run time what devices have no element
// type for: integers, doubles and texts. It is written for exactness, not for speed.
package host

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// Kind is an element type, by ONNX's number.
type Kind int32

// Element types.
const (
	None       Kind = 0
	Float      Kind = 1
	Uint8      Kind = 2
	Int8       Kind = 3
	Uint16     Kind = 4
	Int16      Kind = 5
	Int32      Kind = 6
	Int64      Kind = 7
	String     Kind = 8
	Bool       Kind = 9
	Float16    Kind = 10
	Double     Kind = 11
	Uint32     Kind = 12
	Uint64     Kind = 13
	Complex64  Kind = 14
	Complex128 Kind = 15
	BFloat16   Kind = 16
	F8E4M3FN   Kind = 17
	F8E4M3FNUZ Kind = 18
	F8E5M2     Kind = 19
	F8E5M2FNUZ Kind = 20
	Uint4      Kind = 21
	Int4       Kind = 22
	F4E2M1     Kind = 23
	F8E8M0     Kind = 24
	Uint2      Kind = 25
	Int2       Kind = 26
)

// kinds has the names of ONNX and what the elements are in Go; sizes in bits are those of files.
var kinds = [...]struct {
	name string
	bits int
	make func(n int) any
}{
	None:       {name: "undefined"},
	Float:      {"float32", 32, slice[float32]},
	Uint8:      {"uint8", 8, slice[uint8]},
	Int8:       {"int8", 8, slice[int8]},
	Uint16:     {"uint16", 16, slice[uint16]},
	Int16:      {"int16", 16, slice[int16]},
	Int32:      {"int32", 32, slice[int32]},
	Int64:      {"int64", 64, slice[int64]},
	String:     {"string", 0, slice[string]},
	Bool:       {"bool", 8, slice[bool]},
	Float16:    {"float16", 16, slice[compute.F16]},
	Double:     {"float64", 64, slice[float64]},
	Uint32:     {"uint32", 32, slice[uint32]},
	Uint64:     {"uint64", 64, slice[uint64]},
	Complex64:  {name: "complex64"},
	Complex128: {name: "complex128"},
	BFloat16:   {"bfloat16", 16, slice[compute.BF16]},
	F8E4M3FN:   {"float8e4m3fn", 8, slice[uint8]},
	F8E4M3FNUZ: {"float8e4m3fnuz", 8, slice[uint8]},
	F8E5M2:     {"float8e5m2", 8, slice[uint8]},
	F8E5M2FNUZ: {"float8e5m2fnuz", 8, slice[uint8]},
	Uint4:      {"uint4", 4, slice[uint8]},
	Int4:       {"int4", 4, slice[int8]},
	F4E2M1:     {"float4e2m1", 4, slice[uint8]},
	F8E8M0:     {"float8e8m0", 8, slice[uint8]},
	Uint2:      {"uint2", 2, slice[uint8]},
	Int2:       {"int2", 2, slice[int8]},
}

func slice[E any](n int) any { return make([]E, n) }

// Known reports whether tensors may have the element type.
func (k Kind) Known() bool { return k >= 0 && int(k) < len(kinds) && kinds[k].make != nil }

func (k Kind) String() string {
	if k >= 0 && int(k) < len(kinds) {
		return kinds[k].name
	}
	return fmt.Sprintf("element type %d", int32(k))
}

// Bits is the size of an element in files.
func (k Kind) Bits() int { return kinds[k].bits }

// IsFloat reports whether elements have a fraction.
func (k Kind) IsFloat() bool {
	switch k {
	case Float, Float16, BFloat16, Double, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1, F8E8M0:
		return true
	}
	return false
}

// IsInteger reports whether elements are integers, without bool.
func (k Kind) IsInteger() bool {
	switch k {
	case Uint8, Int8, Uint16, Int16, Int32, Int64, Uint32, Uint64, Uint4, Int4, Uint2, Int2:
		return true
	}
	return false
}

// Unsigned reports whether elements are integers of 0 and more.
func (k Kind) Unsigned() bool {
	switch k {
	case Uint8, Uint16, Uint32, Uint64, Uint4, Uint2:
		return true
	}
	return false
}

// Range returns the least and the largest integer.
func (k Kind) Range() (low, high int64) {
	bits := k.Bits()
	if k == Uint64 {
		return 0, 1<<63 - 1
	}
	if k.Unsigned() {
		return 0, 1<<bits - 1
	}
	return -1 << (bits - 1), 1<<(bits-1) - 1
}
