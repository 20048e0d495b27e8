package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Uploader is what a session needs of a device beyond batches.
type Uploader interface {
	UploadAsync(data any, shape ...int) (compute.Tensor, *compute.Future)
}

// Session is a model on a device.
type Session struct {
	program *Program
	device  batch.Device
	up      Uploader
	options []batch.Option
	most    int // traces

	mu      sync.Mutex
	closed  bool
	weights map[*host.Tensor]compute.Tensor
	derived map[derivation]*Value
	folded  map[*Node][]*Value // results that depend on the model only
	traces  map[string]*point
	recent  []string // keys of traces, the latest last
	steps   int
	bytes   int // of weights
}

type derivation struct {
	of   *host.Tensor
	what string
}

// NewSession makes a session that keeps at most so many traces.
func NewSession(p *Program, device batch.Device, up Uploader, most int, options ...batch.Option) *Session {
	return &Session{program: p, device: device, up: up, options: options, most: most, weights: map[*host.Tensor]compute.Tensor{},
		derived: map[derivation]*Value{}, folded: map[*Node][]*Value{}, traces: map[string]*point{}}
}

// weight is a tensor of the model on the device, where it stays.
func (s *Session) weight(ctx context.Context, t *host.Tensor) (compute.Tensor, error) {
	if x := s.weights[t]; x != nil {
		return x, nil
	}
	x, err := s.upload(ctx, t)
	if err == nil {
		s.weights[t] = x
		s.bytes += 4 * t.Len()
	}
	return x, err
}

func (s *Session) upload(ctx context.Context, t *host.Tensor) (compute.Tensor, error) {
	data, err := toDevice(t)
	if err != nil {
		return nil, err
	}
	x, f := s.up.UploadAsync(data, t.Shape...)
	if err := f.Await(ctx); err != nil {
		if x != nil {
			x.Close()
		}
		return nil, err
	}
	return x, nil
}

// derive is a tensor made of one of the model's, once.
func (s *Session) derive(v *Value, what string, f func(t *host.Tensor) *host.Tensor) *Value {
	key := derivation{v.t, what}
	if d := s.derived[key]; d != nil && v.model {
		return d
	}
	d := constant(f(v.t))
	if d.model = v.model; v.model {
		s.derived[key] = d
	}
	return d
}

// Run executes the model. The tensors are those of the model's inputs in order; nil ones take the model's default.
func (s *Session) Run(ctx context.Context, in []*host.Tensor) ([]*host.Tensor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("session: %w", compute.ErrClosed)
	}
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	var key strings.Builder
	for _, t := range in {
		if t == nil {
			key.WriteString("-;")
		} else {
			fmt.Fprintf(&key, "%d%v;", t.Kind, t.Shape)
		}
	}
	root := s.trace(key.String())
	r := &run{}
	out, err := root.replay(ctx, s.begin(r, in))
	r.close()
	if !errors.Is(err, errBranch) {
		return out, err
	}
	r = &run{}
	defer r.close()
	s.begin(r, in)
	w := &walk{s: s, ctx: ctx, run: r, at: root, slots: len(in)}
	return w.main(in)
}

// begin puts the inputs into their slots.
func (s *Session) begin(r *run, in []*host.Tensor) *run {
	for i, t := range in {
		r.set(i, t)
	}
	return r
}

// trace returns the trace for a key, and forgets the one that was not used longest if there are too many.
func (s *Session) trace(key string) *point {
	if i := slices.Index(s.recent, key); i >= 0 {
		s.recent = append(slices.Delete(s.recent, i, i+1), key)
	} else {
		s.recent = append(s.recent, key)
	}
	if p := s.traces[key]; p != nil {
		if p.paths() <= s.most {
			return p
		}
		p.close()
		delete(s.traces, key)
	}
	for len(s.traces) >= s.most {
		for i, k := range s.recent {
			if p := s.traces[k]; p != nil {
				p.close()
				delete(s.traces, k)
				s.recent = slices.Delete(s.recent, i, i+1)
				break
			}
		}
	}
	s.traces[key] = &point{}
	return s.traces[key]
}

