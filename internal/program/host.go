package program

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
)

// TypeOf returns the element type and length of a slice that may be uploaded: []float32, []int32, []uint32, []uint8, []compute.F16
// or []compute.BF16.
func TypeOf(data any) (compute.DType, int, error) {
	switch s := data.(type) {
	case []float32:
		return compute.Float32, len(s), nil
	case []int32:
		return compute.Int32, len(s), nil
	case []uint32:
		return compute.Uint32, len(s), nil
	case []uint8:
		return compute.Uint8, len(s), nil
	case []compute.F16:
		return compute.Float16, len(s), nil
	case []compute.BF16:
		return compute.BFloat16, len(s), nil
	case nil:
		return 0, 0, fmt.Errorf("nil is no data: %w", compute.ErrArgument)
	}
	return 0, 0, fmt.Errorf("%T is no slice of a known element type: %w", data, compute.ErrDType)
}

// CheckSlice reports whether data holds exactly the elements of t.
func CheckSlice(data any, t Type) error {
	d, n, err := TypeOf(data)
	switch {
	case err != nil:
		return err
	case d != t.DType:
		return fmt.Errorf("slice of %v for a value of %v: %w", d, t.DType, compute.ErrDType)
	case n != t.Len():
		return fmt.Errorf("slice of %d elements for shape %v, which has %d: %w", n, t.Shape, t.Len(), compute.ErrShape)
	}
	return nil
}

// Bytes returns the memory of a slice accepted by [TypeOf], without copying; nil for an empty one.
func Bytes(data any) []byte {
	switch s := data.(type) {
	case []float32:
		return bytesOf(s)
	case []int32:
		return bytesOf(s)
	case []uint32:
		return bytesOf(s)
	case []uint8:
		return s
	case []compute.F16:
		return bytesOf(s)
	case []compute.BF16:
		return bytesOf(s)
	}
	return nil
}

func bytesOf[E any](s []E) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// MakeSlice returns a new slice for the elements of t.
func MakeSlice(t Type) any {
	switch t.DType {
	case compute.Int32:
		return make([]int32, t.Len())
	case compute.Uint32:
		return make([]uint32, t.Len())
	case compute.Uint8:
		return make([]uint8, t.Len())
	case compute.Float16:
		return make([]compute.F16, t.Len())
	case compute.BFloat16:
		return make([]compute.BF16, t.Len())
	}
	return make([]float32, t.Len())
}

// EqualShape reports whether two shapes are the same.
func EqualShape(a, b []int) bool { return slices.Equal(a, b) }
