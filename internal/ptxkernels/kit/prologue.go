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

// Prologue is a prologue as kernels over rows need it: what they read as elements of their first operand.
type Prologue struct {
	scalar.Body
	Text    string
	values  []float32 // of the scalars
	Strides [][2]int  // of the operands, from row to row and from element to element: 0 or 1
}

// A lane has elements of a whole row, or many of several operands at a time. These are the most with which no kernel
// spills any.
const (
	PrologueOperands  = 3
	PrologueRegisters = 4
)

// Prologue is the step's prologue, which makes rows × cols elements; nil if it has none.
func (s *Step) Prologue(rows, cols int) (*Prologue, error) {
	x := &s.Parts.Prologue
	if x.None() {
		return nil, nil
	}
	f, err := scalar.BodyOf(x)
	if err != nil {
		return nil, err
	}
	if x.Inputs > PrologueOperands || scalar.Pressure(x) > PrologueRegisters {
		return nil, fmt.Errorf("prologue %v takes %d operands and %d registers, at most %d and %d are possible: %w", x, x.Inputs,
			scalar.Pressure(x), PrologueOperands, PrologueRegisters, compute.ErrUnsupported)
	}
	h := &Prologue{Body: f, Text: x.String(), values: s.Parts.PrologueScalars}
	for _, in := range s.Parts.PrologueIn {
		strides, ok := regroup(s.Operands[0].Shape, program.BroadcastStrides(in.Shape, s.Operands[0].Shape), []int{rows, cols})
		if !ok || strides[1] > 1 {
			return nil, fmt.Errorf("prologue %v: %v is repeated along other axes than those of %d rows of %d: %w", x, in, rows, cols,
				compute.ErrUnsupported)
		}
		if rows == 1 {
			strides[0] = cols * strides[1] // a row of its own length
		}
		h.Strides = append(h.Strides, [2]int(strides))
	}
	return h, nil
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

// arguments are what stands for the first operand.
func (h *Prologue) arguments() (all []argument) {
	add := func(v any) { all = append(all, argument{value: v}) }
	var sizes []uint32
	for i, st := range h.Strides {
		add(Buffer{Role: lowering.OfPrologue, Index: i})
		sizes = append(sizes, uint32(st[0]), uint32(st[1]))
	}
	add(sizes)
	for _, v := range h.values {
		add(v)
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
			text += "before: " + h.Text
			with.Doc += fmt.Sprintf(" Its first operand is %s: in its place are f32* operands, for each u32 strides from row to row and "+
				"from element to element, f32 scalars.", h.Text)
		}
		if t != nil {
			arguments = append(arguments, t.arguments()...)
			text += "behind: " + t.Text
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
