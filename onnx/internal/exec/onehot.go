package exec

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// A product of one-hot rows with a matrix of the model takes rows of the matrix. The rows come from OneHot, or from Equal of indices and
// 0, 1, 2, …, and are cast to floats. The other rows count 0 times, so the matrix must be finite.

// hotProduct is the nodes of such a product.
type hotProduct struct {
	product *Node
	casts   []*Node // of the rows, the last first
	hot     *Node   // OneHot or Equal
	expands []*Node // of Equal's operands
}

// hotProduct matches nodes. What they are applied to is looked at when they are walked.
func (m *matcher) hotProduct(n *Node) *hotProduct {
	if n.Op != "MatMul" || n.Domain != "" || n.fn != nil || len(n.Inputs) != 2 || len(n.Outputs) != 1 {
		return nil
	}
	p := &hotProduct{product: n}
	name := n.Inputs[0]
	for {
		cast := m.maker(name, "Cast")
		if cast == nil || len(cast.Inputs) != 1 {
			break
		}
		p.casts = append(p.casts, cast)
		name = cast.Inputs[0]
	}
	if p.hot = m.maker(name, "OneHot"); p.hot != nil && len(p.hot.Inputs) == 3 {
		return p
	}
	if p.hot = m.maker(name, "Equal"); p.hot == nil || len(p.hot.Inputs) != 2 {
		return nil
	}
	for _, input := range p.hot.Inputs {
		if e := m.maker(input, "Expand"); e != nil && len(e.Inputs) == 2 {
			p.expands = append(p.expands, e)
		}
	}
	return p
}

// node is one node for the product. Where its operands turn out to be others than it looked like, it runs the nodes that it is made of.
func (p *hotProduct) node() (whole *Node, parts []*Node) {
	parts = append(append([]*Node{}, p.expands...), p.hot)
	for i := len(p.casts) - 1; i >= 0; i-- {
		parts = append(parts, p.casts[i])
	}
	body := &Graph{Nodes: append(append([]*Node{}, parts...), p.product), Weights: map[string]*Value{}, values: map[string]int{}}
	made := map[string]bool{}
	var inputs []string
	for _, n := range body.Nodes {
		for _, name := range n.Inputs {
			body.values[name]++
			if !made[name] && name != "" && !slices.Contains(inputs, name) {
				inputs = append(inputs, name)
			}
		}
		made[n.Outputs[0]] = true
	}
	for _, name := range inputs {
		body.Inputs = append(body.Inputs, format.Value{Name: name})
	}
	out := p.product.Outputs[0]
	body.Outputs = []format.Value{{Name: out}}
	body.values[out]++
	n := *p.product.Node
	n.Inputs = inputs
	return &Node{Node: &n, Version: p.product.Version, fn: &function{graph: body}, instead: p.gathered}, parts
}

// gathered computes the product by taking rows. It returns nil where operands are others.
func (p *hotProduct) gathered(w *walk) ([]*Value, error) {
	weights := w.tensor(p.product.Inputs[1])
	if weights == nil || !weights.model || !weights.onHost() || !deviceFloat(weights.kind) || len(weights.shape) != 2 {
		return nil, nil
	}
	count := weights.shape[0]
	look := p.compared
	if p.hot.Op == "OneHot" {
		look = p.counted
	}
	r := look(w, count)
	if r == nil {
		return nil, nil
	}
	for i := len(p.casts) - 1; i >= 0; i-- {
		switch r.kind = host.Kind((&call{Node: p.casts[i]}).int("to", 0)); {
		case r.kind == host.Bool, r.kind == host.Double, r.kind.IsInteger(), deviceFloat(r.kind): // these have 0 and 1
		default:
			return nil, nil
		}
	}
	if r.kind != weights.kind {
		return nil, nil
	}
	rows := w.s.derive(weights, "rows and one of zeros", func(t *host.Tensor) *host.Tensor {
		x := t.F32s()
		for _, v := range x {
			if v-v != 0 {
				return host.New(t.Kind, 0, t.Shape[1])
			}
		}
		out := make([]float32, len(x)+t.Shape[1])
		copy(out, x)
		return host.FromF32s(t.Kind, out, t.Shape[0]+1, t.Shape[1])
	})
	if rows.shape[0] == 0 {
		return nil, nil
	}
	c := &call{walk: w, Node: p.product}
	table, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return r.rows(in[0], int64(count)), nil }, r.ids)
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(rows, table[0])
	if err != nil {
		return nil, err
	}
	return c.made(weights.kind, c.rec().Gather(d[0], d[1], compute.GatherOptions{Axis: 0}))
}

