package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// window is what convolutions and poolings have in common: a size for each spatial axis.
type window struct {
	size, stride, dilation, before, after []int
	ceil                                  bool
}

// most bounds what windows consist of, far beyond any use.
const mostWindow = 1 << 24

// windowOf reads the attributes for a spatial shape.
func (c *call) windowOf(spatial, size []int) (window, error) {
	n := len(spatial)
	w := window{size: size, stride: slices.Repeat([]int{1}, n), dilation: slices.Repeat([]int{1}, n), before: make([]int, n), after: make([]int, n),
		ceil: c.int("ceil_mode", 0) != 0}
	for name, list := range map[string]*[]int{"strides": &w.stride, "dilations": &w.dilation} {
		if given := c.ints(name); given != nil {
			*list = toInts(given)
		}
		if len(*list) != n {
			return w, fmt.Errorf("%s %v for %d axes: %w", name, *list, n, compute.ErrArgument)
		}
	}
	if len(w.size) != n {
		return w, fmt.Errorf("window %v for %d axes: %w", w.size, n, compute.ErrArgument)
	}
	if p := c.ints("pads"); p != nil {
		if len(p) != 2*n {
			return w, fmt.Errorf("pads %v for %d axes: %w", p, n, compute.ErrArgument)
		}
		w.before, w.after = toInts(p[:n]), toInts(p[n:])
	}
	for d := range n {
		for _, v := range []int{w.size[d], w.stride[d], w.dilation[d]} {
			if v < 1 || v > mostWindow {
				return w, fmt.Errorf("window %v, strides %v, dilations %v: %w", w.size, w.stride, w.dilation, compute.ErrArgument)
			}
		}
		if w.before[d] < 0 || w.after[d] < 0 || w.before[d] > mostWindow || w.after[d] > mostWindow {
			return w, fmt.Errorf("pads %v and %v: %w", w.before, w.after, compute.ErrArgument)
		}
	}
	switch auto := c.text("auto_pad", "NOTSET"); auto {
	case "NOTSET", "":
	case "VALID":
		w.before, w.after = make([]int, n), make([]int, n)
	case "SAME_UPPER", "SAME_LOWER":
		for d := range n {
			out := (spatial[d] + w.stride[d] - 1) / w.stride[d]
			total := max(0, (out-1)*w.stride[d]+w.reach(d)-spatial[d])
			w.before[d], w.after[d] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				w.before[d], w.after[d] = w.after[d], w.before[d]
			}
		}
	default:
		return w, fmt.Errorf("auto_pad %q: %w", auto, compute.ErrArgument)
	}
	return w, nil
}

// reach is how many elements a window spans.
func (w *window) reach(d int) int { return w.dilation[d]*(w.size[d]-1) + 1 }

// output is the spatial shape of the result.
func (w *window) output(spatial []int) ([]int, error) {
	out := make([]int, len(spatial))
	for d, n := range spatial {
		span := n + w.before[d] + w.after[d] - w.reach(d)
		if span < 0 {
			return nil, fmt.Errorf("window %v with dilation %v is larger than the padded input %v: %w", w.size, w.dilation, spatial, compute.ErrShape)
		}
		if out[d] = span/w.stride[d] + 1; w.ceil {
			out[d] = (span+w.stride[d]-1)/w.stride[d] + 1
			if (out[d]-1)*w.stride[d] >= n+w.before[d] { // a window that begins in the padding after
				out[d]--
			}
		}
	}
	return out, nil
}

// taps lists for each output position and each element of the window where it is in the input, −1 for padding; counted says whether it
// is inside the padded input.
func (w *window) taps(spatial, out []int) (index []int, inside []bool) {
	st := host.Strides(spatial)
	host.Positions(out, func(_ int, o []int) {
		o = slices.Clone(o)
		host.Positions(w.size, func(_ int, k []int) {
			at, in := 0, true
			for d := range spatial {
				p := o[d]*w.stride[d] + k[d]*w.dilation[d] - w.before[d]
				if p < 0 || p >= spatial[d] {
					at = math.MinInt32 * len(spatial) * max(1, host.Len(spatial))
				}
				in = in && p < spatial[d]+w.after[d]
				at += p * st[d]
			}
			index, inside = append(index, max(at, -1)), append(inside, in)
		})
	})
	return index, inside
}

