package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"github.com/wavelane/wavelane/compute"
)

// Kind is what a metadata value is, with GGUF's number for it.
type Kind uint32

// The kinds of values, and the Go types that stand for them.
const (
	Uint8Kind   Kind = 0  // uint8
	Int8Kind    Kind = 1  // int8
	Uint16Kind  Kind = 2  // uint16
	Int16Kind   Kind = 3  // int16
	Uint32Kind  Kind = 4  // uint32
	Int32Kind   Kind = 5  // int32
	Float32Kind Kind = 6  // float32
	BoolKind    Kind = 7  // bool
	StringKind  Kind = 8  // string
	ArrayKind   Kind = 9  // *Array
	Uint64Kind  Kind = 10 // uint64
	Int64Kind   Kind = 11 // int64
	Float64Kind Kind = 12 // float64
)

var kindNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array",
	"uint64", "int64", "float64"}

// kindSizes are bytes; strings and arrays have no size of their own, but a length of 8 bytes, and arrays a kind of 4 before it.
var kindSizes = [...]int64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

// String is the name of a kind.
func (k Kind) String() string {
	if k.valid() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

func (k Kind) valid() bool { return uint64(k) < uint64(len(kindNames)) }

// least is the smallest number of bytes that a value can take.
func (k Kind) least() int64 {
	switch k {
	case StringKind:
		return 8
	case ArrayKind:
		return 12
	}
	return kindSizes[k]
}

const (
	maxDepth  = 4       // arrays of arrays
	maxString = 1 << 28 // bytes of a string that is no element of an array
	maxName   = 1<<16 - 1
)

// Array is an array in the metadata of a file. It is read on demand.
type Array struct {
	Elem Kind
	Len  int

	source   io.ReaderAt
	at, size int64 // of the elements
}

// Values returns the elements as a slice of the Go type of the kind: []string, []float32, …; arrays of arrays are []any of such
// slices.
func (a *Array) Values() (any, error) { return a.Head(a.Len) }

// Head returns the first n elements, or all if there are fewer, as Values does.
func (a *Array) Head(n int) (any, error) {
	d := newDecoder(a.source, a.at, a.at+a.size)
	v, err := d.elements(a.Elem, max(0, min(n, a.Len)))
	if err != nil {
		return nil, fmt.Errorf("gguf: array: %w", err)
	}
	return v, nil
}

// appendValue appends the kind and the value that v stands for. It takes the Go types of all kinds, and slices of those other
// than Array; a nested array is []any.
func appendValue(b []byte, v any) ([]byte, error) {
	k, err := kindOf(v)
	if err != nil {
		return b, err
	}
	return appendPlain(binary.LittleEndian.AppendUint32(b, uint32(k)), k, v)
}

// kinds are those of Go values. A slice of any is an array of arrays.
var kinds = map[reflect.Kind]Kind{
	reflect.Uint8: Uint8Kind, reflect.Uint16: Uint16Kind, reflect.Uint32: Uint32Kind, reflect.Uint64: Uint64Kind,
	reflect.Int8: Int8Kind, reflect.Int16: Int16Kind, reflect.Int32: Int32Kind, reflect.Int64: Int64Kind,
	reflect.Float32: Float32Kind, reflect.Float64: Float64Kind, reflect.Bool: BoolKind, reflect.String: StringKind,
	reflect.Interface: ArrayKind,
}

func kindOf(v any) (Kind, error) {
	if _, ok := v.(*Array); ok {
		return ArrayKind, nil
	}
	if t := reflect.TypeOf(v); t != nil {
		k, ok := kinds[t.Kind()]
		if t.Kind() == reflect.Slice {
			_, ok = kinds[t.Elem().Kind()]
			k = ArrayKind
		}
		if ok {
			return k, nil
		}
	}
	return 0, fmt.Errorf("gguf: metadata cannot hold a %T: %w", v, compute.ErrDType)
}

// appendPlain appends a value without its kind.
func appendPlain(b []byte, k Kind, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return appendString(b, v), nil
	case *Array:
		values, err := v.Values()
		if err != nil {
			return b, err
		}
		return appendArray(b, v.Elem, v.Len, values)
	}
	if k == ArrayKind {
		slice := reflect.ValueOf(v)
		return appendArray(b, kinds[slice.Type().Elem().Kind()], slice.Len(), v)
	}
	return binary.Append(b, binary.LittleEndian, v)
}

func appendArray(b []byte, elem Kind, n int, v any) ([]byte, error) {
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, uint32(elem)), uint64(n))
	var err error
	switch v := v.(type) {
	case []string:
		for _, s := range v {
			b, _ = appendPlain(b, StringKind, s)
		}
	case []any:
		for _, inner := range v {
			if k, e := kindOf(inner); e != nil || k != ArrayKind {
				return b, fmt.Errorf("gguf: an array of arrays has a %T: %w", inner, compute.ErrDType)
			}
			if b, err = appendPlain(b, ArrayKind, inner); err != nil {
				return b, err
			}
		}
	default:
		b, err = binary.Append(b, binary.LittleEndian, v)
	}
	return b, err
}
