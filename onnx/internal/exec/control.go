package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// truth is a condition that the walk depends on.
func (c *call) truth(v *Value) (bool, error) {
	t, err := c.constant(v)
	if err != nil {
		return false, err
	}
	if t.Len() != 1 {
		return false, fmt.Errorf("condition of shape %v: %w", t.Shape, compute.ErrShape)
	}
	return t.Floats()[0] != 0, nil
}

func (c *call) body(name string) (*Graph, error) {
	g := c.graphs[name]
	if g == nil {
		return nil, fmt.Errorf("there is no graph %q: %w", name, format.ErrFormat)
	}
	return g, nil
}

func ifNode(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	yes, err := c.truth(c.in[0])
	if err != nil {
		return nil, err
	}
	name := "else_branch"
	if yes {
		name = "then_branch"
	}
	g, err := c.body(name)
	if err != nil {
		return nil, err
	}
	return c.graph(g, nil)
}

// stacked joins values of one type along a new axis.
func (c *call) stacked(axis int, items []*Value) (*Value, error) {
	parts := make([]*Value, len(items))
	for i, v := range items {
		if v == nil || v.sequence || v.absent || axis > len(v.shape) {
			return nil, fmt.Errorf("item %d of %d is no tensor with %d axes: %w", i, len(items), axis, compute.ErrShape)
		}
		var err error
		if parts[i], err = c.reshaped(v, slices.Insert(slices.Clone(v.shape), axis, 1)); err != nil {
			return nil, err
		}
	}
	return c.joined(axis, parts)
}

