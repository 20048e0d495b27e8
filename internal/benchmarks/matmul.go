//go:build !js

package benchmarks

import (
	"context"
	"fmt"
	"os"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
)

func matmulVariants(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	own, ok := dev.Unwrap().(*gpu.Device)
	if !ok {
		return nil, fmt.Errorf("%s is no WebGPU device: %w", dev.Info().Name, compute.ErrUnsupported)
	}
	cache, err := os.MkdirTemp("", "wavelane-tune-") // measured anew, whatever this machine's cache says
	if err != nil {
		return nil, err
	}
	c.add(func() error { return os.RemoveAll(cache) })
	var ways []Way
	for _, v := range []struct {
		name string
		opts []gpu.Option
	}{
		{"tuned", []gpu.Option{gpu.WithAutotune(compute.TuneFirstUse), gpu.WithTuneCache(cache)}},
		{"default", []gpu.Option{gpu.WithAutotune(compute.TuneOff)}},
		{"naive", []gpu.Option{gpu.WithVariant("matmul", "naive")}},
	} {
		d, err := gpu.Open(ctx, append(v.opts, gpu.WithAdapter(own.Info().Index), gpu.WithSoftware())...)
		if err != nil {
			return nil, err
		}
		c.add(d.Close)
		a, err := upload(ctx, d, c, cube, cube)
		if err != nil {
			return nil, err
		}
		b, err := upload(ctx, d, c, cube, cube)
		if err != nil {
			return nil, err
		}
		w, err := resident(ctx, d, c, v.name, 2*float64(cube*cube*cube)/1e9,
			func(rec *batch.Batch, in []batch.Value) batch.Value { return rec.MatMul(in[0], in[1]) }, a, b)
		if err != nil {
			return nil, err
		}
		ways = append(ways, w)
	}
	return ways, nil
}

func matmulLoop(_ context.Context, dev *wavelane.Device, _ *cleanups) ([]Way, error) {
	const n = 512
	a, b, y := random(n*n), random(n*n), make([]float32, n*n)
	return []Way{
		{Name: "device", Work: 2 * n * n * n / 1e9, run: func(ctx context.Context) error { return dev.MatMul(ctx, y, a, b, n, n, n) }},
		{Name: "plain loop", Work: 2 * n * n * n / 1e9, run: func(context.Context) error {
			for i := range n {
				for j := range n {
					var sum float32
					for k := range n {
						sum += a[i*n+k] * b[k*n+j]
					}
					y[i*n+j] = sum
				}
			}
			return nil
		}},
	}, nil
}
