package decoder

import (
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// tensor is a weight as the file has it, some rows of one, or numbers that metadata say.
type tensor struct {
	name    string
	file    *gguf.Tensor
	from, n int       // rows of the file's tensor; all of them if n is 0
	numbers []float32 // if there is no file
}

// part is some rows. That of a tensor that is missing is missing.
func (t *tensor) part(from, n int) *tensor {
	if t == nil {
		return nil
	}
	return &tensor{name: t.name, file: t.file, from: from, n: n}
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
	if t.file == nil {
		return len(t.numbers)
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
	return t.file.Size() / int64(max(t.file.Rows(), 1)) * int64(t.rows())
}

func (t *tensor) bytes() ([]byte, error) {
	b, err := t.file.Bytes()
	if err != nil || t.n == 0 {
		return b, err
	}
	row := len(b) / t.file.Rows()
	return b[t.from*row : (t.from+t.n)*row], nil
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
