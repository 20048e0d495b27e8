package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/mapped"
	"github.com/wavelane/wavelane/quant"
)

var (
	// ErrMalformed is what contradicts itself or the format, or ends too early.
	ErrMalformed = errors.New("malformed GGUF file")
	// ErrMissing is the error of metadata or tensors that are not in the file.
	ErrMissing = errors.New("not in the GGUF file")
)

const (
	magic            = "GGUF"
	version          = 3 // what is written
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	maxDims          = 4
)

// File is an open GGUF file, or all files of a split model. Its methods may be called from many goroutines, but not together
// with Close.
type File struct {
	version   int
	alignment int64
	keys      []string
	values    map[string]any
	tensors   []*Tensor
	byName    map[string]*Tensor
	sources   []*mapped.Source
	size      int64
}

// Open opens a file, and if its metadata says that the model is split, the other files as well; name is then the first.
func Open(name string) (*File, error) {
	s, err := mapped.Open(name)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := read(s)
	if err == nil {
		err = f.openRest(name)
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, fmt.Errorf("gguf: %s: %w", name, errors.Join(err, s.Close()))
	}
	return f, nil
}

// New reads a file of size bytes from r, which it keeps: tensors are read from it on demand.
func New(r io.ReaderAt, size int64) (*File, error) {
	return NewSplit(io.NewSectionReader(r, 0, size))
}

// NewSplit is [New] for a model that is split into several files, given in order.
func NewSplit(files ...*io.SectionReader) (*File, error) {
	if len(files) == 0 || slices.Contains(files, nil) {
		return nil, fmt.Errorf("gguf: no file to read: %w", compute.ErrArgument)
	}
	parts := make([]*File, len(files))
	for i, r := range files {
		var err error
		if parts[i], err = read(mapped.From(r, r.Size())); err != nil {
			return nil, fmt.Errorf("gguf: file %d: %w", i+1, err)
		}
	}
	f := parts[0]
	if err := f.join(parts[1:]); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return f, nil
}

// Close ends the mapping: what [Tensor.Bytes] returned must not be touched any more. It may be called again.
func (f *File) Close() error {
	var err error
	for _, s := range f.sources {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Version is the version of the format, 2 or 3.
func (f *File) Version() int { return f.version }

// Alignment is what offsets of tensors are multiples of.
func (f *File) Alignment() int { return int(f.alignment) }

// Size is the number of bytes of all files.
func (f *File) Size() int64 { return f.size }

// Tensors returns the tensors in the order of the file.
func (f *File) Tensors() []*Tensor { return slices.Clone(f.tensors) }

// Tensor returns a tensor by name. The error wraps [ErrMissing].
func (f *File) Tensor(name string) (*Tensor, error) {
	if t, ok := f.byName[name]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("gguf: tensor %q: %w", name, ErrMissing)
}

func read(s *mapped.Source) (*File, error) {
	f := &File{values: map[string]any{}, byName: map[string]*Tensor{}, sources: []*mapped.Source{s}, size: s.Size()}
	d := newDecoder(s, 0, s.Size())
	tensors, pairs, err := f.header(d)
	if err != nil {
		return nil, err
	}
	for i := range pairs {
		if err := f.pair(d); err != nil {
			return nil, fmt.Errorf("metadata %d of %d: %w", i+1, pairs, err)
		}
	}
	if f.alignment, err = f.aligned(); err != nil {
		return nil, err
	}
	for i := range tensors {
		if err := f.info(d); err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i+1, tensors, err)
		}
	}
	return f, f.place(s, d.at)
}

func (f *File) header(d *decoder) (tensors, pairs uint64, err error) {
	var b [4]byte
	if err := d.read(b[:]); err != nil {
		return 0, 0, err
	}
	if string(b[:]) != magic {
		return 0, 0, fmt.Errorf("%w: it begins with %q, not %q", ErrMalformed, b[:], magic)
	}
	v, err := d.uint32()
	switch {
	case err != nil:
		return 0, 0, err
	case v != 0 && v&0xffff == 0:
		return 0, 0, fmt.Errorf("a big-endian GGUF file; gguf-convert-endian of the gguf Python package converts it: %w",
			compute.ErrUnsupported)
	case v != 2 && v != 3:
		return 0, 0, fmt.Errorf("version %d of GGUF; 2 and 3 are read: %w", v, compute.ErrUnsupported)
	}
	f.version = int(v)
	if tensors, err = d.uint64(); err != nil {
		return 0, 0, err
	}
	if pairs, err = d.uint64(); err != nil {
		return 0, 0, err
	}
	const leastPair, leastInfo = 8 + 4 + 1, 8 + 4 + 4 + 8
	if left := uint64(d.left()); pairs > left/leastPair || tensors > (left-leastPair*pairs)/leastInfo {
		return 0, 0, fmt.Errorf("%w: %d tensors and %d metadata in %d bytes", ErrMalformed, tensors, pairs, left)
	}
	return tensors, pairs, nil
}

