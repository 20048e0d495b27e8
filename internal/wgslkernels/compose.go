package wgslkernels

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
)

// tensor is a value of a step that is made of others: a whole buffer and what it holds.
type tensor struct {
	Buffer
	program.Type
}

// operandTensor is operand i.
func (s *step) operandTensor(i int) tensor { return tensor{operand(i), s.in[i]} }

// temporary is room for a value.
func (s *step) temporary(t program.Type) tensor { return tensor{s.scratch(t.Bytes()), t} }

// call appends the code of another entry, which writes its results to out, whole buffers all.
func (s *step) call(e *program.Entry, a program.Attr, out []Buffer, in ...tensor) error {
	types := make([]program.Type, len(in))
	for i, x := range in {
		types[i] = x.Type
	}
	results, err := e.Check(types, a)
	if err != nil {
		return err
	}
	l, err := Lower(&program.Step{Entry: e, Attr: a}, types, results, s.caps, s.choose)
	if err != nil {
		return err
	}
	first := len(s.Scratch)
	s.Scratch = append(s.Scratch, l.Scratch...)
	of := func(b Buffer) Buffer {
		switch b.Role {
		case Operand:
			b.Role, b.Index = in[b.Index].Role, in[b.Index].Index
		case Result:
			b.Role, b.Index = out[b.Index].Role, out[b.Index].Index
		default:
			b.Index += first
		}
		return b
	}
	for _, a := range l.Actions {
		if d := a.Dispatch; d != nil {
			moved := *d
			moved.Bind = slices.Clone(d.Bind)
			for i, b := range moved.Bind {
				moved.Bind[i] = of(b)
			}
			a.Dispatch = &moved
		} else {
			a.Copy = &Copy{of(a.Copy.From), of(a.Copy.To)}
		}
		s.Actions = append(s.Actions, a)
	}
	return nil
}
