package lower

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
)

// tensor is a value of a step that is made of others: memory and what it holds.
type tensor struct {
	Buffer
	program.Type
}

// operandTensor is operand i.
func (s *step) operandTensor(i int) tensor { return tensor{operand(i), s.in[i]} }

// temporary is room for a value.
func (s *step) temporary(t program.Type) tensor { return tensor{s.scratch(t.Bytes()), t} }

// call appends the code of another entry, which writes its results to out.
func (s *step) call(e *program.Entry, a program.Attr, out []Buffer, in ...tensor) error {
	types := make([]program.Type, len(in))
	for i, x := range in {
		types[i] = x.Type
	}
	results, err := e.Check(types, a)
	if err != nil {
		return err
	}
	l, err := s.lower(&program.Step{Entry: e, Attr: a}, types, results, s.caps, s.choose)
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