func (f *File) pair(d *decoder) error {
	key, err := d.string(maxName)
	if err != nil {
		return err
	}
	_, double := f.values[key]
	switch {
	case key == "":
		return fmt.Errorf("%w: an empty key", ErrMalformed)
	case double:
		return fmt.Errorf("%w: key %q twice", ErrMalformed, key)
	}
	k, err := d.kind()
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	v, err := d.value(k)
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	f.keys = append(f.keys, key)
	f.values[key] = v
	return nil
}

func (f *File) aligned() (int64, error) {
	v, ok := f.values[alignmentKey]
	if !ok {
		return defaultAlignment, nil
	}
	return checkAlignment(v)
}

func checkAlignment(v any) (int64, error) {
	a, ok := v.(uint32)
	if !ok || bits.OnesCount32(a) != 1 {
		return 0, fmt.Errorf("%w: %s is %v, not a uint32 that is a power of two", ErrMalformed, alignmentKey, v)
	}
	return int64(a), nil
}

// info reads what the file says about a tensor.
func (f *File) info(d *decoder) error {
	name, err := d.string(maxName)
	if err != nil {
		return err
	}
	if _, double := f.byName[name]; double {
		return fmt.Errorf("%w: tensor %q twice", ErrMalformed, name)
	}
	n, err := d.uint32()
	if err != nil {
		return err
	}
	if n > maxDims {
		return fmt.Errorf("%w: %q has %d dimensions", ErrMalformed, name, n)
	}
	shape := make([]int, n)
	for i := range shape {
		dim, err := d.uint64()
		if err != nil {
			return err
		}
		if dim > math.MaxInt {
			return fmt.Errorf("%w: %q has a dimension of %d", ErrMalformed, name, dim)
		}
		shape[i] = int(dim)
	}
	typ, err := d.uint32()
	if err != nil {
		return err
	}
	offset, err := d.uint64()
	if err != nil {
		return err
	}
	t := &Tensor{name: name, typ: quant.Type(typ), dims: shape}
	if !t.typ.Valid() {
		return fmt.Errorf("%q: %v is unknown: %w", name, t.typ, compute.ErrUnsupported)
	}
	if t.elements, t.size, err = sizes(t.typ, shape); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrMalformed, name, err)
	}
	if offset > math.MaxInt64 || offset%uint64(f.alignment) != 0 {
		return fmt.Errorf("%w: %q is at byte %d, which is no multiple of %d", ErrMalformed, name, offset, f.alignment)
	}
	t.at = int64(offset)
	f.tensors = append(f.tensors, t)
	f.byName[name] = t
	return nil
}

// sizes returns the numbers of elements and bytes of a tensor.
func sizes(t quant.Type, shape []int) (elements int, size int64, err error) {
	cols, rows := 1, 1
	for i, dim := range shape {
		if i == 0 {
			cols = dim
			continue
		}
		if rows != 0 && dim > math.MaxInt/rows {
			return 0, 0, fmt.Errorf("the shape %v: %w", shape, compute.ErrTooLarge)
		}
		rows *= dim
	}
	row, err := t.RowSize(cols)
	if err != nil {
		return 0, 0, err
	}
	if rows != 0 && max(row, cols) > math.MaxInt/rows {
		return 0, 0, fmt.Errorf("the shape %v: %w", shape, compute.ErrTooLarge)
	}
	return cols * rows, int64(row) * int64(rows), nil
}

// place checks the tensors' offsets and makes them count from the beginning of the file.
func (f *File) place(s *mapped.Source, at int64) error {
	if len(f.tensors) == 0 {
		return nil
	}
	data := pad(at, f.alignment)
	order := slices.Clone(f.tensors)
	slices.SortStableFunc(order, func(a, b *Tensor) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.size, b.size)) })
	var end int64
	for _, t := range order {
		switch {
		case t.at < end:
			return fmt.Errorf("%w: tensor %q overlaps the one before it, at byte %d of the data", ErrMalformed, t.name, t.at)
		case data > s.Size() || t.at > s.Size()-data || t.size > s.Size()-data-t.at:
			return fmt.Errorf("%w: tensor %q is bytes %d and the next %d of the data, which has %d", ErrMalformed, t.name, t.at,
				t.size, max(s.Size()-data, 0))
		}
		end = t.at + t.size
	}
	for _, t := range f.tensors {
		t.at += data
		t.source = s
	}
	return nil
}

func pad(n, alignment int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }
