package exec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Graph is a graph whose nodes have their operators and are in an order in which each is computed after its operands.
type Graph struct {
	Nodes   []*Node
	Inputs  []format.Value
	Outputs []format.Value
	Weights map[string]*Value
	values  map[string]int // uses of each name by nodes and outputs, those in graphs inside of nodes included
}

// Node is a node with its operator.
type Node struct {
	*format.Node
	Version int64 // of the operator set
	op      *operator
	fn      *function
	instead func(w *walk) ([]*Value, error) // tried before fn, may return nil; a node that was made of others has it
	graphs  map[string]*Graph
	tensors map[string]*Value // of attributes
	outer   []string          // names of enclosing graphs that its graphs use
}

// function is an operator that the model defines.
type function struct {
	*format.Function
	graph *Graph
}

// Program is a model ready to be walked.
type Program struct {
	Main      *Graph
	Lacks     []string // what the model needs and this package does not have
	files     Files
	functions map[string]*format.Function
	busy      map[string]bool
	instances int
}

// Prepare resolves operators and orders nodes. It fails for models that are broken; what is lacking is listed in the program.
func Prepare(m *format.Model, files Files) (*Program, error) {
	p := &Program{files: files, functions: map[string]*format.Function{}, busy: map[string]bool{}}
	for _, f := range m.Functions {
		p.functions[functionKey(f.Domain, f.Name, f.Overload)] = f
	}
	var err error
	p.Main, err = p.graph(m.Graph, m.Opsets, nil, nil)
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		if v.Type != nil && (v.Type.Kind == format.SequenceType || v.Type.Kind == format.OtherType) {
			p.Lacks = append(p.Lacks, fmt.Sprintf("%q: inputs and outputs are tensors, not sequences or the like", v.Name))
		}
	}
	slices.Sort(p.Lacks)
	p.Lacks = slices.Compact(p.Lacks)
	return p, nil
}

func functionKey(domain, name, overload string) string {
	return domain + "\x00" + name + "\x00" + overload
}

// mostFunctions bounds the instances of functions, which may call each other many times over.
const mostFunctions = 20_000

func (p *Program) graph(g *format.Graph, opsets map[string]int64, attributes map[string]*format.Attribute, outer map[string]bool) (*Graph, error) {
	out := &Graph{Inputs: g.Inputs, Outputs: g.Outputs, Weights: map[string]*Value{}, values: map[string]int{}}
	for _, t := range g.Weights {
		w, err := Load(t, p.files)
		if err != nil {
			return nil, err
		}
		if out.Weights[t.Name] != nil {
			return nil, fmt.Errorf("two initializers %q: %w", t.Name, format.ErrFormat)
		}
		v := constant(w)
		v.model = true
		out.Weights[t.Name] = v
	}
	names := map[string]bool{}
	for _, v := range g.Inputs {
		names[v.Name] = true
	}
	for n := range out.Weights {
		names[n] = true
	}
	sorted, err := order(g, names, outer)
	if err != nil {
		return nil, err
	}
	visible := map[string]bool{}
	for n := range outer {
		visible[n] = true
	}
	for n := range names {
		visible[n] = true
	}
	for _, n := range sorted {
		for _, name := range n.Outputs {
			visible[name] = true
		}
	}
	for _, n := range sorted {
		node, err := p.node(n, opsets, attributes, visible)
		if err != nil {
			return nil, err
		}
		out.Nodes = append(out.Nodes, node)
		for _, name := range n.Inputs {
			out.values[name]++
		}
		for _, name := range node.outer {
			out.values[name]++
		}
	}
	for _, o := range g.Outputs {
		if !visible[o.Name] {
			return nil, fmt.Errorf("output %q is not computed: %w", o.Name, format.ErrFormat)
		}
		out.values[o.Name]++
	}
	out.fuse()
	return out, nil
}

