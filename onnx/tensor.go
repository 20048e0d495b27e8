package onnx

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// ElementType is an element type of ONNX, by its number there.
type ElementType int32

// Element types. Those of less than a byte have a byte for each element in Go.
const (
	Undefined  = ElementType(host.None)
	Float32    = ElementType(host.Float)
	Uint8      = ElementType(host.Uint8)
	Int8       = ElementType(host.Int8)
	Uint16     = ElementType(host.Uint16)
	Int16      = ElementType(host.Int16)
	Int32      = ElementType(host.Int32)
	Int64      = ElementType(host.Int64)
	String     = ElementType(host.String)
	Bool       = ElementType(host.Bool)
	Float16    = ElementType(host.Float16)
	Float64    = ElementType(host.Double)
	Uint32     = ElementType(host.Uint32)
	Uint64     = ElementType(host.Uint64)
	BFloat16   = ElementType(host.BFloat16)
	F8E4M3FN   = ElementType(host.F8E4M3FN)
	F8E4M3FNUZ = ElementType(host.F8E4M3FNUZ)
	F8E5M2     = ElementType(host.F8E5M2)
	F8E5M2FNUZ = ElementType(host.F8E5M2FNUZ)
	Uint4      = ElementType(host.Uint4)
	Int4       = ElementType(host.Int4)
	F4E2M1     = ElementType(host.F4E2M1)
	F8E8M0     = ElementType(host.F8E8M0)
	Uint2      = ElementType(host.Uint2)
	Int2       = ElementType(host.Int2)
)

func (t ElementType) String() string { return host.Kind(t).String() }

// Tensor is elements in row-major order in host memory.
type Tensor struct {
	Type  ElementType
	Shape []int
	// Data is a slice of the element type: []float32, []float64, []compute.F16, []compute.BF16, []int8 to []int64, []uint8 to []uint64,
	// []bool or []string. Floats of 8 bits and less are their codes, []uint8; integers of 4 and 2 bits []int8 or []uint8.
	Data any
}

// Element is a type of elements that have one in Go.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool | string | compute.F16 | compute.BF16
}

// Of gives a slice a shape; without one it is a vector.
func Of[E Element](data []E, shape ...int) Tensor {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	return Tensor{typeOf[E](), shape, data}
}

// Scalar is a tensor without axes.
func Scalar[E Element](x E) Tensor { return Tensor{typeOf[E](), []int{}, []E{x}} }

func typeOf[E Element]() ElementType {
	var zero E
	switch any(zero).(type) {
	case float64:
		return Float64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case bool:
		return Bool
	case string:
		return String
	case compute.F16:
		return Float16
	case compute.BF16:
		return BFloat16
	}
	return Float32
}

// Elements returns the data of a tensor, or compute.ErrDType if its elements are others.
func Elements[E Element](t Tensor) ([]E, error) {
	if data, ok := t.Data.([]E); ok {
		return data, nil
	}
	return nil, fmt.Errorf("elements are %v, not %T: %w", t.Type, *new(E), compute.ErrDType)
}

// Len returns the number of elements that the shape has.
func (t Tensor) Len() int { return host.Len(t.Shape) }

func (t Tensor) internal() (*host.Tensor, error) {
	x := &host.Tensor{Kind: host.Kind(t.Type), Shape: slices.Clone(t.Shape), Data: t.Data}
	if x.Shape == nil {
		x.Shape = []int{}
	}
	return x, x.Check()
}

// external copies, so that what the caller changes is its own.
func external(t *host.Tensor) Tensor {
	c := t.Clone()
	return Tensor{ElementType(c.Kind), c.Shape, c.Data}
}
