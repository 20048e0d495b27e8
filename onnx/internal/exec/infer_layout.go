package exec

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/onnx/internal/host"
	"github.com/wavelane/wavelane/onnx/internal/symbolic"
)

func inferReshape(c *inferring) []*inferred {
	x, to := c.ranked(0), c.ranked(1)
	var dims []*symbolic.Int
	switch {
	case to != nil && to.elems != nil && len(to.shape) == 1:
		dims = slices.Clone(to.elems)
	case len(c.Inputs) == 1:
		dims = numbers(c.attributes().ints("shape"))
	case to != nil && len(to.shape) == 1: // how many axes is known at least
		if n, ok := to.shape[0].Number(); ok && n >= 0 && n <= mostElements {
			return []*inferred{ofShape(make([]*symbolic.Int, n)...)}
		}
		return nil
	default:
		return nil
	}
	rest := -1
	for i, d := range dims {
		switch {
		case d.Is(0) && c.attributes().int("allowzero", 0) == 0:
			if dims[i] = nil; x != nil && i < len(x.shape) {
				dims[i] = x.shape[i]
			}
		case d.Is(-1):
			dims[i], rest = nil, i
		}
	}
	out := ofShape(dims...)
	if rest >= 0 && x != nil {
		left, by := slices.Clone(x.shape), symbolic.Of(1)
		for i, d := range dims {
			if i == rest {
				continue
			}
			if k := slices.IndexFunc(left, d.Same); k >= 0 {
				left = slices.Delete(left, k, k+1)
			} else {
				by = by.Times(d)
			}
		}
		out.shape[rest] = volume(left).OverExact(by)
	}
	if x != nil && x.elems != nil {
		out.elems = x.elems
	}
	return []*inferred{out}
}

func inferFlatten(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return []*inferred{ofShape(nil, nil)}
	}
	axis := c.attributes().int("axis", 1)
	if axis < 0 {
		axis += int64(len(x.shape))
	}
	if axis < 0 || axis > int64(len(x.shape)) {
		return nil
	}
	return []*inferred{ofShape(volume(x.shape[:axis]), volume(x.shape[axis:]))}
}

// axes are given by an operand or an attribute, nil if they are left out.
func (c *inferring) axes(i int, rank int) (axes []int, ok bool) {
	n, given, ok := c.list(i, "axes")
	if !ok || !given {
		return nil, ok
	}
	axes, err := host.Axes(n, rank)
	if axes == nil {
		axes = []int{}
	}
	return axes, err == nil
}

func inferSqueeze(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	axes, ok := c.axes(1, len(x.shape))
	if !ok {
		return nil
	}
	out := ofShape()
	for d, n := range x.shape {
		_, number := n.Number()
		switch {
		case axes != nil && slices.Contains(axes, d):
		case axes == nil && n.Is(1):
		case axes == nil && !number:
			return nil
		default:
			out.shape = append(out.shape, n)
		}
	}
	out.elems = x.elems
	return []*inferred{out}
}

func inferUnsqueeze(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	n, given, ok := c.list(1, "axes")
	if !ok || !given || len(n) > mostElements {
		return nil
	}
	rank := len(x.shape) + len(n)
	axes, err := host.Axes(n, rank)
	if err != nil {
		return nil
	}
	out := ofShape()
	from := x.shape
	for d := range rank {
		switch {
		case slices.Contains(axes, d):
			out.shape = append(out.shape, symbolic.Of(1))
		case len(from) > 0:
			out.shape, from = append(out.shape, from[0]), from[1:]
		default:
			return nil // an axis is named twice
		}
	}
	out.elems = x.elems
	return []*inferred{out}
}

func inferTranspose(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	perm := c.attributes().ints("perm")
	if perm == nil {
		for d := range x.shape {
			perm = append(perm, int64(len(x.shape)-1-d))
		}
	}
	out := ofShape()
	for _, p := range perm {
		if p < 0 || p >= int64(len(x.shape)) {
			return nil
		}
		out.shape = append(out.shape, x.shape[p])
	}
	return []*inferred{out}
}

