package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// perBlock says for each element of a tensor which element of a scale is its own: one for all, one along an axis, or one for each block
// along it.
func perBlock(shape, scale []int, axis, block int) ([]int, error) {
	out := make([]int, host.Len(shape))
	switch {
	case host.Len(scale) == 1:
	case len(scale) == 1 && axis < len(shape) && scale[0] == shape[axis]:
		inner := host.Len(shape[axis+1:])
		for i := range out {
			out[i] = i / inner % scale[0]
		}
	case block > 0 && len(scale) == len(shape) && axis < len(shape):
		st := host.Strides(scale)
		for d := range shape {
			if want := shape[d]; d == axis && scale[d] != (want+block-1)/block || d != axis && scale[d] != want {
				return nil, fmt.Errorf("scales of shape %v for %v in blocks of %d: %w", scale, shape, block, compute.ErrShape)
			}
		}
		host.Positions(shape, func(i int, pos []int) {
			for d, p := range pos {
				if d == axis {
					p /= block
				}
				out[i] += p * st[d]
			}
		})
	default:
		return nil, fmt.Errorf("scales of shape %v for %v along axis %d: %w", scale, shape, axis, compute.ErrShape)
	}
	return out, nil
}

func quantize(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, scale, zero := c.in[0], c.in[1], c.arg(2)
	to := host.Kind(c.int("output_dtype", 0))
	if zero != nil {
		to = zero.kind
	} else if to == host.None {
		to = host.Uint8
	}
	if !to.Known() || !to.IsInteger() && !to.IsFloat() {
		return nil, fmt.Errorf("quantising to %v: %w", to, compute.ErrUnsupported)
	}
	axis, err := host.Axis(c.int("axis", 1), max(len(x.shape), 1))
	if err != nil && host.Len(scale.shape) != 1 {
		return nil, err
	}
	block, saturate := int(c.int("block_size", 0)), c.flag("saturate", true)
	precision := host.Kind(c.int("precision", 0))
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		var z []float64
		if in[2] != nil {
			z = in[2].Floats()
			if len(z) != in[1].Len() {
				return nil, fmt.Errorf("zero points of shape %v for scales of %v: %w", in[2].Shape, in[1].Shape, compute.ErrShape)
			}
		}
		at, err := perBlock(in[0].Shape, in[1].Shape, axis, block)
		if err != nil {
			return nil, err
		}
		k := precision
		if !k.IsFloat() {
			k = in[1].Kind
		}
		y := make([]float64, in[0].Len())
		xs, ss := in[0].Floats(), in[1].Floats()
		for i := range y {
			y[i] = xs[i] / ss[at[i]]
		}
		if k == host.Float16 || k == host.BFloat16 || k == host.Float {
			y = host.FromFloats(k, y, len(y)).Floats()
		}
		if to.IsFloat() {
			if z != nil {
				for i := range y {
					y[i] += z[at[i]]
				}
			}
			return host.Cast(host.FromFloats(host.Float, y, in[0].Shape...), to, saturate, "up")
		}
		low, high := to.Range()
		out := make([]int64, len(y))
		for i := range y {
			v := math.RoundToEven(y[i])
			if z != nil {
				v += z[at[i]]
			}
			if v == v {
				out[i] = int64(min(max(v, float64(low)), float64(high)))
			}
		}
		return host.FromInts(to, out, in[0].Shape...), nil
	}, x, scale, zero)
}

func dequantize(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, scale, zero := c.in[0], c.in[1], c.arg(2)
	to := host.Kind(c.int("output_dtype", 0))
	if to == host.None {
		to = scale.kind
	}
	if !to.Known() {
		return nil, fmt.Errorf("numbers of type %v: %w", to, compute.ErrUnsupported)
	}
	axis, err := host.Axis(c.int("axis", 1), max(len(x.shape), 1))
	if err != nil && host.Len(scale.shape) != 1 {
		return nil, err
	}
	block := int(c.int("block_size", 0))
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		at, err := perBlock(in[0].Shape, in[1].Shape, axis, block)
		if err != nil {
			return nil, err
		}
		y, s := in[0].Floats(), in[1].Floats()
		if in[2] != nil {
			z := in[2].Floats()
			if len(z) != len(s) {
				return nil, fmt.Errorf("zero points of shape %v for scales of %v: %w", in[2].Shape, in[1].Shape, compute.ErrShape)
			}
			for i := range y {
				y[i] -= z[at[i]]
			}
		}
		for i := range y {
			y[i] *= s[at[i]]
		}
		return host.FromFloats(to, y, in[0].Shape...), nil
	}, x, scale, zero)
}

