package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

func mapsWithout(m map[string]*format.Attribute, name string) map[string]*format.Attribute {
	out := map[string]*format.Attribute{}
	for k, v := range m {
		if k != name {
			out[k] = v
		}
	}
	return out
}

// perChannel is a vector of channels as it is broadcast to [n, channels, …].
func perChannel(b *batch.Batch, x batch.Value, rank int) batch.Value {
	return b.Reshape(x, append([]int{1, host.Len(b.Shape(x))}, slices.Repeat([]int{1}, max(rank-2, 0))...)...)
}

func batchNorm(c *call) ([]*Value, error) {
	if err := c.need(5); err != nil {
		return nil, err
	}
	x, scale, bias, mean, variance := c.in[0], c.in[1], c.in[2], c.in[3], c.in[4]
	eps := c.float("epsilon", 1e-5)
	training := c.int("training_mode", 0) != 0
	if len(x.shape) < 1 || !deviceFloat(x.kind) {
		return nil, fmt.Errorf("normalisation of %v: %w", x, compute.ErrUnsupported)
	}
	rank := len(x.shape)
	if !training && scale.known && bias.known && mean.known && variance.known { // a factor and a summand
		s, m, v, o := scale.t.Floats(), mean.t.Floats(), variance.t.Floats(), bias.t.Floats()
		if len(s) != len(m) || len(m) != len(v) || len(v) != len(o) {
			return nil, fmt.Errorf("vectors of %d, %d, %d, %d channels: %w", len(s), len(o), len(m), len(v), compute.ErrShape)
		}
		key := fmt.Sprint("norm", eps)
		factors := c.s.derive(scale, key, func(*host.Tensor) *host.Tensor {
			out := make([]float64, len(s))
			for i := range out {
				out[i] = s[i] / sqrt(v[i]+float64(eps))
			}
			return host.FromFloats(host.Float, out, len(out))
		})
		f := factors.t.Floats()
		summands := c.s.derive(bias, key, func(*host.Tensor) *host.Tensor {
			out := make([]float64, len(s))
			for i := range out {
				out[i] = o[i] - m[i]*f[i]
			}
			return host.FromFloats(host.Float, out, len(out))
		})
		if x.conv != nil && c.sole(0) && !c.recorded(x) && perOutput(factors, x.shape[1], 2) && perOutput(summands, x.shape[1], 2) {
			return []*Value{c.absorbed(x, factors, summands)}, nil
		}
		d, err := c.devAll(x, factors, summands)
		if err != nil {
			return nil, err
		}
		b := c.rec()
		return c.made(x.kind, b.FMA(d[0], perChannel(b, d[1], rank), perChannel(b, d[2], rank)))
	}
	d, err := c.devAll(x, scale, bias, mean, variance)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	m, v := d[3], d[4]
	var out []*Value
	if training {
		var axes []int
		for k := range rank {
			if k != 1 {
				axes = append(axes, k)
			}
		}
		mv, err := c.reducedOnDevice(x, axes, false, deviceReduce["Mean"])
		if err != nil {
			return nil, err
		}
		m2, err := c.dev(mv)
		if err != nil {
			return nil, err
		}
		centered := b.Sub(d[0], perChannel(b, m2, rank))
		vv, err := c.reducedOnDevice(c.device(host.Float, b.Mul(centered, centered)), axes, false, deviceReduce["Mean"])
		if err != nil {
			return nil, err
		}
		v2, err := c.dev(vv)
		if err != nil {
			return nil, err
		}
		momentum := c.float("momentum", 0.9)
		out = append(out, c.device(mean.kind, b.Add(b.Scale(m, momentum), b.Scale(m2, 1-momentum))),
			c.device(variance.kind, b.Add(b.Scale(v, momentum), b.Scale(v2, 1-momentum))))
		m, v = m2, v2
	}
	factor := b.Div(d[1], b.Sqrt(b.Add(v, b.Scalar(eps))))
	y := b.Add(b.Mul(b.Sub(d[0], perChannel(b, m, rank)), perChannel(b, factor, rank)), perChannel(b, d[2], rank))
	return append([]*Value{c.device(x.kind, y)}, out...), nil
}