// order sorts nodes so that each is after those that make its operands.
func order(g *format.Graph, given, outer map[string]bool) ([]*format.Node, error) {
	maker := map[string]int{}
	for i, n := range g.Nodes {
		for _, name := range n.Outputs {
			if name == "" {
				continue
			}
			if _, twice := maker[name]; twice || given[name] {
				return nil, fmt.Errorf("%v makes %q, which is there already: %w", n, name, format.ErrFormat)
			}
			maker[name] = i
		}
	}
	const unseen, open, done = 0, 1, 2
	state := make([]byte, len(g.Nodes))
	needs := make([][]string, len(g.Nodes))
	var sorted []*format.Node
	type frame struct{ node, next int }
	for root := range g.Nodes {
		if state[root] != unseen {
			continue
		}
		stack := []frame{{root, 0}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			n := g.Nodes[top.node]
			if state[top.node] == unseen {
				state[top.node] = open
				needs[top.node] = append(slices.Clone(n.Inputs), captured(n)...)
			}
			if top.next == len(needs[top.node]) {
				state[top.node] = done
				sorted = append(sorted, n)
				stack = stack[:len(stack)-1]
				continue
			}
			at := top.next
			name := needs[top.node][at]
			top.next++
			if name == "" || given[name] {
				continue
			}
			i, ok := maker[name]
			switch {
			case !ok && (outer[name] || at >= len(n.Inputs)): // names inside of the node's graphs are checked there
			case !ok:
				return nil, fmt.Errorf("%v takes %q, which nothing makes: %w", n, name, format.ErrFormat)
			case state[i] == open:
				return nil, fmt.Errorf("%v needs its own result %q: %w", g.Nodes[i], name, format.ErrFormat)
			case state[i] == unseen:
				stack = append(stack, frame{i, 0})
			}
		}
	}
	return sorted, nil
}

