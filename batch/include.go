package batch

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// A batch can be included in others: it takes parameters and returns the values named by Return.

// Parameter makes a value that the caller of [Batch.Include] provides. A batch with parameters cannot run by itself.
func (b *Batch) Parameter(dtype compute.DType, shape ...int) Value {
	if b.err != nil {
		return Value{}
	}
	t := program.Type{DType: dtype, Shape: slices.Clone(shape)}
	if err := t.Check(); err != nil {
		return b.fail(fmt.Errorf("parameter: %w", err))
	}
	b.host = append(b.host, nil)
	s := b.program.Add(t, program.FromHost)
	b.parameters = append(b.parameters, s)
	return Value{b, s}
}

// Return names the values that [Batch.Include] returns. A later call replaces an earlier one.
func (b *Batch) Return(values ...Value) {
	if slots, ok := b.slots(values); ok {
		b.returns = slots
	}
}

// Include records the steps of another batch, with args for its parameters in the order in which they were made, and returns
// the values of its [Batch.Return]. The other batch does not change and can be included again. Its uploads and imported
// tensors become those of this batch, once however often it is included. Arguments of other types than the parameters are
// errors ([compute.ErrShape], [compute.ErrDType]), as is a batch that itself reads or keeps values ([compute.ErrArgument]).
func (b *Batch) Include(part *Batch, args ...Value) []Value {
	none := make([]Value, 0)
	if part != nil {
		none = make([]Value, len(part.returns))
	}
	slots, ok := b.slots(args)
	if !ok {
		return none
	}
	out, err := b.include(part, slots)
	if err != nil {
		b.fail(fmt.Errorf("include: %w", err))
		return none
	}
	values := make([]Value, len(out))
	for i, s := range out {
		values[i] = Value{b, s}
	}
	return values
}

// Loop includes a batch n times, first with the given values, then with the values that it returned the time before. It
// returns those of the last time, or the given ones if n is 0. The body must return values of the types of its parameters.
// The compiled program has the steps of every repetition; repetitions share kernels. Random numbers that the body draws are
// the same in each repetition; for different ones, Include the body n times with different streams.
func (b *Batch) Loop(n int, body *Batch, state ...Value) []Value {
	if n < 0 {
		b.fail(fmt.Errorf("loop of %d repetitions: %w", n, compute.ErrArgument))
	}
	for i := 0; i < n && b.err == nil; i++ {
		next := b.Include(body, state...)
		if b.err == nil && len(next) != len(state) {
			b.fail(fmt.Errorf("loop: the body takes %d values and returns %d: %w", len(state), len(next), compute.ErrArgument))
		}
		state = next
	}
	return state
}

func (b *Batch) include(part *Batch, args []program.Slot) ([]program.Slot, error) {
	switch {
	case part == nil:
		return nil, fmt.Errorf("nil batch: %w", compute.ErrArgument)
	case part == b:
		return nil, fmt.Errorf("a batch in itself: %w", compute.ErrArgument)
	case part.err != nil:
		return nil, part.err
	case len(part.program.Read)+len(part.program.Keep) > 0:
		return nil, fmt.Errorf("a batch that reads or keeps values: have it return them: %w", compute.ErrArgument)
	case len(args) != len(part.parameters):
		return nil, fmt.Errorf("%d arguments for %d parameters: %w", len(args), len(part.parameters), compute.ErrArgument)
	}
	p := &part.program
	here := make([]program.Slot, len(p.Values)) // by slot there
	for i, s := range part.parameters {
		want, got := p.Values[s].Type, b.program.Values[args[i]].Type
		if want.DType != got.DType {
			return nil, fmt.Errorf("argument %d is %v, the parameter %v: %w", i, got, want, compute.ErrDType)
		}
		if !program.EqualShape(want.Shape, got.Shape) {
			return nil, fmt.Errorf("argument %d is %v, the parameter %v: %w", i, got, want, compute.ErrShape)
		}
		here[s] = args[i]
	}
	if b.uploads == nil {
		b.uploads = map[Value]Value{}
	}
	for i, s := range p.Host {
		if part.host[i] == nil {
			continue
		}
		there := Value{part, s}
		if _, done := b.uploads[there]; !done {
			b.uploads[there] = b.Upload(part.host[i], p.Values[s].Shape...)
		}
		here[s] = b.uploads[there].slot
	}
	for i, s := range p.Tensor {
		here[s] = b.Import(part.tensors[i]).slot
	}
	if b.err != nil {
		return nil, b.err
	}
	for i := range p.Steps {
		if err := b.includeStep(part, &p.Steps[i], here); err != nil {
			return nil, err
		}
	}
	out := make([]program.Slot, len(part.returns))
	for i, s := range part.returns {
		out[i] = here[s]
	}
	return out, nil
}

// includeStep records a step of another batch, whose values are here.
func (b *Batch) includeStep(part *Batch, s *program.Step, here []program.Slot) error {
	in := make([]program.Slot, len(s.In))
	for i, x := range s.In {
		in[i] = here[x]
	}
	a := s.Attr
	if a.Varies() {
		a.Vary = slices.Clone(a.Vary)
		for i, v := range a.Vary {
			if v > 0 {
				b.scalars = append(b.scalars, part.scalars[v-1])
				a.Vary[i] = len(b.scalars)
			}
		}
		b.program.Variables = len(b.scalars)
	}
	if s.Kernel != nil {
		out, err := b.program.ApplyKernel(s.Kernel, a, part.program.Values[s.Out[0]].Type, in...)
		if err != nil {
			return err
		}
		here[s.Out[0]] = out
		b.note()
		return nil
	}
	out, err := b.program.ApplyAll(s.Entry, a, in...)
	if err != nil {
		return err
	}
	for i := range out {
		here[s.Out[i]] = out[i]
	}
	b.note()
	return nil
}
