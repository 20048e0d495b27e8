package batch

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// A batch can be included in others: it takes parameters and returns the values named by Return.

// Parameter makes a value that the caller of [Batch.Include] provides. A batch with parameters cannot run by itself.
func (rec *Batch) Parameter(dtype compute.DType, shape ...int) Value {
	if rec.err != nil {
		return Value{}
	}
	t := program.Type{DType: dtype, Shape: slices.Clone(shape)}
	if err := t.Check(); err != nil {
		return rec.fail(fmt.Errorf("parameter: %w", err))
	}
	rec.host = append(rec.host, nil)
	s := rec.program.Add(t, program.FromHost)
	rec.parameters = append(rec.parameters, s)
	return Value{rec, s}
}

// Return names the values that [Batch.Include] returns. A later call replaces an earlier one.
func (rec *Batch) Return(values ...Value) {
	if slots, ok := rec.slots(values); ok {
		rec.returns = slots
	}
}

// Include records the steps of another batch, with args for its parameters in the order in which they were made, and returns
// the values of its [Batch.Return]. The other batch does not change and can be included again. Its uploads and imported
// tensors become those of this batch, once however often it is included. Arguments of other types than the parameters are
// errors ([compute.ErrShape], [compute.ErrDType]), as is a batch that itself reads or keeps values ([compute.ErrArgument]).
func (rec *Batch) Include(part *Batch, args ...Value) []Value {
	none := make([]Value, 0)
	if part != nil {
		none = make([]Value, len(part.returns))
	}
	slots, ok := rec.slots(args)
	if !ok {
		return none
	}
	out, err := rec.include(part, slots)
	if err != nil {
		rec.fail(fmt.Errorf("include: %w", err))
		return none
	}
	values := make([]Value, len(out))
	for i, s := range out {
		values[i] = Value{rec, s}
	}
	return values
}

// mostLooped bounds the steps that Loop records: all of them are in memory.
const mostLooped = 1 << 20

// Loop includes a batch n times, first with the given values, then with the values that it returned the time before. It
// returns those of the last time, or the given ones if n is 0. The body must return values of the types of its parameters.
// The compiled program has the steps of every repetition; repetitions share kernels. Random numbers that the body draws are
// the same in each repetition; for different ones, Include the body n times with different streams. More than 2²⁰ steps, or
// repetitions, are [compute.ErrTooLarge].
func (rec *Batch) Loop(n int, body *Batch, state ...Value) []Value {
	if n < 0 {
		rec.fail(fmt.Errorf("loop of %d repetitions: %w", n, compute.ErrArgument))
	}
	steps := 1
	if body != nil {
		steps = max(1, body.Len())
	}
	if n > mostLooped/steps {
		rec.fail(fmt.Errorf("loop of %d repetitions of %d steps, possible are %d steps: %w", n, steps, mostLooped, compute.ErrTooLarge))
	}
	for i := 0; i < n && rec.err == nil; i++ {
		next := rec.Include(body, state...)
		if rec.err == nil && len(next) != len(state) {
			rec.fail(fmt.Errorf("loop: the body takes %d values and returns %d: %w", len(state), len(next), compute.ErrArgument))
		}
		state = next
	}
	return state
}

func (rec *Batch) include(part *Batch, args []program.Slot) ([]program.Slot, error) {
	switch {
	case part == nil:
		return nil, fmt.Errorf("nil batch: %w", compute.ErrArgument)
	case part == rec:
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
		want, got := p.Values[s].Type, rec.program.Values[args[i]].Type
		if want.DType != got.DType {
			return nil, fmt.Errorf("argument %d is %v, the parameter %v: %w", i, got, want, compute.ErrDType)
		}
		if !program.EqualShape(want.Shape, got.Shape) {
			return nil, fmt.Errorf("argument %d is %v, the parameter %v: %w", i, got, want, compute.ErrShape)
		}
		here[s] = args[i]
	}
	if rec.uploads == nil {
		rec.uploads = map[Value]Value{}
	}
	for i, s := range p.Host {
		if part.host[i] == nil {
			continue
		}
		there := Value{part, s}
		if _, done := rec.uploads[there]; !done {
			rec.uploads[there] = rec.Upload(part.host[i], p.Values[s].Shape...)
		}
		here[s] = rec.uploads[there].slot
	}
	for i, s := range p.Tensor {
		here[s] = rec.Import(part.tensors[i]).slot
	}
	if rec.err != nil {
		return nil, rec.err
	}
	for i := range p.Steps {
		if err := rec.includeStep(part, &p.Steps[i], here); err != nil {
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
func (rec *Batch) includeStep(part *Batch, s *program.Step, here []program.Slot) error {
	in := make([]program.Slot, len(s.In))
	for i, x := range s.In {
		in[i] = here[x]
	}
	a := s.Attr
	if a.Varies() {
		a.Vary = slices.Clone(a.Vary)
		for i, v := range a.Vary {
			if v > 0 {
				rec.scalars = append(rec.scalars, part.scalars[v-1])
				a.Vary[i] = len(rec.scalars)
			}
		}
		rec.program.Variables = len(rec.scalars)
	}
	if s.Kernel != nil {
		out, err := rec.program.ApplyKernel(s.Kernel, a, part.program.Values[s.Out[0]].Type, in...)
		if err != nil {
			return err
		}
		here[s.Out[0]] = out
		rec.note()
		return nil
	}
	out, err := rec.program.ApplyAll(s.Entry, a, in...)
	if err != nil {
		return err
	}
	for i := range out {
		here[s.Out[i]] = out[i]
	}
	rec.note()
	return nil
}