// oneHotRows says which rows are taken.
type oneHotRows struct {
	ids   *Value // on the host
	shape []int  // of the indices, as the product has them
	first int64  // the index of row 0
	wrap  bool   // indices of less than 0 count from the end
	kind  host.Kind
}

// rows numbers the rows; the one after the last is zeros, for indices of none.
func (r *oneHotRows) rows(ids *host.Tensor, count int64) *host.Tensor {
	out := ids.Ints()
	for i, at := range out {
		if r.wrap && at < 0 {
			at += count
		}
		if out[i] = count; at >= r.first && at < r.first+count {
			out[i] = at - r.first
		}
	}
	return host.OfInts(out, r.shape...)
}

// tensor is the tensor of a name, or nil.
func (w *walk) tensor(name string) *Value {
	v, _ := w.lookup(name)
	if v == nil || v.sequence || v.absent {
		return nil
	}
	return v
}

// indices reports whether v is integers on the host that come with each call.
func indices(v *Value) bool {
	return v != nil && v.onHost() && !v.known && v.kind.IsInteger() && v.kind != host.Uint64
}

// counted looks at the operands of OneHot.
func (p *hotProduct) counted(w *walk, count int) *oneHotRows {
	ids, depth, values := w.tensor(p.hot.Inputs[0]), w.tensor(p.hot.Inputs[1]), w.tensor(p.hot.Inputs[2])
	if !indices(ids) || depth == nil || !depth.known || depth.t.Len() != 1 || depth.t.Ints()[0] != int64(count) ||
		values == nil || !values.known || !values.kind.IsInteger() && !deviceFloat(values.kind) || !zeroOne(values.t.Floats()) {
		return nil
	}
	if axis, err := (&call{Node: p.hot}).axis("axis", -1, len(ids.shape)+1); err != nil || axis != len(ids.shape) {
		return nil
	}
	return &oneHotRows{ids: ids, shape: ids.shape, wrap: true, kind: values.kind}
}

func zeroOne(x []float64) bool { return len(x) == 2 && x[0] == 0 && x[1] == 1 }

// compared looks at the operands of Equal: indices, which are repeated along the last axis, and as many consecutive numbers as there are rows.
func (p *hotProduct) compared(w *walk, count int) *oneHotRows {
	var sides [2]*Value
	var shapes [2][]int
	for i, name := range p.hot.Inputs {
		var expand *Node
		for _, e := range p.expands {
			if e.Outputs[0] == name {
				expand = e
				name = e.Inputs[0]
				break
			}
		}
		if sides[i] = w.tensor(name); sides[i] == nil {
			return nil
		}
		shapes[i] = sides[i].shape
		if expand != nil {
			to := w.tensor(expand.Inputs[1])
			if to == nil || !to.known || !to.kind.IsInteger() {
				return nil
			}
			var err error
			if shapes[i], err = host.Broadcast(shapes[i], toInts(to.t.Ints())); err != nil {
				return nil
			}
		}
	}
	whole, err := host.Broadcast(shapes[0], shapes[1])
	if err != nil || len(whole) == 0 || whole[len(whole)-1] != count || sides[0].kind != sides[1].kind {
		return nil
	}
	shape := whole[:len(whole)-1]
	for i, ids := range sides {
		numbers := sides[1-i]
		if indices(ids) && len(ids.shape) > 0 && ids.shape[len(ids.shape)-1] == 1 && host.Len(ids.shape) == host.Len(shape) &&
			numbers.known && len(numbers.shape) > 0 && numbers.shape[len(numbers.shape)-1] == count && numbers.t.Len() == count {
			if first, ok := consecutive(numbers.t.Ints()); ok {
				return &oneHotRows{ids: ids, shape: shape, first: first, kind: host.Bool}
			}
		}
	}
	return nil
}

// consecutive reports whether each number is one more than that before, and returns the first.
func consecutive(n []int64) (first int64, ok bool) {
	if len(n) == 0 || n[0] > math.MaxInt64-int64(len(n)) {
		return 0, false
	}
	for i, x := range n {
		if x != n[0]+int64(i) {
			return 0, false
		}
	}
	return n[0], true
}
