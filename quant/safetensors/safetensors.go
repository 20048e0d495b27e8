// Package safetensors reads and writes safetensors, the files that hold models of Hugging Face: a header in JSON and tensors in plain
// formats.
//
// [Open] maps a file into memory and reads the header; tensor data is read on demand. A file is taken for hostile: what it
// claims is compared with its size before anything is allocated, and whatever does not fit is an error that wraps
// [ErrMalformed]. [Writer] writes a stream, and [WriteFile] a file that is never there in part.
//
// The source of the format is the README of github.com/huggingface/safetensors; as there, tensors follow each other without
// gaps.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/mapped"
	"github.com/wavelane/wavelane/quant"
)

var (
	// ErrMalformed is what contradicts itself or the format, or ends too early.
	ErrMalformed = errors.New("malformed safetensors file")
	// ErrMissing is a tensor that is not in the file.
	ErrMissing = errors.New("not in the safetensors file")
)

// maxHeader is the limit of the format.
const maxHeader = 100_000_000

// widths are the bytes of an element of each type.
var widths = map[string]int64{"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I16": 2, "U16": 2,
	"F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8}

// quantTypes are the types that package quant has, too.
var quantTypes = map[string]quant.Type{"I8": quant.I8, "I16": quant.I16, "I32": quant.I32, "I64": quant.I64, "F16": quant.F16,
	"BF16": quant.BF16, "F32": quant.F32, "F64": quant.F64}

// File is an open file. Its methods may be called from many goroutines, but not together with Close.
type File struct {
	metadata map[string]string
	tensors  []*Tensor
	byName   map[string]*Tensor
	source   *mapped.Source
}

// Tensor is a tensor in a file.
type Tensor struct {
	name, dtype string
	shape       []int
	elements    int
	source      *mapped.Source
	at, size    int64
}

// Open opens a file.
func Open(name string) (*File, error) {
	s, err := mapped.Open(name)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := read(s)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", name, errors.Join(err, s.Close()))
	}
	return f, nil
}

// New reads from r, which has size bytes. It keeps r for what is read later.
func New(r io.ReaderAt, size int64) (*File, error) {
	f, err := read(mapped.From(r, size))
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

// Close ends the mapping: what [Tensor.Bytes] returned must not be touched any more. It may be called again.
func (f *File) Close() error { return f.source.Close() }

// Metadata returns the texts that the header has beside the tensors.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Tensors returns the tensors in the order of their data.
func (f *File) Tensors() []*Tensor { return slices.Clone(f.tensors) }

// Tensor returns a tensor by name. The error wraps [ErrMissing].
func (f *File) Tensor(name string) (*Tensor, error) {
	if t, ok := f.byName[name]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("safetensors: tensor %q: %w", name, ErrMissing)
}

func read(s *mapped.Source) (*File, error) {
	var b [8]byte
	if n, _ := s.ReadAt(b[:], 0); n < len(b) {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, n)
	}
	n := binary.LittleEndian.Uint64(b[:])
	if n > maxHeader || int64(n) > s.Size()-8 {
		return nil, fmt.Errorf("%w: a header of %d bytes in a file of %d; at most %d are read",
			ErrMalformed, n, s.Size(), maxHeader)
	}
	header, err := s.Bytes(8, int64(n))
	if err != nil {
		return nil, err
	}
	f := &File{byName: map[string]*Tensor{}, source: s}
	if err := f.header(header); err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.tensors, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.size, b.size))
	})
	var end int64
	for _, t := range f.tensors {
		if t.at != end {
			return nil, fmt.Errorf("%w: tensor %q begins at byte %d of the data, not %d", ErrMalformed, t.name, t.at, end)
		}
		end += t.size
		t.at += 8 + int64(n)
	}
	if have := s.Size() - 8 - int64(n); end != have {
		return nil, fmt.Errorf("%w: %d bytes of data, not %d", ErrMalformed, have, end)
	}
	return f, nil
}