func conv(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	return c.convolved(c.in[0], c.in[1], c.arg(2))
}

func (c *call) convolved(x, weights, bias *Value) ([]*Value, error) {
	rank := len(x.shape)
	if rank < 3 || len(weights.shape) != rank || !deviceFloat(x.kind) || x.kind != weights.kind {
		return nil, fmt.Errorf("convolution of %v with %v: %w", x, weights, compute.ErrShape)
	}
	spatial := x.shape[2:]
	w, err := c.windowOf(spatial, slices.Clone(weights.shape[2:]))
	if err != nil {
		return nil, err
	}
	groups := int(c.int("group", 1))
	out, err := w.output(spatial)
	if err != nil {
		return nil, err
	}
	p := &pendingConv{x: x, weights: weights, bias: bias, window: w, groups: groups}
	modelled := func(v *Value) bool { return v == nil || v.known && v.model && v.kind == host.Float }
	if x.kind == host.Float && modelled(weights) && modelled(bias) && groups > 0 && weights.shape[1]*groups == x.shape[1] && weights.shape[0]%groups == 0 &&
		(bias == nil || host.Len(bias.shape) == weights.shape[0]) {
		if _, err := c.dev(x); err != nil { // its memory may go before the convolution is recorded
			return nil, err
		}
		return []*Value{c.waiting(p, slices.Concat([]int{x.shape[0], weights.shape[0]}, out))}, nil
	}
	y, err := c.record(p)
	if err != nil {
		return nil, err
	}
	return c.made(x.kind, y)
}

