package exec

import (
	"slices"

	"github.com/wavelane/wavelane/onnx/internal/host"
	"github.com/wavelane/wavelane/onnx/internal/symbolic"
)

// Shapes of results are inferred from those of inputs without running the model: dimensions are symbolic integers, and so are the elements of
// small tensors of integers, with which shapes are computed. What an operator that is not known here makes, or what depends on
// data, is not known.

// inferred is what is known of a value.
type inferred struct {
	ranked bool // the number of axes is known
	shape  []*symbolic.Int
	elems  []*symbolic.Int // of integers, if they are known
	t      *host.Tensor    // of the model
}

// mostElements bounds the tensors whose elements are followed.
const mostElements = 64

func ofShape(shape ...*symbolic.Int) *inferred { return &inferred{ranked: true, shape: shape} }

// ofElems is a tensor of one axis, or of none.
func ofElems(elems []*symbolic.Int, scalar bool) *inferred {
	v := ofShape()
	if !scalar {
		v.shape = []*symbolic.Int{symbolic.Of(int64(len(elems)))}
	}
	if len(elems) <= mostElements {
		v.elems = elems
	}
	return v
}

func ofTensor(t *host.Tensor) *inferred {
	v := ofShape(numbers(toInt64s(t.Shape))...)
	v.t = t
	if t.Len() <= mostElements && t.Kind.IsInteger() {
		v.elems = numbers(t.Ints())
	}
	return v
}

func numbers(n []int64) []*symbolic.Int {
	out := make([]*symbolic.Int, len(n))
	for i, x := range n {
		out[i] = symbolic.Of(x)
	}
	return out
}

func toInt64s(n []int) []int64 {
	out := make([]int64, len(n))
	for i, x := range n {
		out[i] = int64(x)
	}
	return out
}

