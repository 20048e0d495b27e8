package exec

import (
	"math"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/onnx/internal/host"
	"github.com/wavelane/wavelane/onnx/internal/symbolic"
)

// reduced has axes left out, or of 1.
func (v *inferred) reduced(axes []int, keep bool) *inferred {
	out := ofShape()
	for d, n := range v.shape {
		switch {
		case !slices.Contains(axes, d):
			out.shape = append(out.shape, n)
		case keep:
			out.shape = append(out.shape, symbolic.Of(1))
		}
	}
	return out
}

func inferReduce(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	axes, ok := c.axes(1, len(x.shape))
	if !ok {
		return nil
	}
	if len(axes) == 0 {
		if c.attributes().int("noop_with_empty_axes", 0) != 0 {
			return []*inferred{ofShape(x.shape...)}
		}
		for d := range x.shape {
			axes = append(axes, d)
		}
	}
	return []*inferred{x.reduced(axes, c.attributes().int("keepdims", 1) != 0)}
}

func inferArg(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", 0), len(x.shape))
	if err != nil {
		return nil
	}
	return []*inferred{x.reduced([]int{axis}, c.attributes().int("keepdims", 1) != 0)}
}

func inferTopK(c *inferring) []*inferred {
	x, k := c.ranked(0), c.ranked(1)
	if x == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", -1), len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil
	}
	out := ofShape(slices.Clone(x.shape)...)
	switch {
	case k != nil && len(k.elems) == 1:
		out.shape[axis] = k.elems[0]
	case c.attributes().has("k"):
		out.shape[axis] = symbolic.Of(c.attributes().int("k", 0))
	default:
		out.shape[axis] = nil
	}
	return []*inferred{out, ofShape(out.shape...)}
}

func inferMatMul(c *inferring) []*inferred {
	x, y := c.ranked(0), c.ranked(1)
	if x == nil || y == nil || len(x.shape) == 0 || len(y.shape) == 0 {
		return nil
	}
	a, b := x.shape, y.shape
	var m, n []*symbolic.Int
	if len(a) > 1 {
		m, a = a[len(a)-2:len(a)-1], a[:len(a)-2]
	} else {
		a = nil
	}
	if len(b) > 1 {
		n, b = b[len(b)-1:], b[:len(b)-2]
	} else {
		b = nil
	}
	return []*inferred{ofShape(slices.Concat(broadcastDims(a, b), m, n)...)}
}

func inferGemm(c *inferring) []*inferred {
	x, y := c.ranked(0), c.ranked(1)
	if x == nil || y == nil || len(x.shape) != 2 || len(y.shape) != 2 {
		return []*inferred{ofShape(nil, nil)}
	}
	m, n := x.shape[0], y.shape[1]
	if c.attributes().int("transA", 0) != 0 {
		m = x.shape[1]
	}
	if c.attributes().int("transB", 0) != 0 {
		n = y.shape[0]
	}
	return []*inferred{ofShape(m, n)}
}

// windows is the spatial shape of a convolution or pooling.
func (c *inferring) windows(spatial []*symbolic.Int, size []int) []*symbolic.Int {
	a := c.attributes()
	w, err := a.windowOf(slices.Repeat([]int{1 << 20}, len(spatial)), size)
	if err != nil {
		return make([]*symbolic.Int, len(spatial))
	}
	auto := a.text("auto_pad", "NOTSET")
	out := make([]*symbolic.Int, len(spatial))
	for d, n := range spatial {
		stride := int64(w.stride[d])
		if strings.HasPrefix(auto, "SAME") {
			out[d] = n.Plus(symbolic.Of(stride - 1)).Over(stride)
			continue
		}
		if v, ok := n.Number(); ok {
			one := window{size: size[d : d+1], stride: w.stride[d : d+1], dilation: w.dilation[d : d+1], before: w.before[d : d+1], after: w.after[d : d+1], ceil: w.ceil}
			if o, err := one.output([]int{int(v)}); err == nil {
				out[d] = symbolic.Of(int64(o[0]))
			}
			continue
		}
		if w.ceil && stride > 1 { // a last window in the padding is left out
			continue
		}
		out[d] = n.Plus(symbolic.Of(int64(w.before[d] + w.after[d] - w.reach(d)))).Over(stride).Plus(symbolic.Of(1))
	}
	return out
}

func inferConv(c *inferring) []*inferred {
	x, weights := c.ranked(0), c.ranked(1)
	if x == nil || weights == nil || len(x.shape) < 3 || len(weights.shape) != len(x.shape) {
		return nil
	}
	out := append([]*symbolic.Int{x.shape[0], weights.shape[0]}, make([]*symbolic.Int, len(x.shape)-2)...)
	size := make([]int, len(x.shape)-2)
	for d := range size {
		n, ok := weights.shape[2+d].Number()
		if !ok {
			return []*inferred{ofShape(out...)}
		}
		size[d] = int(n)
	}
	return []*inferred{ofShape(append(out[:2], c.windows(x.shape[2:], size)...)...)}
}