// normalised brings rows to mean 0 and variance 1.
func normalised(b *batch.Batch, x batch.Value, eps float32) batch.Value {
	shape := b.Shape(x)
	n := shape[len(shape)-1]
	return b.LayerNorm(x, b.Fill(1, n), b.Fill(0, n), eps)
}

func instanceNorm(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x := c.in[0]
	if len(x.shape) < 2 || !deviceFloat(x.kind) || host.Len(x.shape) == 0 {
		return nil, fmt.Errorf("normalisation of %v: %w", x, compute.ErrUnsupported)
	}
	d, err := c.devAll(c.in[:3]...)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	rank := len(x.shape)
	y := normalised(b, b.Reshape(d[0], x.shape[0]*x.shape[1], host.Len(x.shape[2:])), c.float("epsilon", 1e-5))
	y = b.FMA(b.Reshape(y, x.shape...), perChannel(b, d[1], rank), perChannel(b, d[2], rank))
	return c.made(x.kind, y)
}

func groupNorm(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, groups := c.in[0], int(c.int("num_groups", 0))
	if len(x.shape) < 2 || !deviceFloat(x.kind) || host.Len(x.shape) == 0 || groups < 1 || x.shape[1]%groups != 0 {
		return nil, fmt.Errorf("normalisation of %v in %d groups: %w", x, groups, compute.ErrUnsupported)
	}
	d, err := c.devAll(c.in[:3]...)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	rank := len(x.shape)
	y := normalised(b, b.Reshape(d[0], x.shape[0]*groups, host.Len(x.shape[1:])/groups), c.float("epsilon", 1e-5))
	y = b.Reshape(y, x.shape...)
	scale, bias := d[1], d[2]
	if host.Len(c.in[1].shape) == groups && groups != x.shape[1] { // as in operator set 18: a number for each group
		per := x.shape[1] / groups
		scale = b.Reshape(expanded(b, b.Reshape(scale, groups, 1), []int{groups, per}), x.shape[1])
		bias = b.Reshape(expanded(b, b.Reshape(bias, groups, 1), []int{groups, per}), x.shape[1])
	}
	return c.made(x.kind, b.FMA(y, perChannel(b, scale, rank), perChannel(b, bias, rank)))
}

func layerNorm(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, scale, bias := c.in[0], c.in[1], c.arg(2)
	axis, err := c.axis("axis", -1, len(x.shape))
	if err != nil || len(x.shape) == 0 || !deviceFloat(x.kind) || host.Len(x.shape) == 0 {
		return nil, fmt.Errorf("normalisation of %v: %w", x, compute.ErrUnsupported)
	}
	d, err := c.devAll(x, scale, bias)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	eps := c.float("epsilon", 1e-5)
	outer, inner := host.Len(x.shape[:axis]), host.Len(x.shape[axis:])
	rows := b.Reshape(d[0], outer, inner)
	var y batch.Value
	if host.Len(scale.shape) == inner && (bias == nil || host.Len(bias.shape) == inner) {
		beta := b.Fill(0, inner)
		if bias != nil {
			beta = b.Reshape(d[2], inner)
		}
		y = b.Reshape(b.LayerNorm(rows, b.Reshape(d[1], inner), beta, eps), x.shape...)
	} else {
		y = b.Mul(b.Reshape(normalised(b, rows, eps), x.shape...), d[1])
		if bias != nil {
			y = b.Add(y, d[2])
		}
	}
	out := []*Value{c.device(x.kind, y)}
	if c.wants(1) || c.wants(2) {
		shape := slices.Concat(x.shape[:axis], slices.Repeat([]int{1}, len(x.shape)-axis))
		mean := b.Mean(rows, compute.LastAxis)
		centered := b.Sub(rows, b.Reshape(mean, outer, 1))
		deviation := b.Recip(b.Sqrt(b.Add(b.Mean(b.Mul(centered, centered), compute.LastAxis), b.Scalar(eps))))
		out = append(out, c.device(host.Float, b.Reshape(mean, shape...)), c.device(host.Float, b.Reshape(deviation, shape...)))
	}
	return out, nil
}

