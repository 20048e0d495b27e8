package batch

import (
	"context"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/rewrite"
)

// DivergenceError is the first difference between two runs that should agree: on two devices, see [Compare], or one after the
// other on one device, see [WithDeterminismCheck]. It wraps [compute.ErrDiverged].
type DivergenceError struct {
	Step      int    // number of the step among those recorded, from 0; −1 for an input that is read
	Operation string // its name
	Operands  [][]int
	Shape     []int   // of the result that differs
	Site      string  // file:line of the call that recorded the step, where the batch has a guard
	Index     int     // of the first element that differs, in row-major order
	Position  []int   // the same as an index for each axis
	First     float64 // its value in the first run
	Second    float64 // … and in the second
}

// Error returns all fields in one line.
func (e *DivergenceError) Error() string {
	return fmt.Sprintf("step %d, %s %v: element %d %v of %v is %v, and %v the second time: %v", e.Step, e.Operation, e.Operands, e.Index,
		e.Position, e.Shape, e.First, e.Second, compute.ErrDiverged)
}

// Unwrap returns compute.ErrDiverged.
func (e *DivergenceError) Unwrap() error { return compute.ErrDiverged }

// Compare runs the steps of a batch on two devices, one of which may be the batch's, and returns a [*DivergenceError] for the
// first step, in the order of recording, whose results differ by more than the tolerances of its operation. The second device
// computes each step from the operands that the first has computed, so errors do not accumulate and the named step is the one
// at fault. Steps are not fused. All values are in memory at once, on the host too; imported tensors are copied and do not
// change. A batch with users' kernels, which belong to one device, fails with compute.ErrUnsupported.
func Compare(ctx context.Context, b *Batch, first, second Device) error {
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	if b.err != nil {
		return b.err
	}
	if !present(first) || !present(second) {
		return fmt.Errorf("compare: nil device: %w", compute.ErrArgument)
	}
	p, data, err := b.onHost(ctx)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	values, err := runAll(ctx, program.ExecutorOf(first), p, data)
	if err != nil {
		return fmt.Errorf("compare: first device: %w", err)
	}
	// On the second device every operand is an input, and results are values of their own.
	q := &program.Program{}
	given := map[program.Slot]program.Slot{}
	var host []any
	results := map[program.Slot]program.Slot{}
	for i := range p.Steps {
		s := p.Steps[i]
		s.In, s.Out = slices.Clone(s.In), slices.Clone(s.Out)
		for k, in := range s.In {
			if _, ok := given[in]; !ok {
				given[in] = q.Add(p.Values[in].Type, program.FromHost)
				host = append(host, values[in])
			}
			s.In[k] = given[in]
		}
		for k, out := range s.Out {
			s.Out[k] = q.Add(p.Values[out].Type, program.FromStep)
			results[out] = s.Out[k]
		}
		q.Steps = append(q.Steps, s)
	}
	q.Variables = p.Variables
	others, err := runAll(ctx, program.ExecutorOf(second), q, program.IO{Host: host, Scalars: data.Scalars})
	if err != nil {
		return fmt.Errorf("compare: second device: %w", err)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		in := make([]reference.Array, len(s.In))
		for k, slot := range s.In {
			in[k] = reference.ArrayOf(values[slot], p.Values[slot].Shape)
		}
		types := p.Types(s.Out)
		for k, out := range s.Out {
			x, y := reference.ArrayOf(values[out], types[k].Shape), reference.ArrayOf(others[results[out]], types[k].Shape)
			if at := reference.Disagreement(s.Entry, in, s.Attr.At(data.Scalars), types, k, x.Data, y.Data); at >= 0 {
				return b.divergence(p, out, at, x.Data[at], y.Data[at])
			}
		}
	}
	return nil
}

// onHost returns the recorded program without dead steps, with host memory in place of tensors.
func (rec *Batch) onHost(ctx context.Context) (*program.Program, program.IO, error) {
	io := program.IO{Host: slices.Clone(rec.host), Scalars: slices.Clone(rec.scalars)}
	p := rewrite.RemoveDead(rec.snapshot())
	for i := range p.Steps {
		if p.Steps[i].Kernel != nil {
			return nil, io, fmt.Errorf("step %s is a kernel of one device: %w", p.Steps[i].Name(), compute.ErrUnsupported)
		}
	}
	q := &program.Program{Values: p.Values, Steps: p.Steps, Host: slices.Concat(p.Host, p.Tensor), Variables: p.Variables}
	if len(p.Tensor) == 0 {
		return q, io, nil
	}
	if rec.device == nil {
		return nil, io, errNoDevice
	}
	q.Values = slices.Clone(p.Values)
	copying := &program.Program{}
	var copies program.IO
	for i, s := range p.Tensor {
		t := p.Values[s].Type
		q.Values[s].Source = program.FromHost
		copying.Read = append(copying.Read, copying.Add(t, program.FromTensor))
		copies.Tensors = append(copies.Tensors, rec.tensors[i])
		copies.Read = append(copies.Read, program.MakeSlice(t))
	}
	io.Host = append(io.Host, copies.Read...)
	return q, io, runOn(ctx, rec.device, copying, &copies)
}

// runAll runs a program and returns all its values.
func runAll(ctx context.Context, d program.Executor, p *program.Program, io program.IO) (map[program.Slot]any, error) {
	q, values := *p, map[program.Slot]any{}
	for i, s := range p.Host {
		values[s] = io.Host[i]
	}
	for i := range p.Steps {
		for _, s := range p.Steps[i].Out {
			values[s] = program.MakeSlice(p.Values[s].Type)
			q.Read, io.Read = append(q.Read, s), append(io.Read, values[s])
		}
	}
	return values, runOn(ctx, d, &q, &io)
}

// runOn compiles and runs a program once.
func runOn(ctx context.Context, d program.Executor, p *program.Program, io *program.IO) error {
	x, err := d.Compile(ctx, p)
	if err != nil {
		return err
	}
	defer x.Close()
	return x.Start(io).Await(ctx)
}

// divergence describes element at of a value of p that differs.
func (rec *Batch) divergence(p *program.Program, v program.Slot, at int, first, second float64) *DivergenceError {
	shape := p.Values[v].Shape
	e := &DivergenceError{Step: recordedStep(rec.program.Steps, v), Operation: "input", Shape: shape, Index: at, Position: position(at, shape),
		First: first, Second: second}
	if s := computes(p.Steps, v); s != nil {
		e.Operation, e.Operands, e.Site = s.Name(), shapes(p, s.In), rec.sites[e.Step]
	}
	return e
}

// recordedStep is the number of the step that computes a value, −1 if none does.
func recordedStep(steps []program.Step, v program.Slot) int {
	return slices.IndexFunc(steps, func(s program.Step) bool { return slices.Contains(s.Out, v) })
}

// position is an index in row-major order as one for each axis.
func position(i int, shape []int) []int {
	at := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d], i = i%shape[d], i/shape[d]
	}
	return at
}

func shapes(p *program.Program, slots []program.Slot) (all [][]int) {
	for _, t := range p.Types(slots) {
		all = append(all, t.Shape)
	}
	return all
}
