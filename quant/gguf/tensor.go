package gguf

import (
	"fmt"
	"io"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/mapped"
	"github.com/wavelane/wavelane/quant"
)

// Tensor is a tensor in a file.
type Tensor struct {
	name     string
	typ      quant.Type
	dims     []int // as stored
	elements int
	source   *mapped.Source
	at, size int64
}

// Name is the name of the tensor.
func (t *Tensor) Name() string { return t.name }

// Type is the format of the elements.
func (t *Tensor) Type() quant.Type { return t.typ }

// Shape returns the shape in row-major order, as everywhere in this module: the last axis is the length of a row. A weight that maps
// in to out features has the shape [out, in].
func (t *Tensor) Shape() []int { return reversed(t.dims) }

// Dims returns the dimensions in the order of the file, at most four: the first is the length of a row.
func (t *Tensor) Dims() []int { return slices.Clone(t.dims) }

func reversed(shape []int) []int {
	s := slices.Clone(shape)
	slices.Reverse(s)
	return s
}

// Len is the number of elements.
func (t *Tensor) Len() int { return t.elements }

// Size is the number of bytes.
func (t *Tensor) Size() int64 { return t.size }

// Offset is where the tensor begins in its file, in bytes.
func (t *Tensor) Offset() int64 { return t.at }

// Cols is the length of a row: the last axis of the shape.
func (t *Tensor) Cols() int {
	if len(t.dims) == 0 {
		return 1
	}
	return t.dims[0]
}

// Rows is the number of rows: the product of all axes but the last.
func (t *Tensor) Rows() int {
	rows := 1
	for _, dim := range t.dims[min(1, len(t.dims)):] {
		rows *= dim
	}
	return rows
}

// Bytes returns the data: part of the mapping of the file, which must not be written to nor be used after [File.Close], or a
// copy where there is no mapping. A file that is made shorter while it is mapped makes the program crash when its data is
// touched.
func (t *Tensor) Bytes() ([]byte, error) {
	b, err := t.source.Bytes(t.at, t.size)
	if err != nil {
		return nil, fmt.Errorf("gguf: tensor %q: %w", t.name, err)
	}
	return b, nil
}

// Reader reads the data without holding all of it in memory.
func (t *Tensor) Reader() *io.SectionReader { return io.NewSectionReader(t.source, t.at, t.size) }

// Matrix returns the tensor as rows of blocks, over the same memory as [Tensor.Bytes].
func (t *Tensor) Matrix() (*quant.Matrix, error) {
	b, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	m, err := quant.NewMatrix(t.typ, t.Rows(), t.Cols(), b)
	if err != nil {
		return nil, fmt.Errorf("gguf: tensor %q: %w", t.name, err)
	}
	return m, nil
}

// Dequantize writes the elements to dst, as many as [Tensor.Len] says. Errors wrap those of [quant.Dequantize].
func (t *Tensor) Dequantize(dst []float32) error {
	if len(dst) != t.elements {
		return fmt.Errorf("gguf: tensor %q has %d elements, not %d: %w", t.name, t.elements, len(dst), compute.ErrShape)
	}
	b, err := t.Bytes()
	if err == nil {
		err = quant.Dequantize(dst, t.typ, b)
	}
	if err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", t.name, err)
	}
	return nil
}
