package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
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

var kindNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64",
	"int64", "float64"}

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

// Array is an array in the metadata of a file. It is read when its values are asked for.
type Array struct {
	Elem Kind
	Len  int

	source   io.ReaderAt
	at, size int64 // of the elements
}

// Values returns the elements as a slice of the Go type of the kind: []string, []float32, …; arrays of arrays are []any of such
// slices.
func (a *Array) Values() (any, error) {
	d := newDecoder(a.source, a.at, a.at+a.size)
	v, err := d.elements(a.Elem, a.Len)
	if err != nil {
		return nil, fmt.Errorf("gguf: array: %w", err)
	}
	return v, nil
}

// decoder reads a range of a file in order.
type decoder struct {
	source  io.ReaderAt
	at, end int64 // what has been read, and where to stop
	buffer  *bufio.Reader
}

func newDecoder(source io.ReaderAt, at, end int64) *decoder {
	d := &decoder{source: source, end: end, buffer: bufio.NewReaderSize(nil, 1<<14)}
	d.seek(at)
	return d
}

func (d *decoder) seek(at int64) {
	d.at = at
	d.buffer.Reset(io.NewSectionReader(d.source, at, d.end-at))
}

func (d *decoder) left() int64 { return d.end - d.at }

func (d *decoder) read(p []byte) error {
	if int64(len(p)) > d.left() {
		return fmt.Errorf("%w: it ends at byte %d", ErrMalformed, d.end)
	}
	n, err := io.ReadFull(d.buffer, p)
	return d.advance(n, err)
}

// advance tells the end of a source that is shorter than it was said to be from other errors.
func (d *decoder) advance(n int, err error) error {
	d.at += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends at byte %d", ErrMalformed, d.at)
	}
	return err
}

func (d *decoder) skip(n int64) error {
	if n > d.left() {
		return fmt.Errorf("%w: it ends at byte %d, and the next %d bytes are missing", ErrMalformed, d.end, n-d.left())
	}
	if n > 1<<12 {
		d.seek(d.at + n)
		return nil
	}
	return d.advance(d.buffer.Discard(int(n)))
}

func (d *decoder) uint32() (uint32, error) {
	var b [4]byte
	err := d.read(b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

func (d *decoder) uint64() (uint64, error) {
	var b [8]byte
	err := d.read(b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

// string reads a string of at most limit bytes.
func (d *decoder) string(limit int64) (string, error) {
	n, err := d.length(limit)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	err = d.read(b)
	return string(b), err
}

func (d *decoder) length(limit int64) (int64, error) {
	n, err := d.uint64()
	if err == nil && n > uint64(min(limit, d.left())) {
		err = fmt.Errorf("%w: a string of %d bytes, where at most %d can be", ErrMalformed, n, min(limit, d.left()))
	}
	return int64(n), err
}

// kind reads the kind of a value.
func (d *decoder) kind() (Kind, error) {
	n, err := d.uint32()
	if k := Kind(n); err != nil || k.valid() {
		return k, err
	}
	return 0, fmt.Errorf("%w: a value of kind %d", ErrMalformed, n)
}

// value reads a value; an array is only walked over.
func (d *decoder) value(k Kind) (any, error) {
	switch k {
	case StringKind:
		return d.string(maxString)
	case ArrayKind:
		return d.array(1)
	}
	return d.scalar(k)
}

func (d *decoder) scalar(k Kind) (any, error) {
	var b [8]byte
	if err := d.read(b[:kindSizes[k]]); err != nil {
		return nil, err
	}
	u := binary.LittleEndian.Uint64(b[:])
	switch k {
	case Uint8Kind:
		return uint8(u), nil
	case Int8Kind:
		return int8(u), nil
	case Uint16Kind:
		return uint16(u), nil
	case Int16Kind:
		return int16(u), nil
	case Uint32Kind:
		return uint32(u), nil
	case Int32Kind:
		return int32(u), nil
	case Float32Kind:
		return math.Float32frombits(uint32(u)), nil
	case BoolKind:
		return u != 0, nil
	case Uint64Kind:
		return u, nil
	case Int64Kind:
		return int64(u), nil
	default:
		return math.Float64frombits(u), nil
	}
}

// array walks over an array that is depth arrays deep.
func (d *decoder) array(depth int) (*Array, error) {
	k, err := d.kind()
	if err != nil {
		return nil, err
	}
	n, err := d.uint64()
	switch {
	case err != nil:
		return nil, err
	case k == ArrayKind && depth == maxDepth:
		return nil, fmt.Errorf("%w: arrays nested deeper than %d", ErrMalformed, maxDepth)
	case n > uint64(d.left()/k.least()) || n > math.MaxInt:
		return nil, fmt.Errorf("%w: an array of %d × %v, where %d bytes are left", ErrMalformed, n, k, d.left())
	}
	a := &Array{Elem: k, Len: int(n), source: d.source, at: d.at}
	switch k {
	case StringKind:
		for range a.Len {
			length, err := d.length(math.MaxInt64)
			if err == nil {
				err = d.skip(length)
			}
			if err != nil {
				return nil, err
			}
		}
	case ArrayKind:
		for range a.Len {
			if _, err := d.array(depth + 1); err != nil {
				return nil, err
			}
		}
	default:
		if err := d.skip(int64(n) * kindSizes[k]); err != nil {
			return nil, err
		}
	}
	a.size = d.at - a.at
	return a, nil
}

// elements reads n values of a kind, which an array was walked over for.
func (d *decoder) elements(k Kind, n int) (any, error) {
	switch k {
	case Uint8Kind:
		return fixed[uint8](d, n)
	case Int8Kind:
		return fixed[int8](d, n)
	case Uint16Kind:
		return fixed[uint16](d, n)
	case Int16Kind:
		return fixed[int16](d, n)
	case Uint32Kind:
		return fixed[uint32](d, n)
	case Int32Kind:
		return fixed[int32](d, n)
	case Float32Kind:
		return fixed[float32](d, n)
	case BoolKind:
		return fixed[bool](d, n)
	case Uint64Kind:
		return fixed[uint64](d, n)
	case Int64Kind:
		return fixed[int64](d, n)
	case Float64Kind:
		return fixed[float64](d, n)
	case StringKind:
		v := make([]string, n)
		for i := range v {
			var err error
			if v[i], err = d.string(math.MaxInt64); err != nil {
				return nil, err
			}
		}
		return v, nil
	}
	v := make([]any, n)
	for i := range v {
		a, err := d.array(1)
		if err != nil {
			return nil, err
		}
		at := d.at
		d.seek(a.at)
		if v[i], err = d.elements(a.Elem, a.Len); err != nil {
			return nil, err
		}
		d.seek(at)
	}
	return v, nil
}

func fixed[T any](d *decoder, n int) ([]T, error) {
	v := make([]T, n)
	b := make([]byte, binary.Size(v))
	if err := d.read(b); err != nil {
		return nil, err
	}
	_, err := binary.Decode(b, binary.LittleEndian, v)
	return v, err
}

// appendValue appends the kind and the value that v stands for. It takes the Go types of all kinds, and slices of those other than
// Array; a nested array is []any.
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
