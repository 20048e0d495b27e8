package pretrained

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// image is a GGUF file of which only the header is in memory: the data of tensors is made where it is read.
type image struct {
	header  bytes.Buffer
	writer  *gguf.Writer
	err     error // the first of what is set
	keys    map[string]any
	tensors []imageTensor
	at      int64 // where the data begins
}

// imageTensor is a tensor of an image.
type imageTensor struct {
	rows    int
	rowSize int64
	// fill writes n rows from one on; dst has their bytes.
	fill func(dst []byte, row, n int) error
	at   int64 // in the data
}

func newImage() *image {
	m := &image{keys: map[string]any{}}
	m.writer = gguf.NewWriter(&m.header)
	return m
}

// set sets metadata.
func (m *image) set(key string, value any) {
	if m.err == nil {
		m.err = m.writer.Set(key, value)
	}
	m.keys[key] = value
}

// tensor declares the next tensor.
func (m *image) tensor(name string, t quant.Type, fill func(dst []byte, row, n int) error, shape ...int) {
	if m.err != nil {
		return
	}
	if m.err = m.writer.AddTensor(name, t, shape...); m.err != nil {
		return
	}
	size, err := t.RowSize(shape[len(shape)-1])
	if m.err = err; err != nil {
		return
	}
	x := imageTensor{rows: 1, rowSize: int64(size), fill: fill}
	for _, n := range shape[:len(shape)-1] {
		x.rows *= n // the writer has checked that they fit
	}
	if n := len(m.tensors); n > 0 {
		x.at = padded(m.tensors[n-1].at + m.tensors[n-1].size())
	}
	m.tensors = append(m.tensors, x)
}

func (t *imageTensor) size() int64 { return int64(t.rows) * t.rowSize }

// padded is rounded up to the alignment of a GGUF file.
func padded(n int64) int64 { return (n + 31) / 32 * 32 }

// file is the image as a file.
func (m *image) file() (*gguf.File, error) {
	if m.err != nil {
		return nil, m.err
	}
	if _, err := m.writer.Write(nil); err != nil { // which writes the header
		return nil, err
	}
	m.at = int64(m.header.Len())
	size := m.at
	if n := len(m.tensors); n > 0 {
		size += padded(m.tensors[n-1].at + m.tensors[n-1].size())
	}
	return gguf.New(m, size)
}

// ReadAt implements io.ReaderAt.
func (m *image) ReadAt(p []byte, off int64) (n int, err error) {
	header := m.header.Bytes()
	if off < m.at {
		n = copy(p, header[off:])
	}
	if n == len(p) {
		return n, nil
	}
	clear(p[n:]) // what is between tensors
	from := off + int64(n) - m.at
	rest := p[n:]
	first, _ := slices.BinarySearchFunc(m.tensors, from, func(t imageTensor, at int64) int { return cmp.Compare(t.at+t.size(), at+1) })
	end := int64(0)
	for i := first; i < len(m.tensors) && m.tensors[i].at < from+int64(len(rest)); i++ {
		if err := m.tensors[i].read(rest, from); err != nil {
			return n, err
		}
	}
	if k := len(m.tensors); k > 0 {
		end = padded(m.tensors[k-1].at + m.tensors[k-1].size())
	}
	if left := end - from; left < int64(len(rest)) {
		return n + int(max(left, 0)), io.EOF
	}
	return len(p), nil
}

// read writes what p has of the tensor, where p begins at an offset of the data.
func (t *imageTensor) read(p []byte, from int64) error {
	if t.size() == 0 {
		return nil
	}
	lo, hi := max(from, t.at)-t.at, min(from+int64(len(p)), t.at+t.size())-t.at
	p = p[t.at+lo-from:][:hi-lo]
	part := func(row int64, skip int64, n int64) error { // of one row
		b := make([]byte, t.rowSize)
		if err := t.fill(b, int(row), 1); err != nil {
			return err
		}
		p = p[copy(p, b[skip:skip+n]):]
		return nil
	}
	row := lo / t.rowSize
	if skip := lo % t.rowSize; skip > 0 {
		n := min(t.rowSize-skip, hi-lo)
		if err := part(row, skip, n); err != nil {
			return err
		}
		row++
	}
	if whole := int64(len(p)) / t.rowSize; whole > 0 {
		if err := t.fill(p[:whole*t.rowSize], int(row), int(whole)); err != nil {
			return err
		}
		p, row = p[whole*t.rowSize:], row+whole
	}
	if len(p) > 0 {
		return part(row, 0, int64(len(p)))
	}
	return nil
}
