package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

func pad(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	name := "pads"
	if c.Version < 2 {
		name = "paddings"
	}
	pads, err := c.intsArg(1, name)
	if err != nil {
		return nil, err
	}
	rank := len(x.shape)
	axes := make([]int, rank)
	for d := range axes {
		axes[d] = d
	}
	if c.arg(3) != nil {
		given, err := c.intsArg(3, "")
		if err != nil {
			return nil, err
		}
		axes = axes[:0]
		for _, a := range given {
			d, err := host.Axis(a, rank)
			if err != nil {
				return nil, err
			}
			axes = append(axes, d)
		}
	}
	if len(pads) != 2*len(axes) {
		return nil, fmt.Errorf("pads %v for %d axes: %w", pads, len(axes), compute.ErrShape)
	}
	before, after := make([]int, rank), make([]int, rank)
	for i, d := range axes {
		before[d], after[d] = int(pads[i]), int(pads[i+len(axes)])
	}
	mode := c.text("mode", "constant")
	value := c.arg(2)
	if value == nil && c.Version < 11 {
		value = constant(host.Scalar(x.kind, float64(c.float("value", 0))))
	}
	return c.padded(x, before, after, mode, value)
}

// padded puts elements around; negative numbers cut them off.
func (c *call) padded(x *Value, before, after []int, mode string, value *Value) ([]*Value, error) {
	start, size, step := make([]int, len(x.shape)), slices.Clone(x.shape), make([]int, len(x.shape))
	before, after = slices.Clone(before), slices.Clone(after)
	for d := range size {
		step[d] = 1
		if before[d] < 0 {
			start[d], size[d], before[d] = -before[d], size[d]+before[d], 0
		}
		if after[d] < 0 {
			size[d], after[d] = size[d]+after[d], 0
		}
		if size[d] < 0 {
			return nil, fmt.Errorf("padding cuts off more than all of %v: %w", x, compute.ErrShape)
		}
	}
	x, err := c.sliced(x, start, size, step)
	if err != nil {
		return nil, err
	}
	index, err := host.PadIndex(x.shape, before, after, mode)
	if err != nil {
		return nil, err
	}
	if mode == "constant" && (value == nil || value.known && value.t.Len() == 1) && movable(x) {
		if rep, _ := representation(x.kind); rep == compute.Float32 {
			d, err := c.dev(x)
			if err != nil {
				return nil, err
			}
			fill := float32(0)
			if value != nil {
				fill = value.t.F32s()[0]
			}
			return c.made(x.kind, c.rec().Pad(d, compute.PadOptions{Before: before, After: after, Value: fill}))
		}
	}
	if mode != "constant" {
		return c.moved(x, index)
	}
	if value == nil {
		value = constant(host.New(x.kind))
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if in[1].Len() != 1 || in[1].Kind != in[0].Kind {
			return nil, fmt.Errorf("padding with %v%v: %w", in[1].Kind, in[1].Shape, compute.ErrShape)
		}
		return in[0].Filled(index, in[1]), nil
	}, x, value)
}