// convolve returns a function that records the convolution with a bias or without.
func convolve(b *batch.Batch, x, weights batch.Value, w window, groups int) (func(bias *batch.Value) batch.Value, error) {
	sx, sw := b.Shape(x), b.Shape(weights)
	n := len(sx) - 2
	out, err := w.output(sx[2:])
	if err != nil {
		return nil, err
	}
	switch n {
	case 1: // a plane of one line
		x, weights = b.Reshape(x, sx[0], sx[1], 1, sx[2]), b.Reshape(weights, sw[0], sw[1], 1, sw[2])
		plane := window{size: append([]int{1}, w.size...), stride: append([]int{1}, w.stride...), dilation: append([]int{1}, w.dilation...),
			before: append([]int{0}, w.before...), after: append([]int{0}, w.after...)}
		y, err := convolve(b, x, weights, plane, groups)
		if err != nil {
			return nil, err
		}
		return func(bias *batch.Value) batch.Value { return b.Reshape(y(bias), sx[0], sw[0], out[0]) }, nil
	case 2:
		if sx[3] == 1 && sw[3] == 1 && w.before[1]+w.after[1] == 0 && w.stride[1] == 1 && sx[2] > 1 { // a column is computed as a line
			x, weights = b.Reshape(x, sx[0], sx[1], 1, sx[2]), b.Reshape(weights, sw[0], sw[1], 1, sw[2])
			line := window{size: []int{1, w.size[0]}, stride: []int{1, w.stride[0]}, dilation: []int{1, w.dilation[0]},
				before: []int{0, w.before[0]}, after: []int{0, w.after[0]}}
			y, err := convolve(b, x, weights, line, groups)
			if err != nil {
				return nil, err
			}
			return func(bias *batch.Value) batch.Value { return b.Reshape(y(bias), sx[0], sw[0], out[0], 1) }, nil
		}
		if !slices.Equal(w.before, w.after) {
			x = b.Pad(x, compute.PadOptions{Before: append([]int{0, 0}, w.before...), After: append([]int{0, 0}, w.after...)})
			w.before, w.after = []int{0, 0}, []int{0, 0}
		}
		o := compute.Conv2DOptions{Stride: [2]int(w.stride), Pad: [2]int(w.before), Dilation: [2]int(w.dilation), Groups: groups}
		return func(bias *batch.Value) batch.Value {
			if bias == nil {
				return b.Conv2D(x, weights, o)
			}
			return b.Conv2DWithBias(x, weights, *bias, o)
		}, nil
	}
	// Of more axes the first is a sum of convolutions of fewer: each plane of the window with planes of the input, which are a batch.
	first := 2
	before, after := make([]int, len(sx)), make([]int, len(sx))
	before[first], after[first] = w.before[0], w.after[0]
	if w.before[0]+w.after[0] > 0 {
		x = b.Pad(x, compute.PadOptions{Before: before, After: after})
		sx = b.Shape(x)
	}
	rest := window{size: w.size[1:], stride: w.stride[1:], dilation: w.dilation[1:], before: w.before[1:], after: w.after[1:]}
	perm := []int{0, 2, 1}
	for d := 3; d < len(sx); d++ {
		perm = append(perm, d)
	}
	var sum batch.Value
	for k := range w.size[0] {
		start, size, step := make([]int, len(sx)), slices.Clone(sx), slices.Repeat([]int{1}, len(sx))
		start[first], size[first], step[first] = k*w.dilation[0], out[0], w.stride[0]
		if out[0] == 1 {
			step[first] = 1
		}
		planes := b.Transpose(b.Slice(x, compute.SliceOptions{Start: start, Size: size, Step: step}), compute.TransposeOptions{Perm: perm})
		planes = b.Reshape(planes, slices.Concat([]int{sx[0] * out[0], sx[1]}, sx[3:])...)
		from, count := make([]int, len(sw)), slices.Clone(sw)
		from[first], count[first] = k, 1
		filter := b.Reshape(b.Slice(weights, compute.SliceOptions{Start: from, Size: count}), slices.Concat(sw[:2], sw[3:])...)
		y, err := convolve(b, planes, filter, rest, groups)
		if err != nil {
			return nil, err
		}
		if k == 0 {
			sum = y(nil)
		} else {
			sum = b.Add(sum, y(nil))
		}
	}
	return func(bias *batch.Value) batch.Value {
		if bias != nil {
			sum = b.Add(sum, b.Reshape(*bias, append([]int{1, sw[0]}, slices.Repeat([]int{1}, n-1)...)...))
		}
		y := b.Reshape(sum, slices.Concat([]int{sx[0], out[0], sw[0]}, out[1:])...)
		return b.Transpose(y, compute.TransposeOptions{Perm: perm})
	}, nil
}

