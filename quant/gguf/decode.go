package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

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
