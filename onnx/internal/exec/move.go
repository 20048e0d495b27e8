package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// moved applies a known index: on the device if the value is for it.
func (c *call) moved(x *Value, index host.Index) ([]*Value, error) {
	if movable(x) {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		y, err := c.picked(d, index, 0)
		if err != nil {
			return nil, err
		}
		return c.made(x.kind, y)
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return in[0].Pick(index), nil }, x)
}

func transpose(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	perm := toInts(c.ints("perm"))
	if perm == nil || !c.has("perm") {
		perm = nil
		for d := range x.shape {
			perm = append(perm, len(x.shape)-1-d)
		}
	}
	return one(c.transposed(x, perm))
}

// transposed orders the axes of a value.
func (c *call) transposed(x *Value, perm []int) (*Value, error) {
	sorted := slices.Sorted(slices.Values(perm))
	for i, p := range sorted {
		if i != p || len(perm) != len(x.shape) {
			return nil, fmt.Errorf("order %v of the axes of %v: %w", perm, x, compute.ErrArgument)
		}
	}
	if len(perm) != len(x.shape) {
		return nil, fmt.Errorf("order %v of the axes of %v: %w", perm, x, compute.ErrArgument)
	}
	if slices.IsSorted(perm) {
		return x, nil
	}
	if movable(x) {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		return c.device(x.kind, c.rec().Transpose(d, compute.TransposeOptions{Perm: perm})), nil
	}
	out, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		return in[0].Pick(host.TransposeIndex(in[0].Shape, perm)), nil
	}, x)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func slice(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	rank := len(x.shape)
	var list [4][]int64
	for i, name := range []string{"starts", "ends", "axes", ""} {
		var err error
		if list[i], err = c.intsArg(1+i, name); err != nil {
			return nil, err
		}
	}
	starts, ends, axes, steps := list[0], list[1], list[2], list[3]
	if axes == nil {
		for d := range starts {
			axes = append(axes, int64(d))
		}
	}
	if len(starts) != len(ends) || len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		return nil, fmt.Errorf("starts %v, ends %v, axes %v, steps %v: %w", starts, ends, axes, steps, compute.ErrArgument)
	}
	start, size, step := make([]int, rank), slices.Clone(x.shape), make([]int, rank)
	for d := range step {
		step[d] = 1
	}
	for i := range starts {
		d, err := host.Axis(axes[i], rank)
		if err != nil || rank == 0 {
			return nil, fmt.Errorf("axis %d of %v: %w", axes[i], x, compute.ErrArgument)
		}
		by := int64(1)
		if steps != nil {
			by = steps[i]
		}
		if by == 0 {
			return nil, fmt.Errorf("step 0: %w", compute.ErrArgument)
		}
		start[d], size[d], step[d] = bounds(starts[i], ends[i], by, int64(x.shape[d]))
	}
	return one(c.sliced(x, start, size, step))
}

// bounds are those of NumPy's slices.
func bounds(start, end, step, n int64) (from, size, by int) {
	if start < 0 {
		start = max(start, -n-1) + n
	}
	if end < 0 {
		end = max(end, -n-1) + n
	}
	step = min(max(step, -math.MaxInt32), math.MaxInt32)
	if step > 0 {
		start, end = min(max(start, 0), n), min(max(end, 0), n)
		size = int(max(0, (end-start+step-1)/step))
	} else {
		start, end = min(max(start, -1), n-1), min(max(end, -1), n-1)
		size = int(max(0, (start-end-step-1)/-step))
	}
	if size <= 1 { // a step that is not taken may be longer than the axis
		step = 1
	}
	if size == 0 {
		start = 0
	}
	return int(start), size, int(step)
}

// sliced takes size elements from start on, step apart, along each axis.
func (c *call) sliced(x *Value, start, size, step []int) (*Value, error) {
	whole := true
	for d := range size {
		whole = whole && size[d] == x.shape[d] && step[d] == 1
	}
	if whole {
		return x, nil
	}
	if movable(x) {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		return c.device(x.kind, c.rec().Slice(d, compute.SliceOptions{Start: start, Size: size, Step: step})), nil
	}
	out, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		return in[0].Pick(host.SliceIndex(in[0].Shape, start, size, step)), nil
	}, x)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// part is elements from start on along one axis.
func (c *call) part(x *Value, axis, start, size int) (*Value, error) {
	from, count, step := make([]int, len(x.shape)), slices.Clone(x.shape), make([]int, len(x.shape))
	for d := range step {
		step[d] = 1
	}
	from[axis], count[axis] = start, size
	return c.sliced(x, from, count, step)
}

func expand(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	dims, err := c.intsArg(1, "")
	if err != nil {
		return nil, err
	}
	shape, err := host.Broadcast(c.in[0].shape, toInts(dims))
	if err != nil {
		return nil, err
	}
	return one(c.expanded(c.in[0], shape))
}