// convTranspose is a convolution of the input with zeros between its elements, and with the window in reverse.
func convTranspose(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, weights, bias := c.in[0], c.in[1], c.arg(2)
	rank := len(x.shape)
	if rank < 3 || rank > 5 || len(weights.shape) != rank || !deviceFloat(x.kind) || x.kind != weights.kind {
		return nil, fmt.Errorf("transposed convolution of %v with %v: %w", x, weights, compute.ErrShape)
	}
	n := rank - 2
	spatial := x.shape[2:]
	auto := c.text("auto_pad", "NOTSET")
	w, err := c.windowOfTransposed(spatial, weights.shape[2:])
	if err != nil {
		return nil, err
	}
	groups := int(c.int("group", 1))
	ch, per := x.shape[1], weights.shape[1]
	if groups < 1 || weights.shape[0] != ch || ch%groups != 0 {
		return nil, fmt.Errorf("transposed convolution of %v with %v in %d groups: %w", x, weights, groups, compute.ErrShape)
	}
	extra := make([]int, n)
	if p := c.ints("output_padding"); p != nil {
		if len(p) != n {
			return nil, fmt.Errorf("output_padding %v: %w", p, compute.ErrArgument)
		}
		extra = toInts(p)
	}
	if want := c.ints("output_shape"); want != nil || auto == "SAME_UPPER" || auto == "SAME_LOWER" {
		if want != nil && len(want) != n && len(want) != rank {
			return nil, fmt.Errorf("output_shape %v: %w", want, compute.ErrArgument)
		}
		for d := range n {
			size := spatial[d] * w.stride[d]
			if want != nil {
				size = int(want[len(want)-n+d])
			}
			total := max(0, (spatial[d]-1)*w.stride[d]+extra[d]+w.reach(d)-size)
			if short := size - ((spatial[d]-1)*w.stride[d] + extra[d] + w.reach(d)); short > 0 {
				extra[d] += short
			}
			w.before[d], w.after[d] = total/2, total-total/2
			if auto != "SAME_UPPER" {
				w.before[d], w.after[d] = total-total/2, total/2
			}
		}
	}
	out := make([]int, n)
	for d := range n {
		if extra[d] < 0 || extra[d] > mostWindow {
			return nil, fmt.Errorf("output_padding %v: %w", extra, compute.ErrArgument)
		}
		out[d] = (spatial[d]-1)*w.stride[d] + extra[d] + w.reach(d) - w.before[d] - w.after[d]
		if out[d] < 0 {
			return nil, fmt.Errorf("pads %v and %v of transposed convolution of %v: %w", w.before, w.after, x, compute.ErrShape)
		}
	}
	d, err := c.devAll(x, bias)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	if n == 2 && groups == 1 && slices.Equal(w.stride, w.size) && slices.Equal(w.before, w.after) && w.before[0]+w.before[1]+extra[0]+extra[1] == 0 &&
		w.dilation[0] == 1 && w.dilation[1] == 1 { // windows do not overlap: a product for each
		matrix, err := c.turned(weights, "matrix", []int{per * w.size[0] * w.size[1], ch}, func(t *host.Tensor) *host.Tensor {
			return t.Pick(host.TransposeIndex([]int{ch, host.Len(t.Shape) / max(ch, 1)}, []int{1, 0}))
		}, func(v batch.Value) batch.Value {
			return b.Transpose(b.Reshape(v, ch, per*w.size[0]*w.size[1]))
		})
		if err != nil {
			return nil, err
		}
		h, l := spatial[0], spatial[1]
		y := b.MatMul(matrix, b.Reshape(d[0], x.shape[0], ch, h*l))
		y = b.Transpose(b.Reshape(y, x.shape[0], per, w.size[0], w.size[1], h, l), compute.TransposeOptions{Perm: []int{0, 1, 4, 2, 5, 3}})
		y = b.Reshape(y, x.shape[0], per, out[0], out[1])
		return c.made(x.kind, withBias(b, y, bias, d[1], per))
	}
	// The window in reverse: [ch, per, …] to [per·groups, ch/groups, …].
	flat := append([]int{groups * per, ch / groups}, weights.shape[2:]...)
	filter, err := c.turned(weights, fmt.Sprint("reversed", groups), flat, func(t *host.Tensor) *host.Tensor {
		return t.Pick(reversedWindow(t.Shape, groups))
	}, func(v batch.Value) batch.Value {
		size := slices.Clone(weights.shape)
		start, step := make([]int, rank), slices.Repeat([]int{1}, rank)
		for k := range n {
			if size[2+k] > 1 {
				start[2+k], step[2+k] = size[2+k]-1, -1
			}
		}
		v = b.Reshape(b.Slice(v, compute.SliceOptions{Start: start, Size: size, Step: step}), append([]int{groups, ch / groups, per}, weights.shape[2:]...)...)
		perm := []int{0, 2, 1}
		for k := range n {
			perm = append(perm, 3+k)
		}
		return b.Reshape(b.Transpose(v, compute.TransposeOptions{Perm: perm}), flat...)
	})
	if err != nil {
		return nil, err
	}
	// Zeros between the elements.
	spread := d[0]
	for k := range n {
		if w.stride[k] == 1 || spatial[k] < 2 {
			continue
		}
		shape := b.Shape(spread)
		lead, tail := host.Len(shape[:2+k+1]), host.Len(shape[2+k+1:])
		y := b.Pad(b.Reshape(spread, lead, 1, tail), compute.PadOptions{Before: []int{0, 0, 0}, After: []int{0, w.stride[k] - 1, 0}})
		shape[2+k] *= w.stride[k]
		y = b.Reshape(y, shape...)
		size := slices.Clone(shape)
		size[2+k] -= w.stride[k] - 1
		spread = b.Slice(y, compute.SliceOptions{Start: make([]int, rank), Size: size})
	}
	inner := window{size: w.size, stride: slices.Repeat([]int{1}, n), dilation: w.dilation, before: make([]int, n), after: make([]int, n)}
	before, after := make([]int, rank), make([]int, rank)
	start, size := make([]int, rank), b.Shape(spread)
	padded, cut := false, false
	for k := range n {
		lo, hi := w.reach(k)-1-w.before[k], w.reach(k)-1-w.after[k]+extra[k]
		if lo < 0 {
			start[2+k], size[2+k], lo, cut = -lo, size[2+k]+lo, 0, true
		}
		if hi < 0 {
			size[2+k], hi, cut = size[2+k]+hi, 0, true
		}
		before[2+k], after[2+k] = lo, hi
		padded = padded || lo+hi > 0
	}
	if cut {
		spread = b.Slice(spread, compute.SliceOptions{Start: start, Size: size})
	}
	if padded {
		spread = b.Pad(spread, compute.PadOptions{Before: before, After: after})
	}
	y, err := convolve(b, spread, filter, inner, groups)
	if err != nil {
		return nil, err
	}
	if bias != nil {
		return c.made(x.kind, y(&d[1]))
	}
	return c.made(x.kind, y(nil))
}

