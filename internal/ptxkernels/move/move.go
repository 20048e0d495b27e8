package move

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// Movement takes elements as words of four bytes and never computes with them: every bit of a NaN arrives.

// Transpose lowers a permutation of axes.
func Transpose(s *kit.Step) error {
	v, err := catalogue.TransposeView(s.Operands[0].Shape, s.Attr.Options.(compute.TransposeOptions))
	if err != nil {
		return err
	}
	gatherView(s, v)
	return nil
}

// Slice lowers a part of a tensor, with steps.
func Slice(s *kit.Step) error {
	v, err := catalogue.SliceView(s.Operands[0].Shape, s.Attr.Options.(compute.SliceOptions))
	if err != nil {
		return err
	}
	gatherView(s, v)
	return nil
}

// Concat lowers joining tensors along an axis: a copy for each operand.
func Concat(s *kit.Step) error {
	axis, err := catalogue.ConcatAxis(len(s.Result.Shape), s.Attr.Options.(compute.ConcatOptions))
	if err != nil {
		return err
	}
	strides := program.Strides(s.Result.Shape)
	at := 0
	for i, x := range s.Operands {
		if x.Len() > 0 {
			moveBox(s, boxOf(kit.In(i), x.Shape, program.Strides(x.Shape), strides, 0, at*strides[axis]))
		}
		at += x.Shape[axis]
	}
	return nil
}

// Pad fills the result, then moves the operand into it. Where the operand stays in one piece, only what lies beside it is
// filled.
func Pad(s *kit.Step) error {
	o := s.Attr.Options.(compute.PadOptions)
	word, n := math.Float32bits(o.Value), s.Result.Len()
	if s.Operands[0].Len() == 0 {
		s.Fill(kit.Out, word, n)
		return nil
	}
	shape, strides := s.Operands[0].Shape, program.Strides(s.Result.Shape)
	b := boxOf(kit.In(0), shape, program.Strides(shape), strides, 0, program.Dot(o.Before, strides))
	if first, end := b.y0, b.y0+s.Operands[0].Len(); b.rows() == 1 {
		s.Fill(kit.Out, word, first)
		s.Fill(kit.Out.Plus(4*end), word, n-end)
	} else {
		s.Fill(kit.Out, word, n)
	}
	moveBox(s, b)
	return nil
}

// gatherView makes the result from a strided view of the operand.
func gatherView(s *kit.Step, v catalogue.View) {
	moveBox(s, boxOf(kit.In(0), v.Shape, v.Strides, program.Strides(v.Shape), v.Offset, 0))
}

// box is a set of words at a strided place of an operand and of the result. Strides and offsets are in words.
type box struct {
	operand kit.Buffer
	shape   []int // collapsed: no axis of size 1, none that its neighbour continues
	from    []int // strides in the operand, negative ones too
	to      []int // strides in the result
	x0, y0  int   // where the first word lies
}

func boxOf(operand kit.Buffer, shape, from, to []int, x0, y0 int) box {
	shape, st := program.Collapse(shape, from, to)
	return box{operand, shape, st[0], st[1], x0, y0}
}

// rows is the number of pieces of which the box consists, each of neighbouring words on either side; 0 if it has none.
func (b box) rows() int {
	last := len(b.shape) - 1
	if last >= 0 && (b.from[last] != 1 || b.to[last] != 1) {
		return 0
	}
	rows, _ := program.RowsCols(b.shape)
	return rows
}

// A copy costs as much as the launch of a kernel, so that several have to be worth it.
const (
	fewCopies = 16
	longCopy  = 1 << 18 // bytes
)

// moveBox moves a box of words from an operand to the result.
func moveBox(s *kit.Step, b box) {
	rows := b.rows()
	_, cols := program.RowsCols(b.shape)
	switch p := b.exchanged(); {
	case rows == 1 || len(b.shape) == 2 && 0 < rows && rows <= fewCopies && 4*cols >= longCopy:
		for i := range rows {
			x, y := b.x0, b.y0
			if i > 0 {
				x, y = x+i*b.from[0], y+i*b.to[0]
			}
			s.Copy(b.operand.Plus(4*x), kit.Out.Plus(4*y), 4*cols)
		}
	case p >= 0:
		transposed(s, b, p)
	default:
		stridedBox(s, b)
	}
}