// expanded repeats a value along axes of 1.
func (c *call) expanded(x *Value, shape []int) (*Value, error) {
	if slices.Equal(x.shape, shape) {
		return x, nil
	}
	if movable(x) {
		d, err := c.dev(x)
		if err != nil {
			return nil, err
		}
		if rep, _ := representation(x.kind); rep == compute.Float32 {
			return c.device(x.kind, expanded(c.rec(), d, shape)), nil
		}
	}
	if !movable(x) {
		out, err := c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return in[0].Expand(shape), nil }, x)
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}
	out, err := c.moved(x, host.ExpandIndex(x.shape, shape))
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func tile(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x := c.in[0]
	repeats, err := c.intsArg(1, "")
	if err != nil {
		return nil, err
	}
	if len(repeats) != len(x.shape) {
		return nil, fmt.Errorf("repeats %v of %v: %w", repeats, x, compute.ErrShape)
	}
	for i, r := range repeats {
		if r < 0 || r > host.Most {
			return nil, fmt.Errorf("repeats %v of %v: %w", repeats, x, compute.ErrShape)
		}
		if r != 1 && movable(x) && r > 0 {
			parts := make([]*Value, r)
			for k := range parts {
				parts[k] = x
			}
			if x, err = c.joined(i, parts); err != nil {
				return nil, err
			}
			repeats = slices.Clone(repeats)
			repeats[i] = 1
		}
	}
	to := make([]int, len(repeats))
	for i := range to {
		to[i] = x.shape[i] * int(repeats[i])
	}
	if err := host.CheckShape(to); err != nil {
		return nil, err
	}
	if slices.Equal(to, x.shape) {
		return []*Value{x}, nil
	}
	return c.moved(x, host.TileIndex(x.shape, toInts(repeats)))
}

func depthToSpace(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x, s := c.in[0], int(c.int("blocksize", 1))
	if len(x.shape) != 4 || s < 1 || s > host.Most || x.shape[1]%(s*s) != 0 {
		return nil, fmt.Errorf("blocks of %d in %v: %w", s, x, compute.ErrShape)
	}
	n, ch, h, w := x.shape[0], x.shape[1]/(s*s), x.shape[2], x.shape[3]
	shape, perm := []int{n, s, s, ch, h, w}, []int{0, 3, 4, 1, 5, 2}
	if c.text("mode", "DCR") == "CRD" {
		shape, perm = []int{n, ch, s, s, h, w}, []int{0, 1, 4, 2, 5, 3}
	}
	y, err := c.reshaped(x, shape)
	if err == nil {
		y, err = c.transposed(y, perm)
	}
	if err != nil {
		return nil, err
	}
	return one(c.reshaped(y, []int{n, ch, h * s, w * s}))
}

func spaceToDepth(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x, s := c.in[0], int(c.int("blocksize", 1))
	if len(x.shape) != 4 || s < 1 || x.shape[2]%s != 0 || x.shape[3]%s != 0 {
		return nil, fmt.Errorf("blocks of %d in %v: %w", s, x, compute.ErrShape)
	}
	n, ch, h, w := x.shape[0], x.shape[1], x.shape[2]/s, x.shape[3]/s
	shape, perm := []int{n, ch, h, s, w, s}, []int{0, 3, 5, 1, 2, 4}
	if c.text("mode", "DCR") == "CRD" {
		perm = []int{0, 1, 3, 5, 2, 4}
	}
	y, err := c.reshaped(x, shape)
	if err == nil {
		y, err = c.transposed(y, perm)
	}
	if err != nil {
		return nil, err
	}
	return one(c.reshaped(y, []int{n, ch * s * s, h, w}))
}

func trilu(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	k := 0
	if c.arg(1) != nil {
		n, err := c.intsArg(1, "")
		if err != nil {
			return nil, err
		}
		if len(n) != 1 {
			return nil, fmt.Errorf("diagonal %v: %w", n, compute.ErrShape)
		}
		k = int(min(max(n[0], -host.Most), host.Most))
	}
	if len(x.shape) < 2 {
		return nil, fmt.Errorf("%v has no matrices: %w", x, compute.ErrShape)
	}
	rows, cols := x.shape[len(x.shape)-2], x.shape[len(x.shape)-1]
	upper := c.flag("upper", true)
	stays := func(i, j int) bool {
		if upper {
			return j >= i+k
		}
		return j <= i+k
	}
	if rep, _ := representation(x.kind); movable(x) && rep == compute.Float32 {
		mask := make([]float32, rows*cols)
		for i := range rows {
			for j := range cols {
				if stays(i, j) {
					mask[i*cols+j] = 1
				}
			}
		}
		d, err := c.devAll(x, constant(&host.Tensor{Kind: host.Float, Shape: []int{rows, cols}, Data: mask}))
		if err != nil {
			return nil, err
		}
		return c.made(x.kind, c.rec().Select(d[1], d[0], c.rec().Scalar(0)))
	}
	index := host.Index{Shape: x.shape, From: make([]int, host.Len(x.shape))}
	for at := range index.From {
		if index.From[at] = at; !stays(at/cols%rows, at%cols) {
			index.From[at] = -1
		}
	}
	return c.moved(x, index)
}

func reverseSequence(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x := c.in[0]
	time, e1 := c.axis("time_axis", 0, len(x.shape))
	batch, e2 := c.axis("batch_axis", 1, len(x.shape))
	if e1 != nil || e2 != nil || len(x.shape) < 2 {
		return nil, fmt.Errorf("axes of %v: %w", x, compute.ErrArgument)
	}
	return c.taken(x, c.in[1], func(lengths *host.Tensor) (host.Index, error) {
		n := lengths.Ints()
		if len(n) != x.shape[batch] {
			return host.Index{}, fmt.Errorf("%d lengths for %v: %w", len(n), x, compute.ErrShape)
		}
		st := host.Strides(x.shape)
		index := host.Index{Shape: x.shape, From: make([]int, host.Len(x.shape))}
		for _, l := range n {
			if l < 0 || l > int64(x.shape[time]) {
				return index, fmt.Errorf("length %d of %d: %w", l, x.shape[time], compute.ErrArgument)
			}
		}
		host.Positions(x.shape, func(i int, pos []int) {
			index.From[i] = i
			if l := int(n[pos[batch]]); pos[time] < l {
				index.From[i] = i + (l-1-2*pos[time])*st[time]
			}
		})
		return index, nil
	})
}
