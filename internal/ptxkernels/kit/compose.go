package kit

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
)

// Tensor is a value of a step that is made of others: memory and what it holds.
type Tensor struct {
	Buffer
	program.Type
}

// OperandTensor is operand i.
func (s *Step) OperandTensor(i int) Tensor { return Tensor{In(i), s.Operands[i]} }

// NewTensor is room for a value.
func (s *Step) NewTensor(t program.Type) Tensor { return Tensor{s.NewScratch(t.Bytes()), t} }

// Call appends the code of another entry, which writes its results to out.
func (s *Step) Call(e *program.Entry, a program.Attr, out []Buffer, in ...Tensor) error {
	types := make([]program.Type, len(in))
	for i, x := range in {
		types[i] = x.Type
	}
	results, err := e.Check(types, a)
	if err != nil {
		return err
	}
	l, err := s.Lower(&program.Step{Entry: e, Attr: a}, types, results, s.Caps, s.Choose)
	if err != nil {
		return err
	}
	first := len(s.Scratch)
	s.Scratch = append(s.Scratch, l.Scratch...)
	of := func(b Buffer) Buffer {
		switch b.Role {
		case Operand:
			return in[b.Index].Plus(b.Offset)
		case Result:
			return out[b.Index].Plus(b.Offset)
		}
		b.Index += first
		return b
	}
	for _, a := range l.Actions {
		switch {
		case a.Launch != nil:
			launch := *a.Launch
			launch.Pointers = slices.Clone(launch.Pointers)
			for i := range launch.Pointers {
				launch.Pointers[i].Buffer = of(launch.Pointers[i].Buffer)
			}
			a.Launch = &launch
		case a.Copy != nil:
			a.Copy = &Copy{of(a.Copy.From), of(a.Copy.To), a.Copy.Bytes}
		case a.Fill != nil:
			a.Fill = &Fill{of(a.Fill.To), a.Fill.Word, a.Fill.Words}
		}
		s.Actions = append(s.Actions, a)
	}
	return nil
}
