//go:build !js

package benchmarks

import (
	"context"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// step is a way of one operation for the benchmarks of bandwidth; passes counts the operand-sized reads and writes.
type step struct {
	name   string
	passes float64
	record func(b *batch.Batch, in []batch.Value) batch.Value
}

func bandwidth(ctx context.Context, dev *wavelane.Device, c *cleanups, tensors []compute.Tensor, n int, steps []step) ([]Way, error) {
	var ways []Way
	for _, s := range steps {
		w, err := resident(ctx, dev, c, s.name, s.passes*4*float64(n)/1e9, s.record, tensors...)
		if err != nil {
			return nil, err
		}
		ways = append(ways, w)
	}
	return ways, nil
}

func elementwise(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	tensors, err := vectors(ctx, dev, c)
	if err != nil {
		return nil, err
	}
	return bandwidth(ctx, dev, c, tensors, fitting(dev, long), []step{
		{"copy", 2, func(b *batch.Batch, in []batch.Value) batch.Value { return b.Copy(in[0]) }},
		{"add", 3, func(b *batch.Batch, in []batch.Value) batch.Value { return b.Add(in[0], in[1]) }},
		{"gelu", 2, func(b *batch.Batch, in []batch.Value) batch.Value { return b.GELU(in[0]) }},
	})
}

func reduce(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	tensors, err := vectors(ctx, dev, c)
	if err != nil {
		return nil, err
	}
	return bandwidth(ctx, dev, c, tensors, fitting(dev, long), []step{
		{"sum", 1, func(b *batch.Batch, in []batch.Value) batch.Value { return b.Sum(in[0]) }},
		{"max", 1, func(b *batch.Batch, in []batch.Value) batch.Value { return b.Max(in[0]) }},
		{"argmax", 1, func(b *batch.Batch, in []batch.Value) batch.Value { return b.ArgMax(in[0]) }},
		{"dot", 2, func(b *batch.Batch, in []batch.Value) batch.Value { return b.Dot(in[0], in[1]) }},
	})
}

func vectors(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]compute.Tensor, error) {
	a, err := upload(ctx, dev, c, fitting(dev, long))
	if err != nil {
		return nil, err
	}
	b, err := upload(ctx, dev, c, fitting(dev, long))
	return []compute.Tensor{a, b}, err
}

func rows(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	const cols = 1024
	rows := fitting(dev, 4096)
	x, err := upload(ctx, dev, c, rows, cols)
	if err != nil {
		return nil, err
	}
	gamma, err := upload(ctx, dev, c, cols)
	if err != nil {
		return nil, err
	}
	return bandwidth(ctx, dev, c, []compute.Tensor{x, gamma}, rows*cols, []step{
		{"softmax", 2, func(b *batch.Batch, in []batch.Value) batch.Value { return b.Softmax(in[0]) }},
		{"layer_norm", 2, func(b *batch.Batch, in []batch.Value) batch.Value { return b.LayerNorm(in[0], in[1], in[1], 1e-5) }},
		{"rms_norm", 2, func(b *batch.Batch, in []batch.Value) batch.Value { return b.RMSNorm(in[0], in[1], 1e-5) }},
	})
}