func inferConvTranspose(c *inferring) []*inferred {
	x, weights := c.ranked(0), c.ranked(1)
	if x == nil || weights == nil || len(x.shape) < 3 || len(weights.shape) != len(x.shape) {
		return nil
	}
	a := c.attributes()
	n := len(x.shape) - 2
	out := ofShape(append([]*symbolic.Int{x.shape[0], weights.shape[1].Times(symbolic.Of(a.int("group", 1)))}, make([]*symbolic.Int, n)...)...)
	if given := a.ints("output_shape"); len(given) == n {
		copy(out.shape[2:], numbers(given))
		return []*inferred{out}
	}
	at := func(name string, d int, def int64) int64 {
		if list := a.ints(name); d < len(list) {
			return list[d]
		}
		return def
	}
	for d := range n {
		size, ok := weights.shape[2+d].Number()
		stride := symbolic.Of(at("strides", d, 1))
		if auto := a.text("auto_pad", "NOTSET"); strings.HasPrefix(auto, "SAME") {
			out.shape[2+d] = x.shape[2+d].Times(stride)
		} else if ok {
			pads := at("pads", d, 0) + at("pads", n+d, 0)
			if auto == "VALID" {
				pads = 0
			}
			more := at("output_padding", d, 0) + (size-1)*at("dilations", d, 1) + 1 - pads
			out.shape[2+d] = x.shape[2+d].Minus(symbolic.Of(1)).Times(stride).Plus(symbolic.Of(more))
		}
	}
	return []*inferred{out}
}

func inferPool(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) < 3 {
		return nil
	}
	out := ofShape(append(slices.Clone(x.shape[:2]), make([]*symbolic.Int, len(x.shape)-2)...)...)
	if size := toInts(c.attributes().ints("kernel_shape")); len(size) == len(x.shape)-2 {
		copy(out.shape[2:], c.windows(x.shape[2:], size))
	}
	return []*inferred{out, ofShape(out.shape...)}
}

func inferGlobalPool(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) < 2 {
		return nil
	}
	return []*inferred{ofShape(append(slices.Clone(x.shape[:2]), slices.Repeat([]*symbolic.Int{symbolic.Of(1)}, len(x.shape)-2)...)...)}
}

func inferResize(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	a := c.attributes()
	out := ofShape(make([]*symbolic.Int, len(x.shape))...)
	if a.has("axes") || a.text("keep_aspect_ratio_policy", "stretch") != "stretch" {
		return []*inferred{out}
	}
	if sizes := c.ranked(3); sizes != nil && len(sizes.elems) == len(x.shape) {
		return []*inferred{ofShape(sizes.elems...)}
	}
	scaleAt := 2
	if c.Op == "Upsample" || c.Version < 11 {
		scaleAt = 1
	}
	var scales []float64
	if v := c.arg(scaleAt); v != nil && v.t != nil {
		scales = v.t.Floats()
	} else if len(c.Inputs) == 1 {
		for _, s := range a.floats("scales") {
			scales = append(scales, float64(s))
		}
	}
	if len(scales) != len(x.shape) {
		return []*inferred{out}
	}
	for d, s := range scales {
		n, number := x.shape[d].Number()
		switch whole, part := math.Modf(s); {
		case part == 0 && whole >= 1 && whole < 1<<20:
			out.shape[d] = x.shape[d].Times(symbolic.Of(int64(whole)))
		case number && s > 0 && s < 1<<20:
			out.shape[d] = symbolic.Of(int64(float64(n) * s))
		case s > 0 && 1/s == math.Trunc(1/s) && 1/s < 1<<20:
			out.shape[d] = x.shape[d].Over(int64(1 / s))
		}
	}
	return []*inferred{out}
}

// inferBlocks moves blocks of pixels into channels, or back.
func inferBlocks(direction int) func(c *inferring) []*inferred {
	return func(c *inferring) []*inferred {
		x, n := c.ranked(0), c.attributes().int("blocksize", 0)
		if x == nil || len(x.shape) != 4 || n < 1 || n > 1<<20 {
			return nil
		}
		b := symbolic.Of(n)
		if direction > 0 {
			return []*inferred{ofShape(x.shape[0], x.shape[1].Over(n*n), x.shape[2].Times(b), x.shape[3].Times(b))}
		}
		return []*inferred{ofShape(x.shape[0], x.shape[1].Times(b).Times(b), x.shape[2].Over(n), x.shape[3].Over(n))}
	}
}

func inferRecurrent(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) != 3 {
		return nil
	}
	a := c.attributes()
	directions := symbolic.Of(1)
	if a.text("direction", "forward") == "bidirectional" {
		directions = symbolic.Of(2)
	}
	var hidden *symbolic.Int
	if n := a.int("hidden_size", 0); n > 0 {
		hidden = symbolic.Of(n)
	}
	if a.int("layout", 0) != 0 {
		state := ofShape(x.shape[0], directions, hidden)
		return []*inferred{ofShape(x.shape[0], x.shape[1], directions, hidden), state, state}
	}
	state := ofShape(directions, x.shape[1], hidden)
	return []*inferred{ofShape(x.shape[0], directions, x.shape[1], hidden), state, state}
}
