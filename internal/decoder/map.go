package decoder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// MappedStep is a step of a plan and the part of the network that it was recorded for.
type MappedStep struct {
	Part
	batch.Step
	Weights []string // names of tensors of the model among the operands
}

// Map compiles the network for n tokens at once, as a session with these options does, and lists the steps. The device must
// be one that knows its launches. No weights are loaded: the plan depends on their shapes. Errors are those of
// [batch.Plan.Steps] and of [Weights.NewSession].
func (m *Model) Map(ctx context.Context, device batch.Device, tokens int, l LoadOptions, o SessionOptions) ([]MappedStep, error) {
	if err := o.complete(m); err != nil {
		return nil, err
	}
	dtype, shape := m.cache(&o, 1, o.capacity())
	var caches []compute.Tensor
	for range 2 * m.Blocks {
		caches = append(caches, &shapeOnly{"", dtype, shape})
	}
	w := &Weights{Model: m, on: convert(m.tensors, func(t *tensor) weight {
		d, shape, format := l.form(t)
		return weight{name: t.name, tensor: &shapeOnly{t.name, d, shape}, format: format}
	})}
	p, err := w.compile(ctx, batch.New(device, batch.WithSources()), tokens, caches, &o)
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	defer p.Close()
	steps, err := p.Steps()
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	mapped := make([]MappedStep, len(steps))
	for i, s := range steps {
		mapped[i] = MappedStep{Part: p.partOf(s.Recorded), Step: s}
		for _, t := range s.Tensors {
			if t, ok := t.(*shapeOnly); ok && t.name != "" {
				mapped[i].Weights = append(mapped[i].Weights, t.name)
			}
		}
		for j, chain := range s.Sources { // who calls record does not matter
			s.Sources[j] = slices.DeleteFunc(chain, func(site string) bool { return !inGraph(site) })
		}
	}
	return mapped, nil
}

// inGraph reports lines of the files that record the network.
func inGraph(site string) bool {
	return strings.Contains(site, "/graph.go:") || strings.Contains(site, "/linear.go:") || strings.Contains(site, "/experts.go:")
}

// partOf is the part in which the first of some recorded steps was recorded.
func (p *plan) partOf(recorded []int) Part {
	if len(recorded) == 0 {
		return Part{-1, "added"}
	}
	first := slices.Min(recorded)
	part := Part{-1, ""}
	for _, m := range p.marks {
		if m.first <= first {
			part = m.Part
		}
	}
	return part
}

// shapeOnly is a tensor without data, for plans that are not run.
type shapeOnly struct {
	name  string
	dtype compute.DType
	shape []int
}

func (t *shapeOnly) Shape() []int         { return slices.Clone(t.shape) }
func (t *shapeOnly) DType() compute.DType { return t.dtype }
func (t *shapeOnly) Close() error         { return nil }
func (t *shapeOnly) ReadAsync(any) *compute.Future {
	return compute.Failed(fmt.Errorf("a tensor without data: %w", compute.ErrUnsupported))
}
