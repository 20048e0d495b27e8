package batch

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// Plan is a compiled batch. It replays with the slices and tensors that the batch was recorded with, whose contents may
// have changed, or with others set since.
type Plan struct {
	exec    op.Executable
	program *op.Program
	steps   []op.Step // as recorded

	mu      sync.Mutex // guards the data of runs
	batch   *Batch     // whose values name inputs
	host    []any
	tensors []compute.Tensor
	scalars []float32
	results []*Result
	kept    []*Kept
	closed  bool
}

// Compile prepares the batch to be run again and again. The batch may be recorded further afterwards; the plan does not change.
func (b *Batch) Compile(ctx context.Context) (*Plan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := b.Program()
	if err != nil {
		return nil, err
	}
	exec, err := b.device.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("batch of %d steps: %w", len(p.Steps), err)
	}
	for _, r := range b.results {
		if r.data == nil {
			r.data = op.MakeSlice(r.typ)
		}
	}
	return &Plan{exec: exec, program: p, steps: slices.Clone(b.program.Steps), batch: b, host: slices.Clone(b.host),
		tensors: slices.Clone(b.tensors), scalars: slices.Clone(b.scalars), results: slices.Clone(b.results), kept: slices.Clone(b.kept)}, nil
}

// Program returns what a device would be given to compile, for devices that look at programs in other ways, such as
// gpu.Device.Tune.
func (b *Batch) Program() (*op.Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	c := compiler{device: b.device, options: b.options}
	return c.rewrite(b.snapshot())
}

func (b *Batch) snapshot() *op.Program {
	p := &b.program
	return &op.Program{Values: slices.Clone(p.Values), Steps: slices.Clone(p.Steps), Host: slices.Clone(p.Host),
		Tensor: slices.Clone(p.Tensor), Read: slices.Clone(p.Read), Keep: slices.Clone(p.Keep), Variables: p.Variables}
}

// SetInput replaces the slice of a value made by Upload, from the next run on. Its type and length must be the same.
func (p *Plan) SetInput(v Value, data any) error {
	i, err := p.input(v, p.program.Host)
	if err != nil {
		return err
	}
	if err := op.CheckSlice(data, p.program.Values[v.slot].Type); err != nil {
		return fmt.Errorf("set input: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host = slices.Clone(p.host) // a run in flight may still read the old one
	p.host[i] = data
	return nil
}

// SetTensor replaces the tensor of a value made by Import, from the next run on. Its type and shape must be the same.
func (p *Plan) SetTensor(v Value, t compute.Tensor) error {
	i, err := p.input(v, p.program.Tensor)
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("set tensor: nil: %w", compute.ErrArgument)
	}
	if want := p.program.Values[v.slot].Type; t.DType() != want.DType || !op.EqualShape(t.Shape(), want.Shape) {
		return fmt.Errorf("set tensor: %v for %v: %w", op.Type{DType: t.DType(), Shape: t.Shape()}, want, compute.ErrShape)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tensors = slices.Clone(p.tensors)
	p.tensors[i] = t
	return nil
}

func (p *Plan) input(v Value, slots []op.Slot) (int, error) {
	if v.batch != p.batch {
		return 0, fmt.Errorf("value of another batch: %w", compute.ErrForeignTensor)
	}
	for i, s := range slots {
		if s == v.slot {
			return i, nil
		}
	}
	return 0, fmt.Errorf("value is no such input of this plan: %w", compute.ErrArgument)
}

// Start begins a run and returns at once. When the future is done, results hold the run's data. Start the next run after
// that: results belong to the plan.
func (p *Plan) Start() *compute.Future {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return compute.Failed(fmt.Errorf("plan: %w", compute.ErrClosed))
	}
	io := &op.IO{Host: p.host, Tensors: p.tensors, Scalars: p.scalars, Read: make([]any, len(p.results)), Keep: make([]compute.Tensor, len(p.kept))}
	for i, r := range p.results {
		io.Read[i] = r.data
	}
	f := p.exec.Start(io)
	for _, r := range p.results {
		r.run = f
	}
	for i, k := range p.kept {
		k.tensor = io.Keep[i]
	}
	return f
}

// Close releases what the plan holds on its device. It is idempotent; a run in flight finishes.
func (p *Plan) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.exec.Close()
}

// Start compiles and begins the batch and returns at once. When the future is done, results hold their data.
func (b *Batch) Start() *compute.Future {
	p, err := b.Compile(context.Background())
	if err != nil {
		return compute.Failed(err)
	}
	f := p.Start()
	p.Close() // the run in flight finishes
	return f
}