// captured lists the names that graphs inside of a node use and do not make themselves.
func captured(n *format.Node) []string {
	var names []string
	for _, a := range n.Attributes {
		for _, g := range append(slices.Clone(a.Gs), a.G) {
			if g != nil {
				names = append(names, free(g)...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func free(g *format.Graph) []string {
	own := map[string]bool{"": true}
	for _, v := range g.Inputs {
		own[v.Name] = true
	}
	for _, t := range g.Weights {
		own[t.Name] = true
	}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			own[o] = true
		}
	}
	var names []string
	take := func(list []string) {
		for _, name := range list {
			if !own[name] {
				names = append(names, name)
			}
		}
	}
	for _, n := range g.Nodes {
		take(n.Inputs)
		take(captured(n))
	}
	for _, o := range g.Outputs {
		take([]string{o.Name})
	}
	return names
}

func (p *Program) lack(n *format.Node, format string, args ...any) {
	p.Lacks = append(p.Lacks, fmt.Sprintf("%v: ", n)+fmt.Sprintf(format, args...))
}

func (p *Program) node(n *format.Node, opsets map[string]int64, attributes map[string]*format.Attribute, visible map[string]bool) (*Node, error) {
	bound := *n
	bound.Attributes = map[string]*format.Attribute{}
	for name, a := range n.Attributes {
		if a.Ref != "" {
			given := attributes[a.Ref]
			if given == nil {
				continue // the caller left it out, the operator's default holds
			}
			a = given
		}
		bound.Attributes[name] = a
	}
	node := &Node{Node: &bound, Version: opsets[n.Domain], graphs: map[string]*Graph{}, tensors: map[string]*Value{}, outer: captured(&bound)}
	for name, a := range bound.Attributes {
		var err error
		switch {
		case a.G != nil:
			node.graphs[name], err = p.graph(a.G, opsets, attributes, visible)
		case a.T != nil:
			var t *host.Tensor
			if t, err = Load(a.T, p.files); err == nil {
				v := constant(t)
				v.model = true
				node.tensors[name] = v
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%v: attribute %q: %w", n, name, err)
		}
	}
	if f := p.functions[functionKey(n.Domain, n.Op, n.Overload)]; f != nil {
		var err error
		node.fn, err = p.call(f, node)
		return node, err
	}
	if _, imported := opsets[n.Domain]; !imported && n.Domain == "" {
		return nil, fmt.Errorf("%v is of a domain that the model does not import: %w", n, format.ErrFormat)
	}
	node.op = operators()[opKey{n.Domain, n.Op}]
	switch {
	case node.op == nil && n.Domain == "":
		p.lack(n, "no such operator")
	case node.op == nil:
		p.lack(n, "operators of domain %q are not known", n.Domain)
	case node.Version > newestOpset && n.Domain == "":
		p.lack(n, "operator set %d, the newest that is known is %d", node.Version, newestOpset)
	case node.Version < node.op.since && n.Domain == "":
		p.lack(n, "of operator set %d, the oldest that is known is %d", node.Version, node.op.since)
	default:
		if check := checks[opKey{n.Domain, n.Op}]; check != nil {
			if err := check(&call{Node: node}); err != nil {
				p.lack(n, "%v", err)
			}
		}
	}
	return node, nil
}

// newestOpset is the newest version of the default domain that operators were checked against.
const newestOpset = 28

// call instantiates a function with the attributes of a node.
func (p *Program) call(f *format.Function, n *Node) (*function, error) {
	key := functionKey(f.Domain, f.Name, f.Overload)
	if p.busy[key] {
		return nil, fmt.Errorf("%v: function %q calls itself: %w", n, f.Name, format.ErrFormat)
	}
	if p.instances++; p.instances > mostFunctions {
		return nil, fmt.Errorf("%v: more than %d calls of functions: %w", n, mostFunctions, compute.ErrTooLarge)
	}
	p.busy[key] = true
	defer delete(p.busy, key)
	attributes := map[string]*format.Attribute{}
	for _, a := range f.Defaults {
		attributes[a.Name] = a
	}
	for name, a := range n.Attributes {
		attributes[name] = a
	}
	g := &format.Graph{Name: f.Name, Nodes: f.Nodes}
	for _, name := range f.Inputs {
		g.Inputs = append(g.Inputs, format.Value{Name: name})
	}
	for _, name := range f.Outputs {
		g.Outputs = append(g.Outputs, format.Value{Name: name})
	}
	body, err := p.graph(g, f.Opsets, attributes, nil)
	if err != nil {
		return nil, fmt.Errorf("%v: function %q: %w", n, f.Name, err)
	}
	return &function{Function: f, graph: body}, nil
}

// LackError lists what a model needs and this package does not have.
type LackError struct{ Lacks []string }

func (e *LackError) Error() string {
	return fmt.Sprintf("the model needs %d things that are not there:\n\t%s", len(e.Lacks), strings.Join(e.Lacks, "\n\t"))
}

// Unwrap makes the error compute.ErrUnsupported.
func (e *LackError) Unwrap() error { return compute.ErrUnsupported }

// errBranch is what a replay returns where its trace does not go on.
var errBranch = errors.New("another path")

// Count adds the operators of a graph, and of those inside, to counts.
func (g *Graph) Count(counts map[string]int) {
	for _, n := range g.Nodes {
		name := n.Op
		if n.Domain != "" {
			name = n.Domain + ":" + name
		}
		if n.instead == nil { // those that it was made of are counted
			counts[name]++
		}
		if n.fn != nil {
			n.fn.graph.Count(counts)
		}
		for _, inner := range n.graphs {
			inner.Count(counts)
		}
	}
}

// Parameters counts the elements of weights and their bytes, also of constants in nodes.
func (g *Graph) Parameters() (elements, bytes int) {
	add := func(v *Value) {
		elements += v.t.Len()
		bytes += v.t.Len() * v.kind.Bits() / 8
	}
	for _, v := range g.Weights {
		add(v)
	}
	for _, n := range g.Nodes {
		for _, v := range n.tensors {
			add(v)
		}
		inner := []*Graph{}
		for _, i := range n.graphs {
			inner = append(inner, i)
		}
		if n.fn != nil {
			inner = append(inner, n.fn.graph)
		}
		for _, i := range inner {
			e, b := i.Parameters()
			elements, bytes = elements+e, bytes+b
		}
	}
	return elements, bytes
}
