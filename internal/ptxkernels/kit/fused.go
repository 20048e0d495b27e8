package kit

import (
	"fmt"
	"reflect"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Fused is an expression that a kernel computes beside its own work.
type Fused struct {
	scalar.Body
	Text   string
	values []float32 // of the scalars
	// Strides of the operands along the axes that the kernel knows, 0 where they are repeated.
	Strides [][]int
	swapped bool // rows of the kernel are columns of the result
}

// Epilogue is what becomes of each result before it stays in memory: its first operand is the result, and Strides are those of the
// further ones from product to product, row to row and column to column of the result. No operand may lie where the result does, which
// is written before it is final.
type Epilogue struct{ Fused }

// Prologue is what kernels over rows read as elements of their first operand. Strides are from row to row and from element to element: 0
// or 1.
type Prologue struct{ Fused }

// Registers are short: sums of other results may still be in them where results are written, and a lane has elements of a whole row, or
// many of several operands at a time. These are the most with which no kernel spills any.
const (
	EpilogueOperands  = 2 // beside the result
	EpilogueRegisters = 4 // values at a time
	PrologueOperands  = 3
	PrologueRegisters = 4
)

// fuse is the expression x, which is called what, over elements that have a shape and that the kernel numbers by axes of those sizes.
func fuse(what string, x *program.Expression, shape []int, operands []program.Type, scalars []float32, sizes []int, most, registers int) (Fused, error) {
	body, err := scalar.BodyOf(x)
	if err != nil {
		return Fused{}, err
	}
	if x.Inputs > most || scalar.Pressure(x) > registers {
		return Fused{}, fmt.Errorf("%s %v takes %d operands and %d registers, at most %d and %d are possible: %w", what, x, x.Inputs,
			scalar.Pressure(x), most, registers, compute.ErrUnsupported)
	}
	f := Fused{Body: body, Text: x.String(), values: scalars}
	for _, in := range operands {
		strides, ok := regroup(shape, program.BroadcastStrides(in.Shape, shape), sizes)
		if !ok {
			return Fused{}, fmt.Errorf("%s %v: %v is repeated along other axes than those of %v: %w", what, x, in, sizes, compute.ErrUnsupported)
		}
		f.Strides = append(f.Strides, strides)
	}
	return f, nil
}

// Epilogue is the step's epilogue after so many products of rows × cols; nil if it has none.
func (s *Step) Epilogue(products, rows, cols int) (*Epilogue, error) {
	x := &s.Parts.Epilogue
	if x.None() {
		return nil, nil
	}
	f, err := fuse("epilogue", x, s.Result.Shape, s.Parts.EpilogueIn, s.Parts.EpilogueScalars, []int{products, rows, cols}, 1+EpilogueOperands,
		EpilogueRegisters)
	return &Epilogue{f}, err
}

// Prologue is the step's prologue, which makes rows × cols elements; nil if it has none.
func (s *Step) Prologue(rows, cols int) (*Prologue, error) {
	x := &s.Parts.Prologue
	if x.None() {
		return nil, nil
	}
	f, err := fuse("prologue", x, s.Operands[0].Shape, s.Parts.PrologueIn, s.Parts.PrologueScalars, []int{rows, cols}, PrologueOperands,
		PrologueRegisters)
	for i, st := range f.Strides {
		if st[1] > 1 {
			return nil, fmt.Errorf("prologue %v: elements of operand %d of a row are %d apart: %w", x, i, st[1], compute.ErrUnsupported)
		}
		if rows == 1 {
			st[0] = cols * st[1] // a row of its own length
		}
	}
	return &Prologue{f}, err
}

// Shifted tells whether some operand's rows do not begin where the others' do, in units of four elements.
func (h *Prologue) Shifted(cols int) bool {
	if h == nil || cols%4 == 0 {
		return false
	}
	for _, st := range h.Strides {
		if st[1] == 1 && st[0] != cols {
			return true
		}
	}
	return false
}

// regroup is strides along axes of those sizes, which are the shape's joined; there may be none.
func regroup(shape, strides, sizes []int) (joined []int, ok bool) {
	joined = make([]int, len(sizes))
	d := len(shape) - 1
	for g := len(sizes) - 1; g >= 0; g-- {
		for size := 1; size < sizes[g]; d-- {
			switch {
			case d < 0:
				return nil, false
			case shape[d] == 1:
				continue
			case size == 1:
				joined[g] = strides[d]
			case strides[d] != joined[g]*size:
				return nil, false
			}
			if size *= shape[d]; size > sizes[g] {
				return nil, false
			}
		}
	}
	return joined, true
}

// EpilogueWords is the words of an operand in the array of a kernel: its strides, and whether it may be read by fours.
const EpilogueWords = 4

// LaunchEpilogue is Launch for a kernel of products that takes an epilogue. With swapped, its rows are columns of the result.
func (s *Step) LaunchEpilogue(t *Epilogue, swapped bool, k *Kernel, grid [3]int, params any) {
	if t != nil && swapped {
		turned := *t
		turned.swapped = true
		t = &turned
	}
	s.LaunchWith(nil, t, k, grid, params)
}

// arguments are those after the kernel's own.
func (t *Epilogue) arguments() (all []argument) {
	var sizes []uint32
	var operands []argument
	for i, st := range t.Strides {
		wide := st[2] == 1 && st[0]%4 == 0 && st[1]%4 == 0
		row, col := st[1], st[2]
		if t.swapped {
			row, col = col, row
		}
		sizes = append(sizes, uint32(st[0]), uint32(row), uint32(col), FlagIf(1, wide && !t.swapped))
		operands = append(operands, argument{value: Buffer{Role: lowering.OfEpilogue, Index: i}})
	}
	if len(sizes) > 0 {
		all = append(all, argument{value: sizes})
	}
	return append(append(all, operands...), t.scalars()...)
}

// arguments are what stands for the first operand.
func (h *Prologue) arguments() (all []argument) {
	var sizes []uint32
	for i, st := range h.Strides {
		all = append(all, argument{value: Buffer{Role: lowering.OfPrologue, Index: i}})
		sizes = append(sizes, uint32(st[0]), uint32(st[1]))
	}
	return append(append(all, argument{value: sizes}), h.scalars()...)
}

func (f *Fused) scalars() (all []argument) {
	for _, v := range f.values {
		all = append(all, argument{value: v})
	}
	return all
}

// LaunchWith is Launch for a kernel that takes a prologue in place of its first operand, an epilogue after its own parameters, or both;
// each may be nil.
func (s *Step) LaunchWith(h *Prologue, t *Epilogue, k *Kernel, grid [3]int, params any) {
	if s.Err != nil || s.Dry {
		return
	}
	if reflect.TypeOf(params) != reflect.TypeOf(k.Params) {
		s.Err = fmt.Errorf("internal error: kernel %s takes a %T, got a %T", k.Name, k.Params, params)
		return
	}
	var arguments []argument
	if arguments, s.Err = argumentsOf(params); s.Err != nil {
		return
	}
	if h != nil || t != nil {
		with, text := *k, ""
		with.Build = k.With(h, t)
		if h != nil {
			arguments = replace(arguments, In(0), h.arguments())
			text += "prologue: " + h.Text
			with.Doc += fmt.Sprintf(" Its first operand is %s: in its place are f32* operands, for each u32 strides from row to row and "+
				"from element to element, f32 scalars.", h.Text)
		}
		if t != nil {
			arguments = append(arguments, t.arguments()...)
			text += "epilogue: " + t.Text
			with.Doc += fmt.Sprintf(" After it %s; further parameters: for each of its operands u32 strides from product to product, "+
				"row to row, column to column, whether it may be read by fours; these f32* operands; f32 scalars.", t.Text)
		}
		k = s.JIT(k.Name, text, with)
	}
	s.Err = s.tryLaunch(k, grid, arguments)
}

// With is what builds the kernel with a prologue, an epilogue, or both.
func (k *Kernel) With(h *Prologue, t *Epilogue) func(b *ptx.Kernel) {
	return func(b *ptx.Kernel) { k.BuildWith(b, h, t) }
}
