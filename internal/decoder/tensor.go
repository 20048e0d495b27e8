package decoder

import (
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// tensor is a weight as the file has it, some rows or columns of one, or numbers that metadata say.
type tensor struct {
	name          string
	file          *gguf.Tensor
	from, n       int       // rows of the file's tensor; all of them if n is 0
	left, width   int       // columns of the file's tensor, whole blocks; all of them if width is 0
	before, after int       // of these columns, how many there are beside those that are wanted
	numbers       []float32 // if there is no file
	table         bool      // rows are taken by their numbers
}

// part is some rows. That of a tensor that is missing is missing.
func (t *tensor) part(from, n int) *tensor {
	if t == nil {
		return nil
	}
	p := *t
	p.from, p.n = t.from+from, n
	return &p
}

// columns is some columns of a tensor that has all of them, and those that are in the same blocks.
func (t *tensor) columns(from, n int) *tensor {
	if t == nil {
		return nil
	}
	p, block := *t, t.format().BlockLen()
	p.left = from / block * block
	p.width = (from+n+block-1)/block*block - p.left
	p.before, p.after = from-p.left, p.left+p.width-from-n
	return &p
}

func (t *tensor) rows() int {
	switch {
	case t.file == nil:
		return 1
	case t.n > 0:
		return t.n
	}
	return t.file.Rows()
}

func (t *tensor) cols() int {
	switch {
	case t.file == nil:
		return len(t.numbers)
	case t.width > 0:
		return t.width
	}
	return t.file.Cols()
}

func (t *tensor) shape() []int {
	if t.file == nil {
		return []int{len(t.numbers)}
	}
	shape := t.file.Shape()
	if t.n > 0 {
		shape[0] = t.n
	}
	if t.width > 0 {
		shape[len(shape)-1] = t.width
	}
	return shape
}

func (t *tensor) format() quant.Type {
	if t.file == nil {
		return quant.F32
	}
	return t.file.Type()
}

func (t *tensor) elements() int { return t.rows() * t.cols() }

// size is the bytes of the file.
func (t *tensor) size() int64 {
	if t.file == nil {
		return 0
	}
	return int64(t.rows()) * t.bytesOf(t.cols())
}

// bytesOf are those of so many columns of a row.
func (t *tensor) bytesOf(columns int) int64 {
	return int64(columns / t.format().BlockLen() * t.format().BlockSize())
}

func (t *tensor) bytes() ([]byte, error) {
	b, err := t.file.Bytes()
	if err != nil {
		return nil, err
	}
	row := t.bytesOf(t.file.Cols())
	b = b[int64(t.from)*row:][:int64(t.rows())*row]
	if t.width == 0 {
		return b, nil
	}
	part := make([]byte, 0, t.size())
	for at := t.bytesOf(t.left); at < int64(len(b)); at += row {
		part = append(part, b[at:at+t.bytesOf(t.width)]...)
	}
	return part, nil
}

func (t *tensor) matrix() (*quant.Matrix, error) {
	b, err := t.bytes()
	if err != nil {
		return nil, err
	}
	return quant.NewMatrix(t.format(), t.rows(), t.cols(), b)
}

func (t *tensor) dequantize(dst []float32) error {
	if t.file == nil {
		copy(dst, t.numbers)
		return nil
	}
	b, err := t.bytes()
	if err != nil {
		return err
	}
	return quant.Dequantize(dst, t.format(), b)
}
