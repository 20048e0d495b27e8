package exec

import (
	"context"
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// A trace is what a walk has done, as steps that a later call repeats. Where the walk depended on data, it has a guard.

// point is a sequence of steps, after which comes a guard with a point for each outcome, or the end.
type point struct {
	steps    []step
	guard    *guard
	branches map[string]*point
	results  []result // at the end
	done     bool
}

// step is a stage of the device or an operator on the host.
type step interface {
	run(ctx context.Context, r *run) error
	close()
}

// guard is a property of a host value that the walk depended on.
type guard struct {
	slot  int
	value bool // its elements, else its shape
}

func (g *guard) key(r *run) string {
	t := r.slots[g.slot]
	if !g.value {
		return fmt.Sprint(t.Shape)
	}
	return fmt.Sprint(t.Shape, t.Data)
}

// result is an output of the model: known, or in a slot.
type result struct {
	value *Value
}

// run is the state of one call.
type run struct {
	slots []*host.Tensor
	kept  []compute.Tensor
}

func (r *run) set(slot int, t *host.Tensor) {
	for len(r.slots) <= slot {
		r.slots = append(r.slots, nil)
	}
	r.slots[slot] = t
}

// close gives the tensors between stages back.
func (r *run) close() {
	for _, t := range r.kept {
		if t != nil {
			t.Close()
		}
	}
	r.kept = nil
}

// hostStep runs an operator on the host.
type hostStep struct {
	name string
	f    hostFunc
	in   []*Value // known, or in slots
	out  []int    // slots
}

// hostFunc computes an operator's results on the host. Absent operands are nil.
type hostFunc func(in []*host.Tensor) ([]*host.Tensor, error)

func (s *hostStep) run(_ context.Context, r *run) error {
	in := make([]*host.Tensor, len(s.in))
	for i, v := range s.in {
		switch {
		case v == nil:
		case v.known:
			in[i] = v.t
		default:
			in[i] = r.slots[v.slot]
		}
	}
	out, err := s.f(in)
	if err == nil && len(out) != len(s.out) {
		err = fmt.Errorf("%d results instead of %d: %w", len(out), len(s.out), compute.ErrArgument)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for i, slot := range s.out {
		r.set(slot, out[i])
	}
	return nil
}

func (s *hostStep) close() {}

// stage is a batch, compiled.
type stage struct {
	plan    *batch.Plan
	uploads []upload
	imports []imported
	reads   []read
	keeps   []keep
	own     []compute.Tensor // constants of this stage
	steps   int
}

type upload struct {
	slot  int
	value batch.Value
	bytes bool // as they are, else as devices represent them
}

type imported struct {
	kept  int
	value batch.Value
}

type read struct {
	slot  int
	kind  host.Kind
	shape []int
	from  *batch.Result
}

type keep struct {
	kept int
	from *batch.Kept
}

func (s *stage) run(ctx context.Context, r *run) error {
	for _, u := range s.uploads {
		data, err := r.slots[u.slot].Data, error(nil)
		if !u.bytes {
			data, err = toDevice(r.slots[u.slot])
		}
		if err == nil {
			err = s.plan.SetInput(u.value, data)
		}
		if err != nil {
			return err
		}
	}
	for _, i := range s.imports {
		if err := s.plan.SetTensor(i.value, r.kept[i.kept]); err != nil {
			return err
		}
	}
	if err := runPlan(ctx, s.plan); err != nil {
		return err
	}
	for _, k := range s.keeps {
		for len(r.kept) <= k.kept {
			r.kept = append(r.kept, nil)
		}
		r.kept[k.kept] = k.from.Tensor()
	}
	for _, x := range s.reads {
		data, err := x.from.Data()
		if err != nil {
			return err
		}
		r.set(x.slot, fromDevice(x.kind, x.shape, data))
	}
	return nil
}

func (s *stage) close() {
	if s.plan != nil {
		s.plan.Close()
	}
	for _, t := range s.own {
		t.Close()
	}
}

func (p *point) close() {
	for _, s := range p.steps {
		s.close()
	}
	for _, b := range p.branches {
		b.close()
	}
}

// replay runs a trace. It returns errBranch where the trace does not go on.
func (p *point) replay(ctx context.Context, r *run) ([]*host.Tensor, error) {
	for {
		for _, s := range p.steps {
			if err := s.run(ctx, r); err != nil {
				return nil, err
			}
		}
		switch {
		case p.guard != nil:
			next := p.branches[p.guard.key(r)]
			if next == nil {
				return nil, errBranch
			}
			p = next
		case p.done:
			out := make([]*host.Tensor, len(p.results))
			for i, x := range p.results {
				switch {
				case x.value == nil:
				case x.value.known:
					out[i] = x.value.t
				default:
					out[i] = r.slots[x.value.slot]
				}
			}
			return out, nil
		default:
			return nil, errBranch
		}
	}
}

// describe lists what a trace does.
func (p *point) describe(w *strings.Builder, indent string) {
	for _, s := range p.steps {
		switch s := s.(type) {
		case *stage:
			fmt.Fprintf(w, "%sdevice:\n", indent)
			for line := range strings.Lines(s.plan.String()) {
				fmt.Fprintf(w, "%s  %s", indent, line)
			}
			fmt.Fprintln(w)
		case *hostStep:
			fmt.Fprintf(w, "%shost: %s\n", indent, s.name)
		}
	}
	for _, b := range p.branches {
		b.describe(w, indent+"  ")
	}
}
