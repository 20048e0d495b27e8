package batch

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Vary marks the step that computes v: its scalars, such as the factor of Scale, may change between the runs of a plan, see
// [Plan.SetScalar]. It returns v. The step is not folded into a constant; it may still be fused with others. A number that
// many steps use is best recorded once: rate := b.Vary(b.Scalar(0.01)). Positions and lengths are operands and need no mark:
// they are inputs, see [Plan.SetInput].
func (rec *Batch) Vary(v Value) Value {
	slots, ok := rec.slots([]Value{v})
	if !ok {
		return Value{}
	}
	s := computes(rec.program.Steps, slots[0])
	if s == nil || len(s.Attr.Scalars) == 0 {
		return rec.fail(fmt.Errorf("vary: a value of type %v whose step has no scalars: %w", rec.program.Values[v.slot].Type,
			compute.ErrArgument))
	}
	if s.Attr.Varies() {
		return v
	}
	s.Attr.Vary = make([]int, len(s.Attr.Scalars))
	for i, x := range s.Attr.Scalars {
		rec.scalars = append(rec.scalars, x)
		s.Attr.Vary[i] = len(rec.scalars)
	}
	rec.program.Variables = len(rec.scalars)
	return v
}

// computes returns the step that computes a value.
func computes(steps []program.Step, v program.Slot) *program.Step {
	for i := range steps {
		if slices.Contains(steps[i].Out, v) {
			return &steps[i]
		}
	}
	return nil
}

// SetScalar replaces scalar i of the step that computes v, in the order of the arguments of its method, from the next run on.
// The step must have been marked with [Batch.Vary] before the plan was compiled.
func (p *Plan) SetScalar(v Value, i int, x float32) error {
	if v.batch == nil || v.batch != p.batch {
		return fmt.Errorf("set scalar: value of another batch: %w", compute.ErrForeignTensor)
	}
	s := computes(p.recorded.Steps, v.slot)
	if s == nil || !s.Attr.Varies() {
		return fmt.Errorf("set scalar: not marked with Vary before the plan was compiled: %w", compute.ErrArgument)
	}
	if i < 0 || i >= len(s.Attr.Scalars) {
		return fmt.Errorf("set scalar %d of the %d of %s: %w", i, len(s.Attr.Scalars), s.Entry.Name, compute.ErrArgument)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := &p.io.Scalars[s.Attr.Vary[i]-1]
	old := *at
	*at = x
	if _, err := s.Entry.Check(p.recorded.Types(s.In), s.Attr.At(p.io.Scalars)); err != nil {
		*at = old
		return fmt.Errorf("set scalar: %w", err)
	}
	return nil
}
