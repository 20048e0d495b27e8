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
	replace := func(i int, parts []*Node, by *Node) {
		for _, p := range append(parts, g.Nodes[i]) {
			for _, name := range p.Inputs {
				g.values[name]--
			}
			gone[p] = true
		}
		for _, name := range by.Inputs {
			g.values[name]++
		}
		g.Nodes[i] = by
	}
	for i, n := range g.Nodes {
		if p := m.hotProduct(n); p != nil {
			whole, parts := p.node()
			replace(i, parts, whole)
			continue
		}
		op := "HardSwish"
		x, parts := m.hardSwish(n)
		if parts == nil {
			op, x, parts = m.gelu(n)
		}
		if parts == nil {
			continue
		}
		attributes := map[string]*format.Attribute{}
		if op == "GeluTanh" {
			op, attributes["approximate"] = "Gelu", &format.Attribute{Name: "approximate", Type: format.StringAttribute, S: []byte("tanh")}
		}
		node := &Node{Node: &format.Node{Name: n.Name, Op: op, Inputs: []string{x}, Outputs: n.Outputs, Attributes: attributes},
			Version: n.Version, op: operators()[opKey{"", op}], graphs: map[string]*Graph{}, tensors: map[string]*Value{}}
		replace(i, parts, node)
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

// factors takes a product apart: the names that are multiplied, the numbers as one, and the nodes of the product. A quotient by a number and
// a power of a small integer are products.
func (m *matcher) factors(name string, n *Node) (names []string, number float64, parts []*Node) {
	if x, ok := m.number(name); ok {
		return nil, x, nil
	}
	if n == nil {
		for _, op := range []string{"Mul", "Div", "Pow"} {
			if n = m.maker(name, op); n != nil {
				break
			}
		}
	}
	if n == nil || n.Domain != "" || n.fn != nil || len(n.Inputs) != 2 {
		return []string{name}, 1, nil
	}
	switch n.Op {
	case "Mul":
		a, x, p := m.factors(n.Inputs[0], nil)
		b, y, q := m.factors(n.Inputs[1], nil)
		return append(a, b...), x * y, slices.Concat(p, q, []*Node{n})
	case "Div":
		if y, ok := m.number(n.Inputs[1]); ok {
			a, x, p := m.factors(n.Inputs[0], nil)
			return a, x / y, append(p, n)
		}
	case "Pow":
		if y, ok := m.number(n.Inputs[1]); ok && (y == 2 || y == 3) {
			return slices.Repeat([]string{n.Inputs[0]}, int(y)), 1, []*Node{n}
		}
	}
	return []string{name}, 1, nil
}

func close6(x, want float64) bool { return math.Abs(x-want) <= 1e-5*math.Abs(want) }

// gelu matches ½x·(1 + erf(x/√2)) and ½x·(1 + tanh(√(2/π)·(x + 0.044715x³))), and returns the operator, x, and the nodes before the last.
func (m *matcher) gelu(n *Node) (op, x string, parts []*Node) {
	if n.Op != "Mul" && n.Op != "Div" || n.Domain != "" || n.fn != nil || len(n.Outputs) != 1 {
		return "", "", nil
	}
	names, half, outer := m.factors(n.Outputs[0], n)
	if len(names) != 2 || !close6(half, 0.5) {
		return "", "", nil
	}
	for k, name := range names {
		x := names[1-k]
		sum := m.maker(name, "Add")
		inner, ok := m.with(sum, 1, true)
		if !ok {
			continue
		}
		all := append(slices.DeleteFunc(slices.Clone(outer), func(p *Node) bool { return p == n }), sum)
		if f := m.maker(inner, "Erf"); f != nil {
			arg, scale, p := m.factors(f.Inputs[0], nil)
			if len(arg) == 1 && arg[0] == x && close6(scale, math.Sqrt2/2) {
				return "Gelu", x, slices.Concat(all, p, []*Node{f})
			}
		}
		f := m.maker(inner, "Tanh")
		if f == nil {
			continue
		}
		arg, scale, p := m.factors(f.Inputs[0], nil)
		if len(arg) != 1 || !close6(scale, math.Sqrt(2/math.Pi)) {
			continue
		}
		poly := m.maker(arg[0], "Add")
		if poly == nil || len(poly.Inputs) != 2 {
			continue
		}
		for i, linear := range poly.Inputs {
			if linear != x {
				continue
			}
			cube, c, q := m.factors(poly.Inputs[1-i], nil)
			if len(cube) == 3 && cube[0] == x && cube[1] == x && cube[2] == x && close6(c, 0.044715) {
				return "GeluTanh", x, slices.Concat(all, p, []*Node{f, poly}, q)
			}
		}
	}
	return "", "", nil
}
