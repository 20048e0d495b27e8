package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

func concat(c *call) ([]*Value, error) {
	if err := c.need(max(len(c.in), 1)); err != nil {
		return nil, err
	}
	axis, err := c.axis("axis", 1, len(c.in[0].shape))
	if err != nil {
		return nil, err
	}
	return one(c.joined(axis, c.in))
}

// joined concatenates values.
func (c *call) joined(axis int, in []*Value) (*Value, error) {
	for _, v := range in {
		if v.sequence || v.absent || v.kind != in[0].kind || len(v.shape) != len(in[0].shape) || axis >= len(v.shape) {
			return nil, fmt.Errorf("%v and %v cannot be joined along axis %d: %w", in[0], v, axis, compute.ErrShape)
		}
		for d := range v.shape {
			if d != axis && v.shape[d] != in[0].shape[d] {
				return nil, fmt.Errorf("%v and %v cannot be joined along axis %d: %w", in[0], v, axis, compute.ErrShape)
			}
		}
	}
	if len(in) == 1 {
		return in[0], nil
	}
	if slices.ContainsFunc(in, movable) {
		d, err := c.devAll(in...)
		if err != nil {
			return nil, err
		}
		return c.device(in[0].kind, c.rec().Concat(axis, d...)), nil
	}
	out, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.Concat(axis, in...), nil }, in...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// splitSizes are those of Split and SplitToSequence.
func (c *call) splitSizes(n, parts int) ([]int, error) {
	given, err := c.intsArg(1, "split")
	if err != nil {
		return nil, err
	}
	if given != nil {
		sum := 0
		for _, g := range given {
			if g < 0 || g > int64(n) {
				return nil, fmt.Errorf("parts %v of %d: %w", given, n, compute.ErrShape)
			}
			sum += int(g)
		}
		if sum != n {
			return nil, fmt.Errorf("parts %v of %d: %w", given, n, compute.ErrShape)
		}
		return toInts(given), nil
	}
	parts = int(c.int("num_outputs", int64(parts)))
	if parts < 1 || parts > host.Most {
		return nil, fmt.Errorf("%d parts: %w", parts, compute.ErrArgument)
	}
	each := (n + parts - 1) / parts
	var out []int
	for range parts {
		m := min(each, n)
		out = append(out, m)
		n -= m
	}
	return out, nil
}

func split(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil, fmt.Errorf("axis of %v: %w", x, compute.ErrArgument)
	}
	sizes, err := c.splitSizes(x.shape[axis], c.results())
	if err != nil {
		return nil, err
	}
	var out []*Value
	at := 0
	for _, n := range sizes {
		p, err := c.part(x, axis, at, n)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
		at += n
	}
	return out, nil
}