// paths is the number of ends of a trace.
func (p *point) paths() int {
	if p.guard == nil {
		return 1
	}
	n := 0
	for _, b := range p.branches {
		n += b.paths()
	}
	return n
}

// main walks the whole model.
func (w *walk) main(in []*host.Tensor) ([]*host.Tensor, error) {
	g := w.s.program.Main
	values := make([]*Value, len(in))
	for i, t := range in {
		if t != nil {
			values[i] = &Value{kind: t.Kind, shape: t.Shape, t: t, slot: i, kept: -1}
		}
	}
	// The graph's scope is left when its outputs are known; the stage that computes them ends here.
	out, err := w.graph(g, values)
	if err != nil {
		return nil, err
	}
	flat := out
	for _, v := range out {
		if v != nil && v.t == nil && !v.sequence && !v.absent {
			if _, err := w.dev(v); err != nil {
				return nil, err
			}
		}
	}
	if err := w.flush(flat...); err != nil {
		return nil, err
	}
	if w.at.guard != nil || w.next != len(w.at.steps) {
		return nil, fmt.Errorf("a walk has left its trace")
	}
	w.at.done = true
	w.at.results = nil
	tensors := make([]*host.Tensor, len(out))
	for i, v := range out {
		switch {
		case v == nil, v.absent:
			w.at.results = append(w.at.results, result{})
			continue
		case v.sequence:
			return nil, fmt.Errorf("output %q is a sequence: %w", g.Outputs[i].Name, compute.ErrUnsupported)
		}
		w.at.results = append(w.at.results, result{v})
		tensors[i] = v.t
	}
	return tensors, nil
}

// Close gives back what the session holds on the device.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	for _, p := range s.traces {
		p.close()
	}
	for _, t := range s.weights {
		t.Close()
	}
	s.traces, s.weights = nil, nil
	return nil
}

// String lists what the traces do.
func (s *Session) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, k := range s.recent {
		if p := s.traces[k]; p != nil {
			fmt.Fprintf(&b, "inputs %s\n", k)
			p.describe(&b, "  ")
		}
	}
	return b.String()
}

// Memory returns the bytes of weights on the device, and the largest peak of a stage.
func (s *Session) Memory() (weights, peak int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.traces {
		peak = max(peak, p.peak())
	}
	return s.bytes, peak
}

func (p *point) peak() int {
	most := 0
	for _, s := range p.steps {
		if st, ok := s.(*stage); ok {
			most = max(most, st.plan.Memory().Peak)
		}
	}
	for _, b := range p.branches {
		most = max(most, b.peak())
	}
	return most
}

// Work is that of the stages of the trace that was used last, of all its branches together.
func (s *Session) Work() (sum batch.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) > 0 {
		s.traces[s.recent[len(s.recent)-1]].work(&sum)
	}
	return sum
}

func (p *point) work(sum *batch.Work) {
	for _, s := range p.steps {
		if st, ok := s.(*stage); ok {
			w := st.plan.Work()
			sum.Steps, sum.Flops, sum.Bytes = sum.Steps+w.Steps, sum.Flops+w.Flops, sum.Bytes+w.Bytes
		}
	}
	for _, b := range p.branches {
		b.work(sum)
	}
}

// Profiles are those of the stages of the trace that was used last, in order.
func (s *Session) Profiles() ([]*batch.Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) == 0 {
		return nil, fmt.Errorf("profile: %w", compute.ErrNotRun)
	}
	return s.traces[s.recent[len(s.recent)-1]].profiles(nil)
}

func (p *point) profiles(list []*batch.Profile) ([]*batch.Profile, error) {
	for _, s := range p.steps {
		if st, ok := s.(*stage); ok {
			x, err := st.plan.Profile()
			if errors.Is(err, compute.ErrNotRun) {
				continue // of a branch that was not taken
			}
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
	}
	for _, b := range p.branches {
		var err error
		if list, err = b.profiles(list); err != nil {
			return nil, err
		}
	}
	return list, nil
}
