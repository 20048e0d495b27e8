package ptxkernels

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// Lower returns the code of one step. The operands have the types in, the results have the types out, as the catalogue's
// check gave them. A nil choose takes every default. If no result has elements there is no code. A result that is an operand
// changed in place (see program.Entry) has to hold that operand's elements before. Errors wrap [compute.ErrUnsupported] or
// [compute.ErrTooLarge].
func Lower(s *program.Step, in, out []program.Type, caps *kit.Caps, choose kit.Chooser) (kit.Lowering, error) {
	return lowerStep(s, in, out, caps, choose, false)
}

// Fuses reports whether there is code for a step with expressions: those of the classes unary, binary and ternary alone, before
// reductions, and after products and convolutions. See [program.Executor].
func Fuses(s *program.Step, in, out []program.Type, caps *kit.Caps) bool {
	_, err := lowerStep(s, in, out, caps, nil, true)
	return err == nil
}

func lowerStep(s *program.Step, in, out []program.Type, caps *kit.Caps, choose kit.Chooser, dry bool) (kit.Lowering, error) {
	l, ok := table()[s.Entry]
	if !ok {
		return kit.Lowering{}, fmt.Errorf("%s has no PTX kernel: %w", s.Entry.Name, compute.ErrUnsupported)
	}
	st, err := kit.NewStep(s, in, out, caps, choose, dry)
	if err == nil && !st.Parts.Prologue.None() && !l.prologue {
		err = fmt.Errorf("prologue %v: %w", &st.Parts.Prologue, compute.ErrUnsupported)
	}
	if err == nil && !st.Parts.Epilogue.None() && !l.epilogue {
		err = fmt.Errorf("epilogue %v: %w", &st.Parts.Epilogue, compute.ErrUnsupported)
	}
	if err != nil {
		return kit.Lowering{}, fmt.Errorf("%s %v: %w", s.Entry.Name, in, err)
	}
	if !slices.ContainsFunc(out, func(t program.Type) bool { return t.Len() > 0 }) {
		return kit.Lowering{}, nil
	}
	st.Lower = Lower
	if err = l.lower(st); err == nil {
		err = st.Finish()
	}
	if err != nil {
		return kit.Lowering{}, fmt.Errorf("%s %v: %w", s.Entry.Name, in, err)
	}
	return st.Lowering, nil
}

// InPlace lists the operands of a step, by number, in whose memory results may lie that have their type and more than one element:
// each thread reads nothing of them that another writes, and reads all before it writes.
func InPlace(s *program.Step) (operands []int) {
	switch table()[s.Entry].inPlace {
	case firstOperand:
		if s.Attr.Prologue.None() && s.Attr.Epilogue.None() {
			operands = []int{0}
		}
	case everyOperand:
		for i := range s.In {
			operands = append(operands, i)
		}
	}
	return operands
}