func rmsNorm(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, scale := c.in[0], c.in[1]
	axis, err := c.axis("axis", -1, len(x.shape))
	if err != nil || len(x.shape) == 0 || !deviceFloat(x.kind) || host.Len(x.shape) == 0 {
		return nil, fmt.Errorf("normalisation of %v: %w", x, compute.ErrUnsupported)
	}
	d, err := c.devAll(x, scale)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	eps := c.float("epsilon", 1e-5)
	outer, inner := host.Len(x.shape[:axis]), host.Len(x.shape[axis:])
	rows := b.Reshape(d[0], outer, inner)
	if host.Len(scale.shape) == inner {
		return c.made(x.kind, b.Reshape(b.RMSNorm(rows, b.Reshape(d[1], inner), eps), x.shape...))
	}
	return c.made(x.kind, b.Mul(b.Reshape(b.RMSNorm(rows, b.Fill(1, inner), eps), x.shape...), d[1]))
}

func lpNorm(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	axis, err := c.axis("axis", -1, len(x.shape))
	if err != nil {
		return nil, err
	}
	p := c.int("p", 2)
	return c.rowsOp(x, axis, func(b *batch.Batch, x batch.Value) batch.Value {
		shape := b.Shape(x)
		column := append(slices.Clone(shape[:len(shape)-1]), 1)
		norm := b.NormL2(x, compute.LastAxis)
		if p == 1 {
			norm = b.NormL1(x, compute.LastAxis)
		}
		norm = b.Reshape(norm, column...)
		return b.Select(b.Equal(norm, b.Scalar(0)), b.Scalar(0), b.Div(x, norm))
	})
}

func meanVariance(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	given := c.ints("axes")
	if given == nil {
		given = []int64{0, 2, 3}
	}
	axes, err := host.Axes(given, len(x.shape))
	if err != nil {
		return nil, err
	}
	if !deviceFloat(x.kind) {
		return nil, fmt.Errorf("normalisation of %v: %w", x, compute.ErrUnsupported)
	}
	mean, err := c.reducedOnDevice(x, axes, true, deviceReduce["Mean"])
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(x, mean)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	centered := b.Sub(d[0], d[1])
	variance, err := c.reducedOnDevice(c.device(x.kind, b.Mul(centered, centered)), axes, true, deviceReduce["Mean"])
	if err != nil {
		return nil, err
	}
	v, err := c.dev(variance)
	if err != nil {
		return nil, err
	}
	return c.made(x.kind, b.Div(centered, b.Add(b.Sqrt(v), b.Scalar(1e-9))))
}

// lrn is the local response normalisation: sums of squares over neighbouring channels.
func lrn(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x, size := c.in[0], int(c.int("size", 1))
	if len(x.shape) < 2 || size < 1 || size > mostWindow {
		return nil, fmt.Errorf("%d channels of %v: %w", size, x, compute.ErrArgument)
	}
	alpha, beta, bias := c.float("alpha", 1e-4), c.float("beta", 0.75), c.float("bias", 1)
	return c.onFloat(x, func(b *batch.Batch, d batch.Value) batch.Value {
		shape := []int{x.shape[0], x.shape[1], host.Len(x.shape[2:])}
		squares := b.Pad(b.Reshape(b.Mul(d, d), shape...), compute.PadOptions{Before: []int{0, (size - 1) / 2, 0}, After: []int{0, size / 2, 0}})
		mean := b.AvgPool2D(squares, compute.PoolOptions{Size: [2]int{size, 1}, Stride: [2]int{1, 1}})
		return b.Div(d, b.PowScalar(b.Add(b.Scale(b.Reshape(mean, x.shape...), alpha), b.Scalar(bias)), beta))
	})
}