func loop(c *call) ([]*Value, error) {
	g, err := c.body("body")
	if err != nil {
		return nil, err
	}
	trips := int64(1<<63 - 1)
	if v := c.arg(0); v != nil {
		t, err := c.constant(v)
		if err != nil {
			return nil, err
		}
		if t.Len() != 1 {
			return nil, fmt.Errorf("trip count of shape %v: %w", t.Shape, compute.ErrShape)
		}
		trips = t.Ints()[0]
	}
	on := true
	if v := c.arg(1); v != nil {
		if on, err = c.truth(v); err != nil {
			return nil, err
		}
	}
	states := max(len(c.in)-2, 0)
	if len(g.Inputs) != states+2 || len(g.Outputs) < states+1 {
		return nil, fmt.Errorf("a body of %d inputs and %d outputs for %d states: %w", len(g.Inputs), len(g.Outputs), states, format.ErrFormat)
	}
	state := slices.Clone(c.in[min(2, len(c.in)):])
	scans := make([][]*Value, len(g.Outputs)-1-states)
	for i := int64(0); on && i < trips; i++ {
		held := slices.Clone(state)
		for _, s := range scans {
			held = append(held, s...)
		}
		unpin := c.pin(held...)
		in := append([]*Value{constant(host.FromInts(host.Int64, []int64{i})), constant(host.FromFloats(host.Bool, []float64{1}))}, state...)
		out, err := c.graph(g, in)
		unpin()
		if err != nil {
			return nil, fmt.Errorf("iteration %d: %w", i, err)
		}
		if slices.Contains(out, nil) {
			return nil, fmt.Errorf("iteration %d: a result is absent: %w", i, compute.ErrArgument)
		}
		state = out[1 : 1+states]
		for k := range scans {
			scans[k] = append(scans[k], out[1+states+k])
		}
		held = slices.Clone(state)
		for _, s := range scans {
			held = append(held, s...)
		}
		unpin = c.pin(held...)
		on, err = c.truth(out[0])
		unpin()
		if err != nil {
			return nil, err
		}
	}
	out := slices.Clone(state)
	for k, items := range scans {
		if len(items) == 0 {
			v, err := c.emptyScan(g.Outputs[1+states+k])
			if err != nil {
				return nil, err
			}
			out = append(out, v)
			continue
		}
		v, err := c.stacked(0, items)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// emptyScan is the result of a loop that was never run, as far as the model says its type.
func (c *call) emptyScan(v format.Value) (*Value, error) {
	if v.Type == nil || v.Type.Kind != format.TensorType || !host.Kind(v.Type.Elem).Known() {
		return nil, fmt.Errorf("output %q of a loop that is not run has no type: %w", v.Name, compute.ErrUnsupported)
	}
	shape := []int{0}
	for _, d := range v.Type.Shape {
		shape = append(shape, int(d.Size))
	}
	return constant(host.New(host.Kind(v.Type.Elem), shape...)), nil
}

func scan(c *call) ([]*Value, error) {
	g, err := c.body("body")
	if err != nil {
		return nil, err
	}
	n := int(c.int("num_scan_inputs", 0))
	in := c.in
	if c.Version < 9 {
		if len(in) > 0 {
			if in[0] != nil {
				return nil, fmt.Errorf("lengths of sequences: %w", compute.ErrUnsupported)
			}
			in = in[1:]
		}
		return c.batchedScan(g, in, n)
	}
	return c.scan(g, in, n, c.ints("scan_input_axes"), c.ints("scan_input_directions"), c.ints("scan_output_axes"), c.ints("scan_output_directions"))
}

// batchedScan is that of operator set 8: everything has a leading axis for the batch.
func (c *call) batchedScan(g *Graph, in []*Value, n int) ([]*Value, error) {
	if slices.Contains(in, nil) || len(in) == 0 || len(in[0].shape) == 0 {
		return nil, fmt.Errorf("operands of a scan: %w", compute.ErrArgument)
	}
	var all [][]*Value
	for i := range in[0].shape[0] {
		row := make([]*Value, len(in))
		for k, v := range in {
			if len(v.shape) == 0 || v.shape[0] != in[0].shape[0] {
				return nil, fmt.Errorf("batches of %v and %v: %w", in[0], v, compute.ErrShape)
			}
			p, err := c.part(v, 0, i, 1)
			if err == nil {
				row[k], err = c.reshaped(p, v.shape[1:])
			}
			if err != nil {
				return nil, err
			}
		}
		out, err := c.scan(g, row, n, nil, c.ints("directions"), nil, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, out)
	}
	var out []*Value
	for k := range all[0] {
		var items []*Value
		for _, row := range all {
			items = append(items, row[k])
		}
		v, err := c.stacked(0, items)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (c *call) scan(g *Graph, in []*Value, n int, inAxes, inBack, outAxes, outBack []int64) ([]*Value, error) {
	states := len(in) - n
	if n < 1 || states < 0 || slices.Contains(in, nil) || len(g.Inputs) != len(in) || len(g.Outputs) < states {
		return nil, fmt.Errorf("scan of %d operands, %d of them in steps, with a body of %d inputs: %w", len(in), n, len(g.Inputs), compute.ErrArgument)
	}
	option := func(list []int64, i int) int64 {
		if i < len(list) {
			return list[i]
		}
		return 0
	}
	axes, length := make([]int, n), -1
	for k := range n {
		v := in[states+k]
		a, err := host.Axis(option(inAxes, k), len(v.shape))
		if err != nil || len(v.shape) == 0 {
			return nil, fmt.Errorf("axis of %v: %w", v, compute.ErrArgument)
		}
		if axes[k] = a; length < 0 {
			length = v.shape[a]
		}
		if v.shape[a] != length {
			return nil, fmt.Errorf("sequences of %d and %d steps: %w", length, v.shape[a], compute.ErrShape)
		}
	}
	defer c.pin(in...)()
	state := slices.Clone(in[:states])
	scans := make([][]*Value, len(g.Outputs)-states)
	for i := range length {
		held := slices.Clone(state)
		for _, s := range scans {
			held = append(held, s...)
		}
		unpin := c.pin(held...)
		row := slices.Clone(state)
		for k := range n {
			v, at := in[states+k], i
			if option(inBack, k) == 1 {
				at = length - 1 - i
			}
			p, err := c.part(v, axes[k], at, 1)
			if err == nil {
				p, err = c.reshaped(p, slices.Delete(slices.Clone(v.shape), axes[k], axes[k]+1))
			}
			if err != nil {
				return nil, err
			}
			row = append(row, p)
		}
		out, err := c.graph(g, row)
		unpin()
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		if slices.Contains(out, nil) {
			return nil, fmt.Errorf("step %d: a result is absent: %w", i, compute.ErrArgument)
		}
		state = out[:states]
		for k := range scans {
			scans[k] = append(scans[k], out[states+k])
		}
	}
	out := slices.Clone(state)
	for k, items := range scans {
		if len(items) == 0 {
			v, err := c.emptyScan(g.Outputs[states+k])
			if err != nil {
				return nil, err
			}
			out = append(out, v)
			continue
		}
		if option(outBack, k) == 1 {
			slices.Reverse(items)
		}
		a, err := host.Axis(option(outAxes, k), len(items[0].shape)+1)
		if err != nil {
			return nil, err
		}
		v, err := c.stacked(a, items)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
