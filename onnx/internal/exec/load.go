package exec

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Files reads bytes of files beside a model.
type Files func(location string, offset, length int64) ([]byte, error)

// Load makes a tensor of one in a file. Elements of 4 bytes are not copied where the file has them as the machine does.
func Load(t *format.Tensor, files Files) (*host.Tensor, error) {
	out, err := load(t, files)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return out, nil
}

func load(t *format.Tensor, files Files) (*host.Tensor, error) {
	k := host.Kind(t.Type)
	if !k.Known() {
		return nil, fmt.Errorf("elements of type %v: %w", k, compute.ErrUnsupported)
	}
	shape := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		if d < 0 || d > host.Most {
			return nil, fmt.Errorf("dimension %d: %w: %w", d, compute.ErrShape, format.ErrFormat)
		}
		shape[i] = int(d)
	}
	if err := host.CheckShape(shape); err != nil {
		return nil, fmt.Errorf("%w: %w", format.ErrFormat, err)
	}
	n := host.Len(shape)
	if k == host.String {
		if len(t.Texts) != n {
			return nil, fmt.Errorf("%d texts for shape %v: %w", len(t.Texts), shape, format.ErrFormat)
		}
		out := host.New(k, shape...)
		for i, b := range t.Texts {
			out.Data.([]string)[i] = string(b)
		}
		return out, nil
	}
	raw, has := t.Raw, t.HasRaw
	if t.External != nil {
		if files == nil {
			return nil, fmt.Errorf("external data in %q of a model that was not opened as a file: %w", t.External.Location, compute.ErrArgument)
		}
		length := int64((n*k.Bits() + 7) / 8)
		if t.External.HasLength && t.External.Length != length {
			return nil, fmt.Errorf("%d bytes of external data for shape %v of %v: %w", t.External.Length, shape, k, format.ErrFormat)
		}
		var err error
		if raw, err = files(t.External.Location, t.External.Offset, length); err != nil {
			return nil, err
		}
		has = true
	}
	if has {
		return fromRaw(k, shape, raw)
	}
	return fromLists(t, k, shape)
}

func fromRaw(k host.Kind, shape []int, raw []byte) (*host.Tensor, error) {
	n := host.Len(shape)
	if want := (n*k.Bits() + 7) / 8; len(raw) != want {
		return nil, fmt.Errorf("%d bytes for shape %v of %v, which has %d: %w", len(raw), shape, k, want, format.ErrFormat)
	}
	if n > 0 && littleEndian && uintptr(unsafe.Pointer(&raw[0]))%uintptr(max(k.Bits()/8, 1)) == 0 {
		switch k {
		case host.Float:
			return &host.Tensor{Kind: k, Shape: shape, Data: unsafe.Slice((*float32)(unsafe.Pointer(&raw[0])), n)}, nil
		case host.Float16:
			return &host.Tensor{Kind: k, Shape: shape, Data: unsafe.Slice((*compute.F16)(unsafe.Pointer(&raw[0])), n)}, nil
		case host.Int64:
			return &host.Tensor{Kind: k, Shape: shape, Data: unsafe.Slice((*int64)(unsafe.Pointer(&raw[0])), n)}, nil
		}
	}
	t := host.New(k, shape...)
	le := binary.LittleEndian
	switch s := t.Data.(type) {
	case []float32:
		for i := range s {
			s[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
		}
	case []float64:
		for i := range s {
			s[i] = math.Float64frombits(le.Uint64(raw[8*i:]))
		}
	case []int64:
		for i := range s {
			s[i] = int64(le.Uint64(raw[8*i:]))
		}
	case []uint64:
		for i := range s {
			s[i] = le.Uint64(raw[8*i:])
		}
	case []int32:
		for i := range s {
			s[i] = int32(le.Uint32(raw[4*i:]))
		}
	case []uint32:
		for i := range s {
			s[i] = le.Uint32(raw[4*i:])
		}
	case []int16:
		for i := range s {
			s[i] = int16(le.Uint16(raw[2*i:]))
		}
	case []uint16:
		for i := range s {
			s[i] = le.Uint16(raw[2*i:])
		}
	case []compute.F16:
		for i := range s {
			s[i] = compute.F16(le.Uint16(raw[2*i:]))
		}
	case []compute.BF16:
		for i := range s {
			s[i] = compute.BF16(le.Uint16(raw[2*i:]))
		}
	case []bool:
		for i := range s {
			s[i] = raw[i] != 0
		}
	case []int8:
		for i := range s {
			s[i] = int8(part(raw, i, k.Bits()))
		}
		return host.FromInts(k, t.Ints(), shape...), nil // sign of shorter ones
	case []uint8:
		for i := range s {
			s[i] = part(raw, i, k.Bits())
		}
	}
	return t, nil
}

// part is element i of bits each, the first in the lowest bits.
func part(raw []byte, i, bits int) byte {
	per := 8 / bits
	return raw[i/per] >> (i % per * bits) & byte(1<<bits-1)
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

func fromLists(t *format.Tensor, k host.Kind, shape []int) (*host.Tensor, error) {
	n := host.Len(shape)
	count := func(have int) error {
		if have != n {
			return fmt.Errorf("%d elements for shape %v: %w", have, shape, format.ErrFormat)
		}
		return nil
	}
	switch k {
	case host.Float:
		return &host.Tensor{Kind: k, Shape: shape, Data: orEmpty(t.Floats)}, count(len(t.Floats))
	case host.Double:
		return &host.Tensor{Kind: k, Shape: shape, Data: orEmpty(t.Doubles)}, count(len(t.Doubles))
	case host.Int64:
		return &host.Tensor{Kind: k, Shape: shape, Data: orEmpty(t.Int64s)}, count(len(t.Int64s))
	case host.Uint32, host.Uint64:
		if err := count(len(t.Uint64s)); err != nil {
			return nil, err
		}
		x := make([]int64, n)
		for i, v := range t.Uint64s {
			x[i] = int64(v)
		}
		return host.FromInts(k, x, shape...), nil
	}
	if bits := k.Bits(); bits < 8 { // several in a number
		if err := count(min(len(t.Int32s)*(8/bits), n)); err != nil || len(t.Int32s) != (n*bits+7)/8 {
			return nil, fmt.Errorf("%d packed numbers for shape %v: %w", len(t.Int32s), shape, format.ErrFormat)
		}
		raw := make([]byte, len(t.Int32s))
		for i, v := range t.Int32s {
			raw[i] = byte(v)
		}
		return fromRaw(k, shape, raw)
	}
	if err := count(len(t.Int32s)); err != nil {
		return nil, err
	}
	out := host.New(k, shape...)
	switch s := out.Data.(type) {
	case []compute.F16:
		for i, v := range t.Int32s {
			s[i] = compute.F16(v)
		}
	case []compute.BF16:
		for i, v := range t.Int32s {
			s[i] = compute.BF16(v)
		}
	case []uint8:
		for i, v := range t.Int32s {
			s[i] = uint8(v)
		}
	default:
		x := make([]int64, n)
		for i, v := range t.Int32s {
			x[i] = int64(v)
		}
		return host.FromInts(k, x, shape...), nil
	}
	return out, nil
}

func orEmpty[E any](s []E) []E {
	if s == nil {
		return []E{}
	}
	return s
}
