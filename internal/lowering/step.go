package lowering

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Step is what the code of a step is written for: a checked call with all shapes known. Prologue and epilogue are separate, and
// operands are numbered without them.
type Step[L Launch[L]] struct {
	*program.Step
	Operands []program.Type
	Results  []program.Type
	Result   program.Type // the first of them
	Parts    program.Parts
	Choose   Chooser
	Err      error // the first of an action that could not be appended
	Code[L]

	lower func(s *program.Step, in, out []program.Type) (Code[L], error)
	count int // of the operands, with those of the prologue and the epilogue
}

// Entry says how the steps of an entry become code, which functions of S write.
type Entry[S any] struct {
	Lower              func(S) error
	Prologue, Epilogue bool // whether its kernels take one
	InPlace            InPlace
}

// InPlace says in the memory of which operands a result may lie that has the operand's type and more than one element: each thread
// reads nothing of them that another writes, and reads all before it writes.
type InPlace uint8

// Operands in whose memory a result may lie.
const (
	NoOperand InPlace = iota
	FirstOperand
	EveryOperand
)

// Language is the kernels of the catalogue in one language.
type Language[S any, L Launch[L]] struct {
	Name    string
	Entries func() map[*program.Entry]Entry[S]
}

// Lower returns the code of one step. The operands have the types in, the results have the types out, as the catalogue's check gave
// them. A nil choose takes every default. If no result has elements there is no code. A result that is an operand changed in place
// (see program.Entry) has to hold that operand's elements before. Wrap adds what the language has on top. Errors wrap
// [compute.ErrUnsupported] or [compute.ErrTooLarge].
func (t *Language[S, L]) Lower(s *program.Step, in, out []program.Type, choose Chooser, wrap func(*Step[L]) S) (Code[L], error) {
	e, ok := t.Entries()[s.Entry]
	if !ok {
		return Code[L]{}, fmt.Errorf("%s has no %s kernel: %w", s.Entry.Name, t.Name, compute.ErrUnsupported)
	}
	if choose == nil {
		choose = func(string, string, []string) int { return 0 }
	}
	st, err := newStep[L](s, in, out, choose, e.Prologue, e.Epilogue)
	if err == nil && slices.ContainsFunc(out, func(t program.Type) bool { return t.Len() > 0 }) {
		st.lower = func(s *program.Step, in, out []program.Type) (Code[L], error) {
			return t.Lower(s, in, out, choose, wrap)
		}
		err = cmp.Or(e.Lower(wrap(st)), st.Err)
	}
	if err != nil {
		return Code[L]{}, fmt.Errorf("%s %v: %w", s.Entry.Name, in, err)
	}
	return st.finished(), nil
}

func newStep[L Launch[L]](s *program.Step, in, out []program.Type, choose Chooser, prologue, epilogue bool) (*Step[L], error) {
	parts, err := s.Entry.Parts(in, s.Attr)
	switch {
	case err != nil:
		return nil, err
	case !parts.Prologue.None() && !prologue:
		return nil, fmt.Errorf("prologue %v: %w", &parts.Prologue, compute.ErrUnsupported)
	case !parts.Epilogue.None() && !epilogue:
		return nil, fmt.Errorf("epilogue %v: %w", &parts.Epilogue, compute.ErrUnsupported)
	}
	own := *s
	own.Attr = parts.Attr
	return &Step[L]{Step: &own, Operands: parts.In, Results: out, Result: out[0], Parts: parts, Choose: choose, count: len(in)}, nil
}

// finished is the code with operands numbered as the step has them: those of its prologue, its entry and its epilogue.
func (s *Step[L]) finished() Code[L] {
	first, rest := len(s.Parts.PrologueIn), len(s.Parts.EpilogueIn)
	if first+rest > 0 {
		for i := range s.Actions {
			s.Actions[i] = move(s.Actions[i], func(b Buffer) Buffer {
				switch {
				case b.Role == Operand && first > 0:
					b.Index += first - 1 // in place of its first
				case b.Role == OfPrologue:
					b.Role = Operand
				case b.Role == OfEpilogue:
					b.Role, b.Index = Operand, s.count-rest+b.Index
				}
				return b
			})
		}
	}
	return s.Code
}

// move replaces every buffer.
func move[L Launch[L]](a Action[L], to func(Buffer) Buffer) Action[L] {
	switch {
	case a.Copy != nil:
		return Action[L]{Copy: &Copy{to(a.Copy.From), to(a.Copy.To)}}
	case a.Fill != nil:
		return Action[L]{Fill: &Fill{to(a.Fill.To), a.Fill.Word}}
	}
	return Action[L]{Launch: a.Launch.Move(to)}
}

// Add appends an action.
func (s *Step[L]) Add(a Action[L]) { s.Actions = append(s.Actions, a) }

// OperandTensor is operand i.
func (s *Step[L]) OperandTensor(i int) Tensor {
	return Tensor{Buffer{Role: Operand, Index: i}, s.Operands[i]}
}

// NewScratch reserves n bytes, rounded up to what may be accessed of them.
func (s *Step[L]) NewScratch(n int) Buffer {
	s.Scratch = append(s.Scratch, max(16, (n+15)&^15))
	return Buffer{Role: Scratch, Index: len(s.Scratch) - 1}
}

// NewTensor reserves memory for a value.
func (s *Step[L]) NewTensor(t program.Type) Tensor { return Tensor{s.NewScratch(t.Bytes()), t} }

// Call appends the code of another entry, which writes its results to out. All are whole buffers, or parts without a size.
func (s *Step[L]) Call(e *program.Entry, a program.Attr, out []Buffer, in ...Tensor) error {
	types := make([]program.Type, len(in))
	for i, x := range in {
		types[i] = x.Type
	}
	results, err := e.Check(types, a)
	if err != nil {
		return err
	}
	c, err := s.lower(&program.Step{Entry: e, Attr: a}, types, results)
	if err != nil {
		return err
	}
	first := len(s.Scratch)
	s.Scratch = append(s.Scratch, c.Scratch...)
	for _, x := range c.Actions {
		s.Add(move(x, func(b Buffer) Buffer {
			var of Buffer
			switch b.Role {
			case Operand:
				of = in[b.Index].Buffer
			case Result:
				of = out[b.Index]
			default:
				b.Index += first
				return b
			}
			return Buffer{of.Role, of.Index, of.Offset + b.Offset, b.Size}
		}))
	}
	return nil
}

// Decompose appends the code of the entry's decomposition.
func (s *Step[L]) Decompose() error {
	p, err := s.Entry.Decompose(s.Operands, s.Attr)
	if err != nil {
		return err
	}
	tensors := make([]Tensor, len(p.Values))
	for i, v := range p.Values {
		tensors[i].Type = v.Type
	}
	for i, v := range p.Host {
		tensors[v].Buffer = Buffer{Role: Operand, Index: i}
	}
	for i := range p.Steps {
		step := &p.Steps[i]
		var in []Tensor
		for _, v := range step.In {
			in = append(in, tensors[v])
		}
		var out []Buffer
		for _, v := range step.Out {
			if result := slices.Index(p.Read, v); result >= 0 {
				tensors[v].Buffer = Buffer{Role: Result, Index: result}
			} else {
				tensors[v] = s.NewTensor(tensors[v].Type)
			}
			out = append(out, tensors[v].Buffer)
		}
		if err := s.Call(step.Entry, step.Attr, out, in...); err != nil {
			return err
		}
	}
	return nil
}
