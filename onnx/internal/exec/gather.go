package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// taken takes elements by an index that is computed from another operand on the host.
func (c *call) taken(x, indices *Value, index func(indices *host.Tensor) (host.Index, error)) ([]*Value, error) {
	if !movable(x) {
		return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
			i, err := index(in[1])
			if err != nil {
				return nil, err
			}
			return in[0].Pick(i), nil
		}, x, indices)
	}
	defer c.pin(x)()
	table, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		i, err := index(in[0])
		if err != nil {
			return nil, err
		}
		ids := make([]int64, len(i.From))
		for k, at := range i.From {
			ids[k] = int64(at)
		}
		return host.OfInts(ids, i.Shape...), nil
	}, indices)
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(x, table[0])
	if err != nil {
		return nil, err
	}
	b := c.rec()
	return c.made(x.kind, b.Gather(b.Reshape(d[0], host.Len(x.shape)), d[1]))
}

func gather(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil, fmt.Errorf("axis of %v: %w", x, compute.ErrArgument)
	}
	return c.gathered(x, c.in[1], axis)
}

// gathered is NumPy's take.
func (c *call) gathered(x, indices *Value, axis int) ([]*Value, error) {
	if movable(x) || x.known && deviceFloat(x.kind) && !indices.known { // whole rows, by indices that count from the front
		n := int64(x.shape[axis])
		ids := []*Value{indices}
		var err error
		if indices.t != nil {
			defer c.pin(x)()
			ids, err = c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
				out := in[0].Ints()
				for i, at := range out {
					if at < 0 {
						out[i] += n
					}
					if out[i] < 0 || out[i] >= n {
						return nil, fmt.Errorf("index %d of %d: %w", at, n, compute.ErrArgument)
					}
				}
				return host.OfInts(out, in[0].Shape...), nil
			}, indices)
			if err != nil {
				return nil, err
			}
		}
		d, err := c.devAll(x, ids[0])
		if err != nil {
			return nil, err
		}
		return c.made(x.kind, c.rec().Gather(d[0], d[1], compute.GatherOptions{Axis: axis}))
	}
	return c.taken(x, indices, func(i *host.Tensor) (host.Index, error) { return host.GatherIndex(x.shape, axis, i) })
}

func gatherElements(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", 0, len(x.shape))
	if err != nil {
		return nil, err
	}
	return c.taken(x, c.in[1], func(i *host.Tensor) (host.Index, error) { return host.ElementsIndex(x.shape, axis, i) })
}

func gatherND(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, batch := c.in[0], int(c.int("batch_dims", 0))
	return c.taken(x, c.in[1], func(i *host.Tensor) (host.Index, error) { return host.NDIndex(x.shape, batch, i) })
}

func compress(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis := 0
	if c.has("axis") {
		var err error
		if axis, err = c.axis("axis", 0, len(x.shape)); err != nil {
			return nil, err
		}
	} else {
		var err error
		if x, err = c.reshaped(x, []int{host.Len(x.shape)}); err != nil {
			return nil, err
		}
	}
	return c.taken(x, c.in[1], func(cond *host.Tensor) (host.Index, error) {
		var ids []int64
		for i, v := range cond.Ints() {
			if v != 0 {
				ids = append(ids, int64(i))
			}
		}
		return host.GatherIndex(x.shape, axis, host.OfInts(ids, len(ids)))
	})
}

func oneHot(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	axis := c.int("axis", -1)
	rank := len(c.in[0].shape) + 1
	a, err := host.Axis(axis, rank)
	if err != nil {
		return nil, err
	}
	depth, err := c.constant(c.in[1])
	if err != nil {
		return nil, err
	}
	if depth.Len() != 1 {
		return nil, fmt.Errorf("depth of shape %v: %w", depth.Shape, compute.ErrShape)
	}
	n := depth.Ints()[0]
	if n < 0 || n > host.Most {
		return nil, fmt.Errorf("depth %d: %w", n, compute.ErrArgument)
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if in[1].Len() != 2 {
			return nil, fmt.Errorf("values of shape %v: %w", in[1].Shape, compute.ErrShape)
		}
		shape := slices.Insert(slices.Clone(in[0].Shape), a, int(n))
		if err := host.CheckShape(shape); err != nil {
			return nil, err
		}
		x := host.Index{Shape: shape, From: make([]int, host.Len(shape))}
		inner := host.Len(in[0].Shape[a:])
		for i, id := range in[0].Ints() {
			if id < 0 {
				id += n
			}
			if id >= 0 && id < n {
				x.From[(i/inner*int(n)+int(id))*inner+i%inner] = 1
			}
		}
		return in[1].Pick(x), nil
	}, c.in[0], c.in[2])
}

func nonZero(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.NonZero(in[0]), nil }, c.in[0])
}