// dynamicQuantize finds scale and zero point of its operand's range.
func dynamicQuantize(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	return c.onHost(c.Node.String(), 3, true, func(in []*host.Tensor) ([]*host.Tensor, error) {
		x := in[0].Floats()
		low, high := 0.0, 0.0
		for _, v := range x {
			low, high = min(low, v), max(high, v)
		}
		scale := float64(float32((high - low) / 255))
		zero := 0.0
		if scale != 0 {
			zero = math.RoundToEven(min(max(-low/scale, 0), 255))
		}
		out := make([]int64, len(x))
		for i, v := range x {
			if scale != 0 {
				v = math.RoundToEven(float64(float32(v) / float32(scale)))
			}
			out[i] = int64(min(max(v+zero, 0), 255))
		}
		return []*host.Tensor{host.FromInts(host.Uint8, out, in[0].Shape...), host.FromFloats(host.Float, []float64{scale}),
			host.FromFloats(host.Uint8, []float64{zero})}, nil
	}, c.in[0])
}

// centered is a quantised tensor less its zero point, as Int32; axis is that of zero points of several.
func centered(x, zero *host.Tensor, axis int) (*host.Tensor, error) {
	n := x.Ints()
	if zero != nil {
		z := zero.Ints()
		at, err := perBlock(x.Shape, zero.Shape, axis, 0)
		if err != nil && len(zero.Shape) == len(x.Shape) { // broadcast
			wide, e := host.Broadcast(zero.Shape, x.Shape)
			if e == nil && slices.Equal(wide, x.Shape) {
				at, err = host.ExpandIndex(zero.Shape, x.Shape).From, nil
			}
		}
		if err != nil {
			return nil, err
		}
		for i := range n {
			n[i] -= z[at[i]]
		}
	}
	return host.FromInts(host.Int32, n, x.Shape...), nil
}

func matmulInteger(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		in = append(in, nil, nil)
		return integerProduct(in[0], in[1], in[2], in[3])
	}, c.in...)
}

func integerProduct(a, b, za, zb *host.Tensor) (*host.Tensor, error) {
	x, err := centered(a, za, max(len(a.Shape)-2, 0))
	if err != nil {
		return nil, err
	}
	y, err := centered(b, zb, max(len(b.Shape)-1, 0))
	if err != nil {
		return nil, err
	}
	return host.MatMul(x, y, host.Int32)
}

// requantized brings sums to a scale and a zero point.
func requantized(sums *host.Tensor, factor []float64, at []int, zero *host.Tensor) *host.Tensor {
	low, high := zero.Kind.Range()
	z := zero.Floats()[0]
	out := make([]int64, sums.Len())
	for i, v := range sums.Ints() {
		out[i] = int64(min(max(math.RoundToEven(float64(v)*factor[at[i]])+z, float64(low)), float64(high)))
	}
	return host.FromInts(zero.Kind, out, sums.Shape...)
}

func qlinearMatMul(c *call) ([]*Value, error) {
	if err := c.need(8); err != nil {
		return nil, err
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		if in[1].Len() != 1 || in[4].Len() != 1 || in[6].Len() != 1 || in[7].Len() != 1 || !in[7].Kind.IsInteger() {
			return nil, fmt.Errorf("scales of rows or columns: %w", compute.ErrUnsupported)
		}
		sums, err := integerProduct(in[0], in[3], in[2], in[5])
		if err != nil {
			return nil, err
		}
		f := in[1].Floats()[0] * in[4].Floats()[0] / in[6].Floats()[0]
		return requantized(sums, []float64{f}, make([]int, sums.Len()), in[7]), nil
	}, c.in[:8]...)
}

// integerConv convolves on the host.
func (c *call) integerConv(x, weights *Value) (func(x, w *host.Tensor) (*host.Tensor, error), error) {
	rank := len(x.shape)
	if rank < 3 || len(weights.shape) != rank {
		return nil, fmt.Errorf("convolution of %v with %v: %w", x, weights, compute.ErrShape)
	}
	w, err := c.windowOf(x.shape[2:], slices.Clone(weights.shape[2:]))
	if err != nil {
		return nil, err
	}
	out, err := w.output(x.shape[2:])
	if err != nil {
		return nil, err
	}
	groups := int(c.int("group", 1))
	if groups < 1 || weights.shape[1]*groups != x.shape[1] || weights.shape[0]%groups != 0 {
		return nil, fmt.Errorf("convolution of %v with %v in %d groups: %w", x, weights, groups, compute.ErrShape)
	}
	shape := slices.Concat([]int{x.shape[0], weights.shape[0]}, out)
	if err := host.CheckShape(shape); err != nil {
		return nil, err
	}
	index, _ := w.taps(x.shape[2:], out)
	return func(x, w *host.Tensor) (*host.Tensor, error) {
		xs, ws := x.Ints(), w.Ints()
		y := make([]int64, host.Len(shape))
		cells, taps, elements, per := host.Len(out), host.Len(w.Shape[2:]), host.Len(x.Shape[2:]), w.Shape[1]
		for i := range y {
			cell, o, n := i%cells, i/cells%shape[1], i/cells/shape[1]
			g := o / (shape[1] / groups)
			for ch := range per {
				plane := xs[(n*x.Shape[1]+g*per+ch)*elements:][:elements]
				filter := ws[(o*per+ch)*taps:][:taps]
				for k, at := range index[cell*taps:][:taps] {
					if at >= 0 {
						y[i] += plane[at] * filter[k]
					}
				}
			}
		}
		return host.FromInts(host.Int32, y, shape...), nil
	}, nil
}