// windowOfTransposed is windowOf, but that auto_pad is the caller's.
func (c *call) windowOfTransposed(spatial, size []int) (window, error) {
	d := *c
	node := *c.Node
	d.Node = &node
	attributes := *node.Node
	node.Node = &attributes
	attributes.Attributes = mapsWithout(attributes.Attributes, "auto_pad")
	return d.windowOf(spatial, slices.Clone(size))
}

func withBias(b *batch.Batch, y batch.Value, bias *Value, d batch.Value, channels int) batch.Value {
	if bias == nil {
		return y
	}
	rank := len(b.Shape(y))
	return b.Add(y, b.Reshape(d, append([]int{1, channels}, slices.Repeat([]int{1}, rank-2)...)...))
}

// turned is a weight in another layout: of a model's weight once, else as steps.
func (c *call) turned(v *Value, what string, shape []int, onHost func(t *host.Tensor) *host.Tensor, onDevice func(x batch.Value) batch.Value) (batch.Value, error) {
	if v.known {
		return c.dev(c.s.derive(v, what, func(t *host.Tensor) *host.Tensor { return onHost(t).Reshaped(shape...) }))
	}
	d, err := c.dev(v)
	if err != nil {
		return d, err
	}
	return onDevice(d), nil
}

func reversedWindow(shape []int, groups int) host.Index {
	ch, per := shape[0]/groups, shape[1]
	st := host.Strides(shape)
	to := append([]int{groups * per, ch}, shape[2:]...)
	x := host.Index{Shape: to, From: make([]int, host.Len(to))}
	host.Positions(to, func(i int, pos []int) {
		g, m := pos[0]/per, pos[0]%per
		at := (g*ch+pos[1])*st[0] + m*st[1]
		for d := 2; d < len(shape); d++ {
			at += (shape[d] - 1 - pos[d]) * st[d]
		}
		x.From[i] = at
	})
	return x
}

