package wgslkernels

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// transpose is the code of [catalogue.Transpose].
func transpose(s *step) error {
	v, err := catalogue.TransposeView(s.Operands[0].Shape, s.Attr.Options.(compute.TransposeOptions))
	if err != nil {
		return err
	}
	return s.gather(v)
}

// slice is the code of [catalogue.Slice].
func slice(s *step) error {
	v, err := catalogue.SliceView(s.Operands[0].Shape, s.Attr.Options.(compute.SliceOptions))
	if err != nil {
		return err
	}
	return s.gather(v)
}

// pad is the code of [catalogue.Pad].
func pad(s *step) error {
	o := s.Attr.Options.(compute.PadOptions)
	s.fill(bits(o.Value))
	if s.Operands[0].Len() == 0 {
		return nil
	}
	shape, strides := s.Operands[0].Shape, program.Strides(s.Result.Shape)
	return s.strided(0, shape, program.Strides(shape), strides, 0, program.Dot(o.Before, strides))
}

// concat is the code of [catalogue.Concat].
func concat(s *step) error {
	axis, err := catalogue.ConcatAxis(len(s.Result.Shape), s.Attr.Options.(compute.ConcatOptions))
	if err != nil {
		return err
	}
	strides := program.Strides(s.Result.Shape)
	at := 0
	for i, x := range s.Operands {
		if x.Len() > 0 {
			if err := s.strided(i, x.Shape, program.Strides(x.Shape), strides, 0, at*strides[axis]); err != nil {
				return err
			}
		}
		at += x.Shape[axis]
	}
	return nil
}

// fill is the code of [catalogue.Fill].
func fill(s *step) error {
	s.fill(bits(s.Attr.Scalars[0]))
	return nil
}

func copyAll(s *step) error {
	s.copyWords(0, 0, 0, ceilDiv(s.Result.Bytes(), 4))
	return nil
}

// copyWords copies n words of an operand to the result.
func (s *step) copyWords(from, first, to, n int) {
	at := func(b Buffer, word int) Buffer {
		b.Offset, b.Size = 4*word, 4*n
		return b
	}
	s.Add(Action{Copy: &lowering.Copy{From: at(operand(from), first), To: at(result, to)}})
}

// gather fills the result from a strided view of its operand.
func (s *step) gather(v catalogue.View) error {
	return s.strided(0, v.Shape, v.Strides, program.Strides(v.Shape), v.Offset, 0)
}

// fill writes a word everywhere in the result.
func (s *step) fill(value uint32) { s.fillWords(result, s.Result.Len(), value) }

// fillWords writes a word to all n of a buffer.
func (s *step) fillWords(b Buffer, n int, value uint32) {
	lanes := s.workgroup()
	k := cached(fmt.Sprint("fill/", lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.ReadWrite}, Uniform: 16, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("fill.wgsl", struct{ Lanes int }{lanes})}
	})
	chunk := s.chunk()
	for first := 0; first < n; first += chunk {
		vecs := ceilDiv(min(chunk, n-first), 4)
		b.Offset, b.Size = 4*first, 16*vecs
		s.dispatch(k, s.linear(ceilDiv(vecs, lanes)), []uint32{uint32(vecs), value}, b)
	}
}

// chunk is the number of words by which flat kernels cut what no binding holds: a multiple of the alignment.
func (s *step) chunk() int { return max(1, int(s.caps.MaxBinding)/4/s.align()) * s.align() }

// box is a strided set of words of an operand and of the result.
type box struct {
	operand int
	shape   []int
	from    []int // strides in the operand, in elements
	to      []int // strides in the result
	x0, y0  int   // where the first word lies
}

const (
	manyCopies     = 16      // rows from which one kernel is better than a copy for each
	manyDispatches = 1 << 14 // no sane limit of a device needs this many
)

// strided moves a box of words from an operand to the result.
func (s *step) strided(operand int, shape, from, to []int, x0, y0 int) error {
	shape, st := program.Collapse(shape, from, to)
	b := box{operand, shape, st[0], st[1], x0, y0}
	if last := len(shape) - 1; last < 0 || b.from[last] == 1 && b.to[last] == 1 {
		rows, cols := program.RowsCols(shape)
		if len(shape) <= 2 && rows <= manyCopies {
			for i := range rows {
				at := [2]int{x0, y0}
				if i > 0 {
					at[0] += i * b.from[0]
					at[1] += i * b.to[0]
				}
				s.copyWords(operand, at[0], at[1], cols)
			}
			return nil
		}
	}
	emit := s.generalBox
	if b.transposes() && uint32(16) <= min(s.caps.MaxInvocations, s.caps.MaxWorkgroupSize[0]) {
		names := []string{"tile", "gather"}
		if s.Choose("transpose", fmt.Sprint(shape), names) == 0 {
			emit = s.transposeBox
		}
	}
	return s.cut(b, emit)
}