// numeric returns elements as numbers, if all of them are.
func (v *inferred) numeric() ([]int64, bool) {
	if v == nil || v.elems == nil {
		return nil, false
	}
	out := make([]int64, len(v.elems))
	for i, e := range v.elems {
		n, ok := e.Number()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// inference is a graph whose values are inferred.
type inference struct {
	names map[string]*inferred
	outer *inference
	nodes *int // so far, those in graphs of nodes and functions included
}

func (f *inference) value(name string) *inferred {
	for g := f; g != nil; g = g.outer {
		if v, ok := g.names[name]; ok {
			return v
		}
	}
	return nil
}

// Infer returns the shapes of the model's outputs, nil where the number of axes is not known, and nil dimensions. Inputs are the shapes of
// the model's, likewise.
func Infer(p *Program, inputs [][]*symbolic.Int) [][]*symbolic.Int {
	in := make([]*inferred, len(inputs))
	for i, s := range inputs {
		if s != nil {
			in[i] = ofShape(s...)
		}
	}
	n := 0
	out := (&inference{nodes: &n}).graph(p.Main, in, nil)
	shapes := make([][]*symbolic.Int, len(out))
	for i, v := range out {
		if v != nil && v.ranked {
			shapes[i] = append([]*symbolic.Int{}, v.shape...)
		}
	}
	return shapes
}

func (f *inference) graph(g *Graph, in []*inferred, outer *inference) []*inferred {
	own := &inference{names: map[string]*inferred{}, outer: outer, nodes: f.nodes}
	for name, w := range g.Weights {
		own.names[name] = ofTensor(w.t)
	}
	for i, x := range g.Inputs {
		if i < len(in) && in[i] != nil {
			if w := g.Weights[x.Name]; w == nil { // a default may be replaced, by a tensor of the same shape
				own.names[x.Name] = in[i]
			} else {
				own.names[x.Name] = ofShape(in[i].shape...)
			}
		}
	}
	for _, n := range g.Nodes {
		if *f.nodes++; *f.nodes > mostNodes {
			break
		}
		for i, v := range own.node(n) {
			if i < len(n.Outputs) && n.Outputs[i] != "" {
				own.names[n.Outputs[i]] = v
			}
		}
	}
	out := make([]*inferred, len(g.Outputs))
	for i, o := range g.Outputs {
		out[i] = own.value(o.Name)
	}
	return out
}

// node infers the results of a node; missing ones are not known.
func (f *inference) node(n *Node) []*inferred {
	c := &inferring{Node: n, f: f}
	for _, name := range n.Inputs {
		c.in = append(c.in, f.value(name))
	}
	switch {
	case n.fn != nil:
		return f.graph(n.fn.graph, c.in, nil)
	case n.op == nil:
		return nil
	case n.Domain == "" && n.Op == "If":
		return c.branches()
	}
	if n.Domain == "" || n.Domain == "com.microsoft" {
		if rule := inferenceRules()[n.Op]; rule != nil {
			return rule(c)
		}
	}
	return nil
}

// inferring is a node whose results are inferred.
type inferring struct {
	*Node
	f  *inference
	in []*inferred
}

func (c *inferring) arg(i int) *inferred {
	if i < len(c.in) {
		return c.in[i]
	}
	return nil
}

// ranked is operand i, if its number of axes is known.
func (c *inferring) ranked(i int) *inferred {
	if v := c.arg(i); v != nil && v.ranked {
		return v
	}
	return nil
}

func (c *inferring) attributes() *call { return &call{Node: c.Node} }

// list is an operand of integers, or the attribute that old operator sets have instead; given says whether it is there at all.
func (c *inferring) list(i int, attribute string) (n []int64, given, ok bool) {
	if i < len(c.Inputs) && c.Inputs[i] != "" {
		n, ok = c.arg(i).numeric()
		return n, true, ok
	}
	if a := c.attributes(); attribute != "" && a.has(attribute) {
		return a.ints(attribute), true, true
	}
	return nil, false, true
}

// branches is what both graphs of If agree on.
func (c *inferring) branches() []*inferred {
	yes, no := c.graphs["then_branch"], c.graphs["else_branch"]
	if yes == nil || no == nil {
		return nil
	}
	a, b := c.f.graph(yes, nil, c.f), c.f.graph(no, nil, c.f)
	out := make([]*inferred, min(len(a), len(b)))
	for i := range out {
		if a[i] == nil || b[i] == nil || !a[i].ranked || !b[i].ranked || len(a[i].shape) != len(b[i].shape) {
			continue
		}
		out[i] = ofShape(slices.Clone(a[i].shape)...)
		for d := range out[i].shape {
			if !a[i].shape[d].Same(b[i].shape[d]) {
				out[i].shape[d] = nil
			}
		}
	}
	return out
}

// broadcastDims is NumPy's rule. Where two dimensions differ and neither is known to be 1, one of more than 1 counts.
func broadcastDims(shapes ...[]*symbolic.Int) []*symbolic.Int {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := slices.Repeat([]*symbolic.Int{symbolic.Of(1)}, rank)
	for _, s := range shapes {
		for i, d := range s {
			at := rank - len(s) + i
			have := out[at]
			n, number := d.Number()
			m, haveNumber := have.Number()
			switch {
			case have.Is(1):
				out[at] = d
			case d.Is(1), have.Same(d), haveNumber && m > 1:
			case number && n > 1:
				out[at] = d
			default:
				out[at] = nil
			}
		}
	}
	return out
}

// broadcast is the shape of an elementwise result.
func (c *inferring) broadcast() *inferred {
	var shapes [][]*symbolic.Int
	for i := range c.in {
		v := c.ranked(i)
		if v == nil {
			return nil
		}
		shapes = append(shapes, v.shape)
	}
	return ofShape(broadcastDims(shapes...)...)
}

// volume multiplies dimensions.
func volume(dims []*symbolic.Int) *symbolic.Int {
	p := symbolic.Of(1)
	for _, d := range dims {
		p = p.Times(d)
	}
	return p
}