// planes are the tensor as [planes, elements].
func pool(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	if len(x.shape) < 3 {
		return nil, fmt.Errorf("%v has no spatial axes: %w", x, compute.ErrShape)
	}
	spatial := x.shape[2:]
	w, err := c.windowOf(spatial, toInts(c.ints("kernel_shape")))
	if err != nil {
		return nil, err
	}
	out, err := w.output(spatial)
	if err != nil {
		return nil, err
	}
	shape := slices.Concat(x.shape[:2], out)
	if err := host.CheckShape(append(slices.Clone(shape), host.Len(w.size))); err != nil {
		return nil, err
	}
	if c.Op == "MaxPool" && (c.wants(1) || !deviceFloat(x.kind)) {
		return c.maxPoolHost(x, w, out, shape)
	}
	if !deviceFloat(x.kind) {
		return nil, fmt.Errorf("%s of %v: %w", c.Op, x.kind, compute.ErrUnsupported)
	}
	d, err := c.dev(x)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	if y, ok := c.planePool(b, d, w, spatial, out, shape); ok {
		return c.made(x.kind, y)
	}
	index, inside := w.taps(spatial, out)
	planes, taps := x.shape[0]*x.shape[1], host.Len(w.size)
	fill := float32(0)
	if c.Op == "MaxPool" {
		fill = -inf
	}
	elements := host.Len(spatial)
	flat := b.Concat(1, b.Reshape(d, planes, elements), b.Fill(fill, planes, 1))
	ids, counts := make([]int64, len(index)), make([]float32, host.Len(out))
	includePad := c.int("count_include_pad", 0) != 0
	for i, at := range index {
		if ids[i] = int64(at); at < 0 {
			ids[i] = int64(elements)
		}
		if at >= 0 || includePad && inside[i] {
			counts[i/taps]++
		}
	}
	table, err := c.dev(constant(host.OfInts(ids)))
	if err != nil {
		return nil, err
	}
	cols := b.Reshape(b.Gather(flat, table, compute.GatherOptions{Axis: 1}), planes, len(counts), taps)
	var y batch.Value
	switch c.Op {
	case "MaxPool":
		y = b.Max(cols, compute.LastAxis)
	case "AveragePool":
		divisor, err := c.dev(constant(&host.Tensor{Kind: host.Float, Shape: []int{len(counts)}, Data: counts}))
		if err != nil {
			return nil, err
		}
		y = b.Div(b.Sum(cols, compute.LastAxis), divisor)
	default:
		p := float32(c.int("p", 2))
		y = b.PowScalar(b.Sum(b.PowScalar(b.Abs(cols), p), compute.LastAxis), 1/p)
	}
	return c.made(x.kind, b.Reshape(y, shape...))
}