// cut halves a box until the device can bind what it touches on either side.
func (s *step) cut(b box, emit func(b box, x, y Buffer, x0, y0 int)) error {
	if len(s.Actions) > manyDispatches {
		return s.tooLarge("result", s.Result.Len(), "move it in parts")
	}
	span := func(strides []int) (low, n int) {
		high := 0
		for d, size := range b.shape {
			low += min(0, (size-1)*strides[d])
			high += max(0, (size-1)*strides[d])
		}
		return low, high - low + 1
	}
	lowX, nX := span(b.from)
	lowY, nY := span(b.to)
	x, x0 := s.window(operand(b.operand), b.x0+lowX, nX)
	y, y0 := s.window(result, b.y0+lowY, nY)
	whole := wgsl.BufferSize(max(s.Operands[b.operand].Bytes(), s.Result.Bytes())) <= s.caps.MaxBinding
	if whole || uint64(max(x.Size, y.Size)) <= s.caps.MaxBinding {
		emit(b, x, y, x0-lowX, y0-lowY)
		return nil
	}
	// The axis that spans most on the side that is too large.
	strides := b.from
	if y.Size > x.Size {
		strides = b.to
	}
	axis := 0
	for d, size := range b.shape {
		if abs(size-1)*abs(strides[d]) > (b.shape[axis]-1)*abs(strides[axis]) {
			axis = d
		}
	}
	if len(b.shape) == 0 || b.shape[axis] == 1 {
		return s.tooLarge("an element", 1, "open the device with larger limits")
	}
	first, second := b, b
	half := b.shape[axis] / 2
	first.shape, second.shape = slices.Clone(b.shape), slices.Clone(b.shape)
	first.shape[axis], second.shape[axis] = half, b.shape[axis]-half
	second.x0 += half * b.from[axis]
	second.y0 += half * b.to[axis]
	if err := s.cut(first, emit); err != nil {
		return err
	}
	return s.cut(second, emit)
}

func abs(n int) int { return max(n, -n) }

// generalBox moves one word per invocation, or four where they are neighbours on both sides; x0 and y0 are where in the
// bindings the first one lies.
func (s *step) generalBox(b box, x, y Buffer, x0, y0 int) {
	rank, lanes, unit := len(b.shape), s.workgroup(), 1
	if b.inQuads(x0, y0) {
		unit = 4
	}
	k := cached(fmt.Sprintf("strided/%d/%d/%d", rank, unit, lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 16 + 16*rank, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("strided.wgsl", struct{ Rank, Unit, Lanes int }{rank, unit, lanes})}
	})
	total := program.Len(b.shape) / unit
	params := words(total, x0/unit, y0/unit, 0)
	for d := rank - 1; d >= 0; d-- {
		if d == rank-1 {
			params = append(params, words(b.shape[d]/unit, b.from[d], b.to[d], 0)...)
		} else {
			params = append(params, words(b.shape[d], b.from[d]/unit, b.to[d]/unit, 0)...)
		}
	}
	s.dispatch(k, s.linear(ceilDiv(total, lanes)), params, x, y)
}

// inQuads tells whether a box consists of fours of neighbouring words, at multiples of that on both sides.
func (b box) inQuads(x0, y0 int) bool {
	last := len(b.shape) - 1
	if last < 0 || b.from[last] != 1 || b.to[last] != 1 {
		return false
	}
	words := slices.Concat([]int{x0, y0, b.shape[last]}, b.from[:last], b.to[:last])
	return !slices.ContainsFunc(words, func(n int) bool { return n%4 != 0 })
}

// transposes: whether a box is a matrix or a row of matrices whose axes are exchanged.
func (b box) transposes() bool {
	r := len(b.shape)
	return (r == 2 || r == 3) && b.from[r-2] == 1 && b.to[r-1] == 1 && b.from[r-1] > 0 && b.to[r-2] > 0
}

func (s *step) transposeBox(b box, x, y Buffer, x0, y0 int) {
	down := 16
	for uint32(16*down) > s.caps.MaxInvocations || uint32(down) > s.caps.MaxWorkgroupSize[1] {
		down /= 2
	}
	k := cached(fmt.Sprint("transpose/", down), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 48, Workgroup: [3]uint32{16, uint32(down), 1}, Shared: 272 * 4,
			Source: render("transpose.wgsl", struct{ Down int }{down})}
	})
	r := len(b.shape)
	matrices, xMatrix, yMatrix := 1, 0, 0
	if r == 3 {
		matrices, xMatrix, yMatrix = b.shape[0], b.from[0], b.to[0]
	}
	rows, cols := b.shape[r-2], b.shape[r-1]
	across := ceilDiv(cols, 16)
	tiles := across * ceilDiv(rows, 16)
	params := words(rows, cols, matrices*tiles, across, tiles, x0, y0, b.from[r-1], b.to[r-2], xMatrix, yMatrix)
	s.dispatch(k, s.linear(matrices*tiles), params, x, y)
}
