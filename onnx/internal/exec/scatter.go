package exec

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// scattered puts updates by an index that is computed from indices on the host.
func (c *call) scattered(x, indices, updates *Value, reduction string, index func(indices *host.Tensor) (host.Index, error)) ([]*Value, error) {
	add := reduction == "add" && deviceFloat(x.kind)
	if (reduction == "none" || add) && (movable(x) || movable(updates)) && x.kind == updates.kind {
		defer c.pin(x, updates)()
		count := host.Len(updates.shape)
		table, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
			i, err := index(in[0])
			if err != nil {
				return nil, err
			}
			if len(i.From) != count {
				return nil, fmt.Errorf("%d updates for %d places: %w", count, len(i.From), compute.ErrShape)
			}
			ids := make([]int64, len(i.From))
			for k, at := range i.From {
				ids[k] = int64(at)
			}
			return host.OfInts(ids), nil
		}, indices)
		if err != nil {
			return nil, err
		}
		d, err := c.devAll(x, table[0], updates)
		if err != nil {
			return nil, err
		}
		b := c.rec()
		flat := b.Copy(b.Reshape(d[0], host.Len(x.shape)))
		u := b.Reshape(d[2], count)
		if add {
			flat = b.ScatterAdd(flat, d[1], u)
		} else {
			flat = b.Scatter(flat, d[1], u)
		}
		return c.made(x.kind, b.Reshape(flat, x.shape...))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		i, err := index(in[1])
		if err != nil {
			return nil, err
		}
		return in[0].Put(i, in[2], reduction)
	}, x, indices, updates)
}

func scatterElements(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil {
		return nil, err
	}
	return c.scattered(x, c.in[1], c.in[2], c.text("reduction", "none"), func(i *host.Tensor) (host.Index, error) {
		return host.ElementsIndex(x.shape, axis, i)
	})
}

func scatterND(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x := c.in[0]
	return c.scattered(x, c.in[1], c.in[2], c.text("reduction", "none"), func(i *host.Tensor) (host.Index, error) {
		return host.NDIndex(x.shape, 0, i)
	})
}