// header reads the JSON object token by token, since a map would hide names that are there twice.
func (f *File) header(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return fmt.Errorf("%w: the header is no JSON object", ErrMalformed)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	_, err := d.Token()
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil {
			break
		}
		name := key.(string) // a key, or Token has failed
		if name == metadataKey {
			if f.metadata != nil {
				return fmt.Errorf("%w: %s twice", ErrMalformed, name)
			}
			f.metadata = map[string]string{}
			err = d.Decode(&f.metadata)
			continue
		}
		if err = f.info(d, name); err != nil {
			return fmt.Errorf("tensor %.200q: %w", name, err)
		}
	}
	if err == nil {
		_, err = d.Token()
	}
	if err != nil {
		return fmt.Errorf("%w: the header: %w", ErrMalformed, err)
	}
	if rest := bytes.TrimRight(b[d.InputOffset():], " "); len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes after the JSON of the header", ErrMalformed, len(rest))
	}
	return nil
}

// info reads what the header says about a tensor, all but whether it fits in the file.
func (f *File) info(d *json.Decoder, name string) error {
	var info struct {
		DType   *string  `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets *[]int64 `json:"data_offsets"`
	}
	if err := d.Decode(&info); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if info.DType == nil || info.Shape == nil || info.Offsets == nil || len(*info.Offsets) != 2 {
		return fmt.Errorf("%w: dtype, shape or data_offsets are missing", ErrMalformed)
	}
	if _, double := f.byName[name]; double {
		return fmt.Errorf("%w: twice", ErrMalformed)
	}
	width, ok := widths[*info.DType]
	if !ok {
		return fmt.Errorf("elements of type %q: %w", *info.DType, compute.ErrUnsupported)
	}
	t := &Tensor{name: name, dtype: *info.DType, shape: make([]int, len(info.Shape)), source: f.source, at: (*info.Offsets)[0]}
	elements := int64(1)
	for i, dim := range info.Shape {
		if dim < 0 || elements != 0 && dim > math.MaxInt/width/elements {
			return fmt.Errorf("%w: the shape %v", ErrMalformed, info.Shape)
		}
		elements *= dim
		t.shape[i] = int(dim)
	}
	t.elements, t.size = int(elements), elements*width
	if end := (*info.Offsets)[1]; t.at < 0 || end < t.at || end-t.at != t.size {
		return fmt.Errorf("%w: bytes %d to %d for %d of %s", ErrMalformed, t.at, end, elements, t.dtype)
	}
	f.tensors = append(f.tensors, t)
	f.byName[name] = t
	return nil
}

// Name is the name of the tensor.
func (t *Tensor) Name() string { return t.name }

// DType is the type of the elements as the file names it, such as BF16.
func (t *Tensor) DType() string { return t.dtype }

// Type is the type of the elements in package quant, and whether it has one.
func (t *Tensor) Type() (quant.Type, bool) {
	typ, ok := quantTypes[t.dtype]
	return typ, ok
}

// Shape returns the dimensions; the last one is the length of a row, unlike in GGUF files.
func (t *Tensor) Shape() []int { return slices.Clone(t.shape) }

// Len is the number of elements.
func (t *Tensor) Len() int { return t.elements }

// Size is the number of bytes.
func (t *Tensor) Size() int64 { return t.size }

// Bytes returns the data, little-endian: part of the mapping of the file, which must not be written to nor be used after
// [File.Close], or a copy where there is no mapping.
func (t *Tensor) Bytes() ([]byte, error) {
	b, err := t.source.Bytes(t.at, t.size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", t.name, err)
	}
	return b, nil
}

// Reader reads the data without holding all of it in memory.
func (t *Tensor) Reader() *io.SectionReader { return io.NewSectionReader(t.source, t.at, t.size) }

// Float32s writes the elements of F32, F16 and BF16 tensors to dst, as many as [Tensor.Len] says. Errors wrap
// [compute.ErrShape], and [compute.ErrDType] for other types.
func (t *Tensor) Float32s(dst []float32) error {
	typ, ok := t.Type()
	if !ok || !typ.Convertible() {
		return fmt.Errorf("safetensors: tensor %q has elements of type %s, not F32, F16 or BF16: %w",
			t.name, t.dtype, compute.ErrDType)
	}
	b, err := t.Bytes()
	if err != nil {
		return err
	}
	if err := quant.Dequantize(dst, typ, b); err != nil {
		return fmt.Errorf("safetensors: tensor %q: %w", t.name, err)
	}
	return nil
}
