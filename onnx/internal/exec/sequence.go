package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Sequences and optionals exist during the walk only: their items are values like any others.

func sequenceOf(items []*Value) []*Value {
	return []*Value{{sequence: true, items: items, kept: -1, slot: -1}}
}

// items are those of a sequence.
func (c *call) items(i int) ([]*Value, error) {
	v := c.arg(i)
	if v == nil || !v.sequence {
		return nil, fmt.Errorf("operand %d is no sequence: %w", i, compute.ErrDType)
	}
	return v.items, nil
}

// position is an operand that names an item, or the end of the sequence if it is absent.
func (c *call) position(i, n int, orEnd bool) (int, error) {
	v := c.arg(i)
	if v == nil {
		if orEnd {
			return n, nil
		}
		return n - 1, nil
	}
	t, err := c.constant(v)
	if err != nil {
		return 0, err
	}
	if t.Len() != 1 {
		return 0, fmt.Errorf("position of shape %v: %w", t.Shape, compute.ErrShape)
	}
	at := t.Ints()[0]
	if at < 0 {
		at += int64(n)
	}
	most := int64(n - 1)
	if orEnd {
		most = int64(n)
	}
	if at < 0 || at > most {
		return 0, fmt.Errorf("position %d in a sequence of %d: %w", t.Ints()[0], n, compute.ErrArgument)
	}
	return int(at), nil
}

func sequenceConstruct(c *call) ([]*Value, error) {
	if err := c.need(len(c.in)); err != nil {
		return nil, err
	}
	return sequenceOf(slices.Clone(c.in)), nil
}

func sequenceEmpty(*call) ([]*Value, error) { return sequenceOf(nil), nil }

func sequenceLength(c *call) ([]*Value, error) {
	items, err := c.items(0)
	if err != nil {
		return nil, err
	}
	return knownResult(host.FromInts(host.Int64, []int64{int64(len(items))}))
}

func sequenceAt(c *call) ([]*Value, error) {
	items, err := c.items(0)
	if err != nil {
		return nil, err
	}
	if c.arg(1) == nil {
		return nil, fmt.Errorf("no position: %w", compute.ErrArgument)
	}
	at, err := c.position(1, len(items), false)
	if err != nil {
		return nil, err
	}
	return []*Value{items[at]}, nil
}

func sequenceInsert(c *call) ([]*Value, error) {
	items, err := c.items(0)
	if err != nil {
		return nil, err
	}
	at, err := c.position(2, len(items), true)
	if err != nil {
		return nil, err
	}
	if c.arg(1) == nil {
		return nil, fmt.Errorf("nothing to insert: %w", compute.ErrArgument)
	}
	return sequenceOf(slices.Insert(slices.Clone(items), at, c.in[1])), nil
}

func sequenceErase(c *call) ([]*Value, error) {
	items, err := c.items(0)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("nothing to erase: %w", compute.ErrArgument)
	}
	at, err := c.position(1, len(items), false)
	if err != nil {
		return nil, err
	}
	return sequenceOf(slices.Delete(slices.Clone(items), at, at+1)), nil
}

func splitToSequence(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil, fmt.Errorf("axis of %v: %w", x, compute.ErrArgument)
	}
	n := x.shape[axis]
	var sizes []int
	squeeze := false
	if v := c.arg(1); v != nil {
		t, err := c.constant(v)
		if err != nil {
			return nil, err
		}
		given := t.Ints()
		if len(t.Shape) == 0 { // of one size, the last what is left
			if given[0] < 1 {
				return nil, fmt.Errorf("parts of %d: %w", given[0], compute.ErrArgument)
			}
			for left := n; left > 0; left -= int(given[0]) {
				sizes = append(sizes, int(min(given[0], int64(left))))
			}
		} else if sizes, err = c.splitSizes(n, 1); err != nil {
			return nil, err
		}
	} else {
		sizes, squeeze = slices.Repeat([]int{1}, n), c.int("keepdims", 1) == 0
	}
	var items []*Value
	at := 0
	for _, m := range sizes {
		p, err := c.part(x, axis, at, m)
		if err == nil && squeeze {
			p, err = c.reshaped(p, slices.Delete(slices.Clone(p.shape), axis, axis+1))
		}
		if err != nil {
			return nil, err
		}
		items = append(items, p)
		at += m
	}
	return sequenceOf(items), nil
}

func concatFromSequence(c *call) ([]*Value, error) {
	items, err := c.items(0)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("an empty sequence: %w", compute.ErrArgument)
	}
	rank := len(items[0].shape)
	if c.int("new_axis", 0) != 0 {
		axis, err := c.axis("axis", 0, rank+1)
		if err != nil {
			return nil, err
		}
		return one(c.stacked(axis, items))
	}
	axis, err := c.axis("axis", 0, rank)
	if err != nil {
		return nil, err
	}
	return one(c.joined(axis, items))
}

// sequenceMap applies a graph to the items of sequences.
func sequenceMap(c *call) ([]*Value, error) {
	items, err := c.items(0)
	if err != nil {
		return nil, err
	}
	g, err := c.body("body")
	if err != nil {
		return nil, err
	}
	results := make([][]*Value, len(g.Outputs))
	defer c.pin(c.in...)()
	for i := range items {
		in := make([]*Value, len(c.in))
		for k, v := range c.in {
			if in[k] = v; v != nil && v.sequence {
				if i >= len(v.items) {
					return nil, fmt.Errorf("sequences of %d and %d items: %w", len(items), len(v.items), compute.ErrShape)
				}
				in[k] = v.items[i]
			}
		}
		var held []*Value
		for _, r := range results {
			held = append(held, r...)
		}
		unpin := c.pin(held...)
		out, err := c.graph(g, in)
		unpin()
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		for k := range results {
			results[k] = append(results[k], out[k])
		}
	}
	var out []*Value
	for _, r := range results {
		out = append(out, sequenceOf(r)...)
	}
	return out, nil
}

func optionalOf(c *call) ([]*Value, error) {
	if c.arg(0) == nil {
		return []*Value{{absent: true, kept: -1, slot: -1}}, nil
	}
	return c.in[:1:1], nil
}

func optionalHas(c *call) ([]*Value, error) {
	has := 1.0
	if v := c.arg(0); v == nil || v.absent {
		has = 0
	}
	return knownResult(host.FromFloats(host.Bool, []float64{has}))
}

func optionalGet(c *call) ([]*Value, error) {
	if v := c.arg(0); v == nil || v.absent {
		return nil, fmt.Errorf("an optional without a value: %w", compute.ErrArgument)
	}
	return c.in[:1:1], nil
}