func inferConcat(c *inferring) []*inferred {
	var out *inferred
	elems, known := []*symbolic.Int{}, true
	axis := 0
	for i := range c.in {
		v := c.ranked(i)
		if v == nil {
			return nil
		}
		if known = known && v.elems != nil && len(v.shape) == 1; known {
			elems = append(elems, v.elems...)
		}
		if i == 0 {
			var err error
			if axis, err = host.Axis(c.attributes().int("axis", 0), len(v.shape)); err != nil || len(v.shape) == 0 {
				return nil
			}
			out = ofShape(slices.Clone(v.shape)...)
			continue
		}
		if len(v.shape) != len(out.shape) {
			return nil
		}
		for d, n := range v.shape {
			if d == axis {
				out.shape[d] = out.shape[d].Plus(n)
			} else if _, number := n.Number(); number || out.shape[d] == nil { // they are equal, so a number is the best that is known
				out.shape[d] = n
			}
		}
	}
	if out != nil && known && len(elems) <= mostElements {
		out.elems = elems
	}
	return []*inferred{out}
}

func inferSplit(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) == 0 {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", 0), len(x.shape))
	if err != nil {
		return nil
	}
	sizes, given, ok := c.list(1, "split")
	parts := max(len(c.Outputs), 1)
	total, number := x.shape[axis].Number()
	out := make([]*inferred, parts)
	for i := range out {
		out[i] = ofShape(slices.Clone(x.shape)...)
		var n *symbolic.Int
		switch {
		case given && ok && len(sizes) == parts:
			n = symbolic.Of(sizes[i])
		case given:
		case number: // of equal size, the last may be smaller
			size := (total + int64(parts) - 1) / int64(parts)
			n = symbolic.Of(max(0, min(size, total-int64(i)*size)))
		}
		out[i].shape[axis] = n
	}
	return out
}

func inferSlice(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	out := ofShape(make([]*symbolic.Int, len(x.shape))...)
	starts, _, ok1 := c.list(1, "starts")
	ends, _, ok2 := c.list(2, "ends")
	list, given, ok3 := c.list(3, "axes")
	steps, stepped, ok4 := c.list(4, "")
	if !given && !ok1 {
		return []*inferred{out}
	}
	if !given {
		for d := range starts {
			list = append(list, int64(d))
		}
	}
	if !stepped {
		steps = slices.Repeat([]int64{1}, len(starts))
	}
	axes, err := host.Axes(list, len(x.shape))
	if err != nil || !ok3 {
		return []*inferred{out}
	}
	for d, n := range x.shape {
		if !slices.Contains(axes, d) {
			out.shape[d] = n
		}
	}
	if !ok1 || !ok2 || !ok4 || len(starts) != len(axes) || len(ends) != len(axes) || len(steps) != len(axes) {
		return []*inferred{out}
	}
	for i, d := range axes {
		out.shape[d] = sliced(x.shape[d], starts[i], ends[i], steps[i])
		if n, ok := x.shape[d].Number(); ok && len(x.shape) == 1 && len(axes) == 1 && int64(len(x.elems)) == n {
			if count, ok := out.shape[d].Number(); ok {
				from := starts[i]
				if from < 0 {
					from += n
				}
				if steps[i] < 0 {
					from = min(from, n-1)
				}
				out.elems = []*symbolic.Int{}
				for k := range count {
					out.elems = append(out.elems, x.elems[max(from, 0)+k*steps[i]])
				}
			}
		}
	}
	return []*inferred{out}
}

