package exec

import (
	"context"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// walk executes the model once and writes the trace.
type walk struct {
	s   *Session
	ctx context.Context
	run *run

	at   *point // where the trace is
	next int    // the step there that comes next: steps before were run by an earlier walk

	b     *batch.Batch // the current stage, nil if nothing is recorded
	st    *stage
	devs  map[*Value]batch.Value // what values are in the current stage
	slots int
	kept  int

	scopes []*scope
	pinned []*Value // device values that operators hold
	depth  int
	loops  int
}

// scope are the names of a graph while it is walked.
type scope struct {
	g     *Graph
	names map[string]*Value
	left  map[string]int // uses to come
}

// emit runs a step and adds it to the trace, or runs the one that an earlier walk has left there.
func (w *walk) emit(make func() (step, error)) error {
	if w.next == len(w.at.steps) {
		if w.at.guard != nil || w.at.done {
			return fmt.Errorf("a walk has left its trace")
		}
		s, err := make()
		if err != nil {
			return err
		}
		w.at.steps = append(w.at.steps, s)
		w.s.steps++
	}
	s := w.at.steps[w.next]
	w.next++
	return s.run(w.ctx, w.run)
}

// guard makes the trace depend on a host value.
func (w *walk) guard(v *Value, value bool) error {
	if v.known {
		return nil
	}
	g := guard{v.slot, value}
	if w.at.guard == nil {
		if w.next != len(w.at.steps) || w.at.done {
			return fmt.Errorf("a walk has left its trace")
		}
		w.at.guard = &g
		w.at.branches = map[string]*point{}
	}
	key := w.at.guard.key(w.run)
	next := w.at.branches[key]
	if next == nil {
		next = &point{}
		w.at.branches[key] = next
	}
	w.at, w.next = next, 0
	return nil
}

// rec is the batch of the current stage.
func (w *walk) rec() *batch.Batch {
	if w.b == nil {
		w.b = batch.New(w.s.device, w.s.options...)
		w.st, w.devs = &stage{}, map[*Value]batch.Value{}
	}
	return w.b
}

// device makes a value of what was recorded.
func (w *walk) device(k host.Kind, x batch.Value) *Value {
	v := &Value{kind: k, shape: w.rec().Shape(x), kept: -1, slot: -1}
	w.devs[v] = x
	return v
}

// dev is a value in the current stage.
func (w *walk) dev(v *Value) (batch.Value, error) {
	if v.sequence || v.absent {
		return batch.Value{}, fmt.Errorf("%v is no tensor: %w", v, compute.ErrDType)
	}
	b := w.rec()
	if x, ok := w.devs[v]; ok {
		return x, nil
	}
	var x batch.Value
	switch {
	case v.conv != nil:
		var err error
		if x, err = w.record(v.conv); err != nil {
			return x, err
		}
		v.conv = nil
	case v.t != nil && v.known:
		var err error
		if x, err = w.constantOnDevice(v); err != nil {
			return x, err
		}
	case v.t != nil:
		data, err := toDevice(v.t)
		if err != nil {
			return x, err
		}
		x = b.Upload(data, v.shape...)
		w.st.uploads = append(w.st.uploads, upload{v.slot, x, false})
	case v.kept >= 0:
		x = b.Import(w.run.kept[v.kept])
		w.st.imports = append(w.st.imports, imported{v.kept, x})
	default:
		return x, fmt.Errorf("a value of an earlier stage was not kept")
	}
	w.devs[v] = x
	return x, nil
}

// bytes uploads data of a call, of type Uint8, as they are.
func (w *walk) bytes(v *Value) batch.Value {
	x := w.rec().Upload(v.t.Data, v.shape...)
	w.st.uploads = append(w.st.uploads, upload{v.slot, x, true})
	return x
}

// constantOnDevice brings a known value to the device: a number as a fill, what the model has as a tensor of the session, anything
// else as a tensor of the stage.
func (w *walk) constantOnDevice(v *Value) (batch.Value, error) {
	b := w.rec()
	rep, ok := representation(v.kind)
	if !ok {
		return batch.Value{}, fmt.Errorf("devices have no elements of type %v: %w", v.kind, compute.ErrDType)
	}
	if rep == compute.Float32 && v.t.Len() == 1 {
		return b.Fill(v.t.F32s()[0], v.shape...), nil
	}
	if v.t.Len() == 0 {
		data, err := toDevice(v.t)
		if err != nil {
			return batch.Value{}, err
		}
		return b.Upload(data, v.shape...), nil
	}
	if v.model {
		t, err := w.s.weight(w.ctx, v.t)
		if err != nil {
			return batch.Value{}, err
		}
		return b.Import(t), nil
	}
	t, err := w.s.upload(w.ctx, v.t)
	if err != nil {
		return batch.Value{}, err
	}
	w.st.own = append(w.st.own, t)
	return b.Import(t), nil
}

// host is a value on the host. It ends the current stage if that computes the value.
func (w *walk) host(v *Value) (*host.Tensor, error) {
	if v.sequence || v.absent {
		return nil, fmt.Errorf("%v is no tensor: %w", v, compute.ErrDType)
	}
	if v.t != nil {
		return v.t, nil
	}
	if _, err := w.dev(v); err != nil { // it may be kept from an earlier stage
		return nil, err
	}
	if err := w.flush(v); err != nil {
		return nil, err
	}
	return v.t, nil
}

// constant is a value whose elements the walk depends on.
func (w *walk) constant(v *Value) (*host.Tensor, error) {
	t, err := w.host(v)
	if err == nil {
		err = w.guard(v, true)
	}
	return t, err
}

// flush ends the current stage: it reads values, and keeps those that are still needed.
func (w *walk) flush(want ...*Value) error {
	if w.b == nil {
		return nil
	}
	b, st := w.b, w.st
	for _, v := range w.live() {
		if v.conv != nil { // its operands end with the stage
			if _, err := w.dev(v); err != nil {
				return err
			}
		}
	}
	if err := b.Err(); err != nil {
		return err
	}
	done := map[*Value]bool{}
	var readers []*Value
	for _, v := range want {
		if v == nil || v.t != nil || v.sequence || v.absent || done[v] {
			continue
		}
		x, err := w.dev(v)
		if err != nil {
			return err
		}
		done[v] = true
		readers = append(readers, v)
		st.reads = append(st.reads, read{slot: w.slots, kind: v.kind, shape: v.shape, from: b.Read(x)})
		v.slot = w.slots
		w.slots++
	}
	for _, v := range w.live() {
		if x, ok := w.devs[v]; ok && v.t == nil && v.kept < 0 && !done[v] {
			st.keeps = append(st.keeps, keep{w.kept, b.Keep(x)})
			v.kept = w.kept
			w.kept++
		}
	}
	err := w.emit(func() (step, error) {
		p, err := b.Compile(w.ctx)
		if err != nil {
			return nil, err
		}
		st.plan, st.steps = p, b.Len()
		return st, nil
	})
	if err == nil {
		err = b.Err()
	}
	if st.plan == nil { // a step of an earlier walk was run, or none
		st.close()
	}
	w.b, w.st, w.devs = nil, nil, nil
	if err != nil {
		return err
	}
	for _, v := range readers {
		v.t = w.run.slots[v.slot]
	}
	return nil
}

// live lists the device values that are still needed, each once, in an order that does not change from walk to walk.
func (w *walk) live() []*Value {
	seen := map[*Value]bool{}
	var out []*Value
	var add func(v *Value)
	add = func(v *Value) {
		if v == nil || seen[v] {
			return
		}
		seen[v] = true
		for _, i := range v.items {
			add(i)
		}
		if !v.sequence && v.t == nil && !v.absent {
			out = append(out, v)
		}
	}
	for _, s := range w.scopes {
		var names []string
		for n, v := range s.names {
			if s.left[n] > 0 && v != nil {
				names = append(names, n)
			}
		}
		slices.Sort(names)
		for _, n := range names {
			add(s.names[n])
		}
	}
	for _, v := range w.pinned {
		add(v)
	}
	return out
}

// pin keeps values alive until the returned function is called.
func (w *walk) pin(values ...*Value) (unpin func()) {
	n := len(w.pinned)
	w.pinned = append(w.pinned, values...)
	return func() { w.pinned = w.pinned[:n] }
}

// fresh makes a value of a slot that a step has filled.
func (w *walk) fresh(slot int) *Value {
	t := w.run.slots[slot]
	return &Value{kind: t.Kind, shape: t.Shape, t: t, slot: slot, kept: -1}
}

// onHost runs an operator on the host: now, if its operands are known, else as a step whose results are guarded by their shapes.
// Results that depend on something else than operands, such as random numbers, are not known.
func (w *walk) onHost(name string, results int, pure bool, f hostFunc, in ...*Value) ([]*Value, error) {
	known, model := pure, true
	tensors := make([]*host.Tensor, len(in))
	if missing := slices.DeleteFunc(slices.Clone(in), func(v *Value) bool { return v == nil || v.t != nil }); len(missing) > 0 {
		for _, v := range missing {
			if v.sequence || v.absent {
				return nil, fmt.Errorf("%v is no tensor: %w", v, compute.ErrDType)
			}
			if _, err := w.dev(v); err != nil {
				return nil, err
			}
		}
		if err := w.flush(missing...); err != nil {
			return nil, err
		}
	}
	for i, v := range in {
		if v == nil {
			continue
		}
		tensors[i] = v.t
		known, model = known && v.known, model && v.model
	}
	out := make([]*Value, results)
	if known {
		ts, err := f(tensors)
		if err != nil {
			return nil, err
		}
		if len(ts) != results {
			return nil, fmt.Errorf("%d results instead of %d: %w", len(ts), results, compute.ErrArgument)
		}
		for i, t := range ts {
			out[i] = constant(t)
			out[i].model = model
		}
		return out, nil
	}
	s := &hostStep{name: name, f: f, in: in}
	for range results {
		s.out = append(s.out, w.slots)
		w.slots++
	}
	if err := w.emit(func() (step, error) { return s, nil }); err != nil {
		return nil, err
	}
	for i, slot := range s.out {
		out[i] = w.fresh(slot)
		if err := w.guard(out[i], false); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lookup finds a name in the scopes, from the innermost outward.
func (w *walk) lookup(name string) (*Value, *scope) {
	for i := len(w.scopes) - 1; i >= 0; i-- {
		if v, ok := w.scopes[i].names[name]; ok {
			return v, w.scopes[i]
		}
	}
	return nil, nil
}

// mostDepth bounds graphs in graphs; mostNodes the nodes of one call, those of loops counted each time.
const (
	mostDepth = 200
	mostNodes = 1 << 18
)

// graph walks a graph. Operands that are nil take the graph's own default, or are absent.
func (w *walk) graph(g *Graph, in []*Value) ([]*Value, error) {
	if w.depth++; w.depth > mostDepth {
		return nil, fmt.Errorf("graphs are nested more than %d deep: %w", mostDepth, compute.ErrTooLarge)
	}
	defer func() { w.depth-- }()
	s := &scope{g: g, names: map[string]*Value{}, left: map[string]int{}}
	for n, uses := range g.values {
		s.left[n] = uses
	}
	for n, v := range g.Weights {
		s.names[n] = v
	}
	for i, x := range g.Inputs {
		if i < len(in) && in[i] != nil {
			s.names[x.Name] = in[i]
		} else if s.names[x.Name] == nil {
			s.names[x.Name] = nil
		}
	}
	w.scopes = append(w.scopes, s)
	defer func() { w.scopes = w.scopes[:len(w.scopes)-1] }()
	for _, n := range g.Nodes {
		if err := w.node(s, n); err != nil {
			return nil, fmt.Errorf("%v: %w", n.Node, err)
		}
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
	}
	out := make([]*Value, len(g.Outputs))
	for i, o := range g.Outputs {
		out[i], _ = w.lookup(o.Name)
	}
	return out, nil
}

func (w *walk) node(s *scope, n *Node) error {
	if w.loops++; w.loops > mostNodes {
		return fmt.Errorf("more than %d nodes in one call: %w", mostNodes, compute.ErrTooLarge)
	}
	c := &call{walk: w, Node: n, in: make([]*Value, len(n.Inputs))}
	for i, name := range n.Inputs {
		if name != "" {
			c.in[i], _ = w.lookup(name)
		}
	}
	out, err := w.results(c)
	if err != nil {
		return err
	}
	if w.b != nil {
		if err := w.b.Err(); err != nil {
			return err
		}
	}
	if len(out) < len(n.Outputs) {
		return fmt.Errorf("%d results instead of %d: %w", len(out), len(n.Outputs), compute.ErrArgument)
	}
	for i, name := range n.Outputs {
		if name != "" {
			s.names[name] = out[i]
		}
	}
	used := func(names []string) {
		for _, name := range names {
			if _, ok := s.left[name]; ok {
				s.left[name]--
			}
		}
	}
	used(n.Inputs)
	used(n.outer)
	return nil
}

// results computes a node.
func (w *walk) results(c *call) ([]*Value, error) {
	n := c.Node
	if n.instead != nil {
		if out, err := n.instead(w); out != nil || err != nil {
			return out, err
		}
	}
	if n.fn != nil {
		defer w.pin(c.in...)()
		outer := w.scopes
		w.scopes = nil // a function sees its operands only
		defer func() { w.scopes = outer }()
		for _, s := range outer { // but what is around it is still needed
			for name, v := range s.names {
				if s.left[name] > 0 && v != nil && v.t == nil {
					w.pinned = append(w.pinned, v)
				}
			}
		}
		return w.graph(n.fn.graph, c.in)
	}
	if out := w.s.folded[n]; out != nil {
		return out, nil
	}
	out, err := n.op.run(c)
	if err != nil {
		return nil, err
	}
	if len(n.graphs) > 0 {
		return out, nil // the nodes inside have done what follows
	}
	model := !n.op.impure && len(out) > 0
	for _, v := range c.in {
		model = model && (v == nil || v.model)
	}
	for i, v := range out {
		if v != nil && v.model && !model && !slices.Contains(c.in, v) { // an operand that is not the model's decided what it is
			own := *v
			own.model = false
			out[i] = &own
		}
		model = model && v != nil && v.model && v.known
	}
	if model {
		w.s.folded[n] = out
	}
	return out, nil
}
