package exec

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Patterns of nodes that are one operation of the catalogue. Each begins at its last node; the others must have no other use.

// matcher looks at the nodes of a graph.
type matcher struct {
	g      *Graph
	makers map[string]*Node
}

// maker is the node that makes a name, if it is of this operator and nothing else uses the name.
func (m *matcher) maker(name, op string) *Node {
	n := m.makers[name]
	if n == nil || n.Op != op || n.Domain != "" || m.g.values[name] != 1 || len(n.Outputs) != 1 || n.fn != nil {
		return nil
	}
	return n
}

// number is the value of a name that is one number of the model.
func (m *matcher) number(name string) (float64, bool) {
	v := m.g.Weights[name]
	if n := m.makers[name]; v == nil && n != nil && n.Op == "Constant" && n.Domain == "" {
		v = n.tensors["value"]
	}
	if v == nil || v.kind != host.Float || v.t.Len() != 1 || len(v.shape) > 1 {
		return 0, false
	}
	return v.t.Floats()[0], true
}

// with splits the operands of a node of two: one that is a number near want, and the other's name.
func (m *matcher) with(n *Node, want float64, either bool) (string, bool) {
	if n == nil || len(n.Inputs) != 2 {
		return "", false
	}
	near := func(name string) bool {
		x, ok := m.number(name)
		return ok && math.Abs(x-want) <= 1e-6*math.Abs(want)
	}
	switch {
	case near(n.Inputs[1]):
		return n.Inputs[0], true
	case either && near(n.Inputs[0]):
		return n.Inputs[1], true
	}
	return "", false
}

// fuse replaces patterns in a graph.
func (g *Graph) fuse() {
	m := &matcher{g, map[string]*Node{}}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			m.makers[o] = n
		}
	}
	gone := map[*Node]bool{}
	for i, n := range g.Nodes {
		x, parts := m.hardSwish(n)
		if parts == nil {
			continue
		}
		node := &Node{Node: &format.Node{Name: n.Name, Op: "HardSwish", Inputs: []string{x}, Outputs: n.Outputs, Attributes: map[string]*format.Attribute{}},
			Version: n.Version, op: operators()[opKey{"", "HardSwish"}], graphs: map[string]*Graph{}, tensors: map[string]*Value{}}
		for _, p := range append(parts, n) {
			for _, name := range p.Inputs {
				g.values[name]--
			}
			if p != n {
				gone[p] = true
			}
		}
		g.values[x]++
		g.Nodes[i] = node
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *Node) bool { return gone[n] })
}

// hardSwish matches x·clip(x + 3, 0, 6)/6, and returns x and the nodes before the last.
func (m *matcher) hardSwish(n *Node) (x string, parts []*Node) {
	if n.Domain != "" || n.fn != nil || len(n.Outputs) != 1 {
		return "", nil
	}
	var name string
	ok := false
	switch n.Op {
	case "Div":
		name, ok = m.with(n, 6, false)
	case "Mul":
		name, ok = m.with(n, 1.0/6, true)
	}
	if !ok {
		return "", nil
	}
	product := m.maker(name, "Mul")
	if product == nil || len(product.Inputs) != 2 {
		return "", nil
	}
	for k, input := range product.Inputs {
		clip := m.maker(input, "Clip")
		if clip == nil {
			continue
		}
		low, okLow, high, okHigh := 0.0, false, 0.0, false
		if len(clip.Inputs) == 3 {
			low, okLow = m.number(clip.Inputs[1])
			high, okHigh = m.number(clip.Inputs[2])
		} else if l, h := clip.Attributes["min"], clip.Attributes["max"]; len(clip.Inputs) == 1 && l != nil && h != nil {
			low, okLow, high, okHigh = float64(l.F), true, float64(h.F), true
		}
		if !okLow || !okHigh || low != 0 || high != 6 {
			continue
		}
		sum := m.maker(clip.Inputs[0], "Add")
		other, ok := m.with(sum, 3, true)
		if ok && other == product.Inputs[1-k] {
			return other, []*Node{product, clip, sum}
		}
	}
	return "", nil
}