// sliced is the size of a slice of an axis of n elements. An axis whose size is not a number is taken to reach beyond start and end.
func sliced(n *symbolic.Int, start, end, step int64) *symbolic.Int {
	if step == 0 || step == math.MinInt64 {
		return nil
	}
	if size, ok := n.Number(); ok {
		clamp := func(at, low, high int64) int64 {
			if at < 0 {
				at += size
			}
			return max(low, min(at, high))
		}
		if step > 0 {
			return symbolic.Of(max(0, clamp(end, 0, size)-clamp(start, 0, size)+step-1) / step)
		}
		return symbolic.Of(max(0, clamp(start, -1, size-1)-clamp(end, -1, size-1)-step-1) / -step)
	}
	const far = 100_000_000 // more than any dimension, and less than what exporters write for the end
	switch {
	case step == -1 && start == -1 && end <= -far:
		return n
	case step < 0 || start <= -far || end <= -far || start >= far:
		return nil
	}
	from, to := symbolic.Of(start), n
	if start < 0 {
		from = n.Plus(from)
	}
	switch {
	case end < 0:
		to = n.Plus(symbolic.Of(end))
	case end < far && start < 0:
		return nil
	case end < far:
		to = symbolic.Of(end)
	}
	return to.Minus(from).Plus(symbolic.Of(step - 1)).Over(step)
}

func inferExpand(c *inferring) []*inferred {
	x, to := c.ranked(0), c.ranked(1)
	if x == nil || to == nil || to.elems == nil || len(to.shape) != 1 {
		return nil
	}
	out := ofShape(broadcastDims(x.shape, to.elems)...)
	if n, ok := volume(out.shape).Number(); ok && len(x.elems) == 1 && n >= 0 && n <= mostElements {
		out.elems = slices.Repeat(x.elems, int(n))
	}
	return []*inferred{out}
}

func inferTile(c *inferring) []*inferred {
	x, times := c.ranked(0), c.ranked(1)
	if x == nil {
		return nil
	}
	out := ofShape(make([]*symbolic.Int, len(x.shape))...)
	if times != nil && len(times.elems) == len(x.shape) {
		for d := range out.shape {
			out.shape[d] = x.shape[d].Times(times.elems[d])
		}
	}
	return []*inferred{out}
}

func inferPad(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	pads, axes := c.attributes().ints("pads"), []int(nil)
	elems := numbers(pads)
	if len(c.Inputs) > 1 {
		elems = nil
		if p := c.ranked(1); p != nil {
			elems = p.elems
		}
	}
	ok := true
	if c.arg(3) != nil || len(c.Inputs) > 3 && c.Inputs[3] != "" {
		axes, ok = c.axes(3, len(x.shape))
	} else {
		for d := range x.shape {
			axes = append(axes, d)
		}
	}
	out := ofShape(slices.Clone(x.shape)...)
	if !ok || len(elems) != 2*len(axes) {
		return []*inferred{ofShape(make([]*symbolic.Int, len(x.shape))...)}
	}
	for i, d := range axes {
		out.shape[d] = out.shape[d].Plus(elems[i]).Plus(elems[len(axes)+i])
	}
	return []*inferred{out}
}

func inferGather(c *inferring) []*inferred {
	x, ids := c.ranked(0), c.ranked(1)
	if x == nil || ids == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", 0), len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil
	}
	out := ofShape(slices.Concat(x.shape[:axis], ids.shape, x.shape[axis+1:])...)
	if at, ok := ids.numeric(); ok && x.elems != nil && len(x.shape) == 1 {
		for _, i := range at {
			if i < 0 {
				i += int64(len(x.elems))
			}
			if i < 0 || i >= int64(len(x.elems)) {
				return nil
			}
			out.elems = append(out.elems, x.elems[i])
		}
	}
	return []*inferred{out}
}

func inferGatherElements(c *inferring) []*inferred {
	ids := c.ranked(1)
	if ids == nil {
		return nil
	}
	return []*inferred{ofShape(ids.shape...)}
}

func inferOneHot(c *inferring) []*inferred {
	ids, depth := c.ranked(0), c.ranked(1)
	if ids == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", -1), len(ids.shape)+1)
	if err != nil {
		return nil
	}
	var n *symbolic.Int
	if depth != nil && len(depth.elems) == 1 {
		n = depth.elems[0]
	}
	return []*inferred{ofShape(slices.Insert(slices.Clone(ids.shape), axis, n)...)}
}
