//go:build !js

package benchmarks

import (
	"context"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// link is an operation of the chain, as it is recorded and as it is called.
type link struct {
	record func(b *batch.Batch, x batch.Value) batch.Value
	call   func(ctx context.Context, dev *wavelane.Device, y, x []float32) error
}

var links = []link{
	{func(b *batch.Batch, x batch.Value) batch.Value { return b.Scale(x, 0.99) },
		func(ctx context.Context, dev *wavelane.Device, y, x []float32) error {
			return dev.Scale(ctx, y, x, 0.99)
		}},
	{(*batch.Batch).Neg, func(ctx context.Context, dev *wavelane.Device, y, x []float32) error { return dev.Neg(ctx, y, x) }},
	{(*batch.Batch).ReLU, func(ctx context.Context, dev *wavelane.Device, y, x []float32) error { return dev.ReLU(ctx, y, x) }},
	{func(b *batch.Batch, x batch.Value) batch.Value { return b.Clip(x, -0.5, 0.5) },
		func(ctx context.Context, dev *wavelane.Device, y, x []float32) error {
			return dev.Clip(ctx, y, x, -0.5, 0.5)
		}},
}

func chain(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	const steps = 16
	n := fitting(dev, million)
	work := steps * 2 * 4 * float64(n) / 1e9
	x, y := random(n), make([]float32, n)

	var plans []*batch.Plan
	for _, options := range [][]batch.Option{nil, {batch.WithoutFusion()}} {
		b := batch.New(dev, options...)
		v := b.Upload(x)
		for i := range steps {
			v = links[i%len(links)].record(b, v)
		}
		b.ReadInto(v, y)
		plan, err := b.Compile(ctx)
		if err != nil {
			return nil, err
		}
		c.add(plan.Close)
		plans = append(plans, plan)
	}

	return []Way{
		{Name: "one batch", Work: work, run: plans[0].Run},
		{Name: "without fusion", Work: work, run: plans[1].Run},
		{Name: "16 submissions", Work: work, run: func(ctx context.Context) error { return submissions(ctx, dev, x, y, steps) }},
		{Name: "16 calls", Work: work, run: func(ctx context.Context) error {
			from := x
			for i := range steps {
				if err := links[i%len(links)].call(ctx, dev, y, from); err != nil {
					return err
				}
				from = y
			}
			return nil
		}},
	}, nil
}

// submissions runs the chain with a batch for each operation; data crosses to the device and back only once.
func submissions(ctx context.Context, dev *wavelane.Device, x, y []float32, steps int) error {
	t, err := dev.Upload(ctx, x)
	if err != nil {
		return err
	}
	for i := range steps {
		b := batch.New(dev)
		next := b.Keep(links[i%len(links)].record(b, b.Import(t)))
		if err := b.Run(ctx); err != nil {
			return err
		}
		t.Close()
		t = next.Tensor()
	}
	defer t.Close()
	return compute.Read(ctx, t, y)
}