// planePool is pooling of planes by the catalogue's entries, where they have what is asked for.
func (c *call) planePool(b *batch.Batch, d batch.Value, w window, spatial, out, shape []int) (batch.Value, bool) {
	n := len(spatial)
	if n > 2 || c.Op == "LpPool" || slices.Max(w.dilation) > 1 {
		return d, false
	}
	lead := make([]int, 2-n, 2)
	one := slices.Repeat([]int{1}, 2-n)
	before, after := append(slices.Clone(lead), w.before...), append(slices.Clone(lead), w.after...)
	size, stride := append(slices.Clone(one), w.size...), append(slices.Clone(one), w.stride...)
	in := append(slices.Clone(one), spatial...)
	o := compute.PoolOptions{Size: [2]int(size), Stride: [2]int(stride), Pad: [2]int(before)}
	ceil := false
	to := append(slices.Clone(one), out...)
	for k := range 2 {
		ceil = ceil || (to[k]-1)*stride[k]+size[k] > in[k]+before[k]+after[k]
	}
	symmetric := slices.Equal(before, after) && !ceil && before[0] <= size[0]/2 && before[1] <= size[1]/2
	include := c.int("count_include_pad", 0) != 0 && before[0]+before[1]+after[0]+after[1] > 0
	planes := b.Reshape(d, shape[0]*shape[1], in[0], in[1])
	switch {
	case c.Op == "MaxPool" && !symmetric:
		for k := range 2 {
			after[k] = max(0, (to[k]-1)*stride[k]+size[k]-in[k]-before[k])
		}
		planes = b.Pad(planes, compute.PadOptions{Before: append([]int{0}, before...), After: append([]int{0}, after...), Value: -inf})
		o.Pad = [2]int{}
	case c.Op == "AveragePool" && include && !ceil:
		planes = b.Pad(planes, compute.PadOptions{Before: append([]int{0}, before...), After: append([]int{0}, after...)})
		o.Pad = [2]int{}
	case !symmetric:
		return d, false
	}
	var y batch.Value
	if c.Op == "MaxPool" {
		y = b.MaxPool2D(planes, o)
	} else {
		y = b.AvgPool2D(planes, o)
	}
	if s := b.Shape(y); len(s) != 3 || s[1] < to[0] || s[2] < to[1] {
		return d, false
	} else if s[1] > to[0] || s[2] > to[1] {
		y = b.Slice(y, compute.SliceOptions{Start: []int{0, 0, 0}, Size: []int{s[0], to[0], to[1]}})
	}
	return b.Reshape(y, shape...), true
}

// maxPoolHost also tells where the largest elements were.
func (c *call) maxPoolHost(x *Value, w window, out, shape []int) ([]*Value, error) {
	spatial := x.shape[2:]
	index, _ := w.taps(spatial, out)
	taps, elements, cells := host.Len(w.size), host.Len(spatial), host.Len(out)
	columns := c.int("storage_order", 0) == 1
	return c.onHost(c.Node.String(), 2, true, func(in []*host.Tensor) ([]*host.Tensor, error) {
		f := in[0].Floats()
		value, where := host.Index{Shape: shape, From: make([]int, host.Len(shape))}, host.New(host.Int64, shape...)
		for i := range value.From {
			plane, cell := i/cells, i%cells
			best := -1
			for _, at := range index[cell*taps : (cell+1)*taps] {
				if at >= 0 && (best < 0 || f[plane*elements+at] > f[plane*elements+best]) {
					best = at
				}
			}
			if best < 0 {
				return nil, fmt.Errorf("a window over padding only: %w", compute.ErrShape)
			}
			value.From[i] = plane*elements + best
			if columns { // as in an array whose first axis is contiguous
				rest, at, step := best, 0, 1
				st := host.Strides(spatial)
				for d := range spatial {
					at += rest / st[d] * step
					rest %= st[d]
					step *= spatial[d]
				}
				best = at
			}
			where.Data.([]int64)[i] = int64(plane*elements + best)
		}
		return []*host.Tensor{in[0].Pick(value), where}, nil
	}, x)
}

func globalPool(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	if len(x.shape) < 2 {
		return nil, fmt.Errorf("%v has no channels: %w", x, compute.ErrShape)
	}
	var axes []int
	for d := 2; d < len(x.shape); d++ {
		axes = append(axes, d)
	}
	switch c.Op {
	case "GlobalAveragePool":
		return c.reduced("Mean", x, axes, true)
	case "GlobalMaxPool":
		return c.reduced("Max", x, axes, true)
	}
	p := float32(c.int("p", 2))
	if !deviceFloat(x.kind) {
		return nil, fmt.Errorf("%s of %v: %w", c.Op, x.kind, compute.ErrUnsupported)
	}
	return one(c.reducedOnDevice(x, axes, true, func(b *batch.Batch, x batch.Value) batch.Value {
		return b.PowScalar(b.Sum(b.PowScalar(b.Abs(x), p), compute.LastAxis), 1/p)
	}))
}