func convInteger(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	f, err := c.integerConv(c.in[0], c.in[1])
	if err != nil {
		return nil, err
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		in = append(in, nil, nil)
		x, err := centered(in[0], in[2], 1)
		if err != nil {
			return nil, err
		}
		w, err := centered(in[1], in[3], 0)
		if err != nil {
			return nil, err
		}
		return f(x, w)
	}, c.in...)
}

func qlinearConv(c *call) ([]*Value, error) {
	if err := c.need(8); err != nil {
		return nil, err
	}
	f, err := c.integerConv(c.in[0], c.in[3])
	if err != nil {
		return nil, err
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		in = append(in, nil)
		x, err := centered(in[0], in[2], 1)
		if err != nil {
			return nil, err
		}
		w, err := centered(in[3], in[5], 0)
		if err != nil {
			return nil, err
		}
		sums, err := f(x, w)
		if err != nil {
			return nil, err
		}
		if in[8] != nil {
			if sums, err = host.Binary("Add", sums, in[8].Reshaped(append([]int{1, in[8].Len()}, slices.Repeat([]int{1}, len(sums.Shape)-2)...)...)); err != nil {
				return nil, err
			}
		}
		if in[1].Len() != 1 || in[6].Len() != 1 || in[7].Len() != 1 || !in[7].Kind.IsInteger() {
			return nil, fmt.Errorf("several scales: %w", compute.ErrUnsupported)
		}
		factors := in[4].Floats()
		for i := range factors {
			factors[i] *= in[1].Floats()[0] / in[6].Floats()[0]
		}
		at, err := perBlock(sums.Shape, in[4].Shape, 1, 0)
		if err != nil {
			return nil, err
		}
		return requantized(sums, factors, at, in[7]), nil
	}, c.in...)
}

// Losses: as compositions of rows.

func nllLoss(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, target, weight := c.in[0], c.in[1], c.arg(2)
	if c.Op == "SoftmaxCrossEntropyLoss" {
		if len(x.shape) < 2 {
			return nil, fmt.Errorf("scores %v: %w", x, compute.ErrShape)
		}
		p, err := c.rowsOp(x, 1, (*batch.Batch).LogSoftmax)
		if err != nil {
			return nil, err
		}
		loss, err := c.nll(p[0], target, weight)
		if err != nil {
			return nil, err
		}
		return append(loss, p[0]), nil
	}
	return c.nll(x, target, weight)
}

// nll picks −x at the targets along axis 1, and reduces.
func (c *call) nll(x, target, weight *Value) ([]*Value, error) {
	if len(x.shape) < 2 || len(target.shape) != len(x.shape)-1 || !deviceFloat(x.kind) {
		return nil, fmt.Errorf("targets %v of %v: %w", target, x, compute.ErrShape)
	}
	classes, inner := x.shape[1], host.Len(x.shape[2:])
	ignore, ignoring := c.int("ignore_index", 0), c.has("ignore_index")
	defer c.pin(x)()
	in := []*Value{target}
	if weight != nil {
		in = append(in, weight)
	}
	shape := target.shape
	made, err := c.onHost(c.Node.String(), 2, true, func(in []*host.Tensor) ([]*host.Tensor, error) {
		ids, w := in[0].Ints(), make([]float64, in[0].Len())
		var given []float64
		if len(in) > 1 {
			given = in[1].Floats()
			if len(given) != classes {
				return nil, fmt.Errorf("%d weights of %d classes: %w", len(given), classes, compute.ErrShape)
			}
		}
		at := make([]int64, len(ids))
		for i, id := range ids {
			if ignoring && id == ignore {
				continue
			}
			if id < 0 || id >= int64(classes) {
				return nil, fmt.Errorf("class %d of %d: %w", id, classes, compute.ErrArgument)
			}
			if w[i] = 1; given != nil {
				w[i] = given[id]
			}
			at[i] = (int64(i/inner*classes)+id)*int64(inner) + int64(i%inner)
		}
		return []*host.Tensor{host.OfInts(at, len(at)), host.FromFloats(host.Float, w, len(w))}, nil
	}, in...)
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(x, made[0], made[1])
	if err != nil {
		return nil, err
	}
	b := c.rec()
	picked := b.Gather(b.Reshape(d[0], host.Len(x.shape)), d[1])
	loss := b.Select(d[2], b.Neg(b.Mul(picked, d[2])), b.Scalar(0))
	switch c.text("reduction", "mean") {
	case "none":
		return c.made(x.kind, b.Reshape(loss, shape...))
	case "sum":
		return c.made(x.kind, b.Sum(loss))
	}
	return c.made(x.kind, b.Div(b.Sum(loss), b.Sum(d[2])))
}
