//go:build !js

package benchmarks

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
)

func pipelineCache(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	own, ok := dev.Unwrap().(*gpu.Device)
	if !ok {
		return nil, fmt.Errorf("%s is no WebGPU device: %w", dev.Info().Name, compute.ErrUnsupported)
	}
	x := random(64)
	y := make([]float32, len(x))
	var fresh *gpu.Device
	closeFresh := func() error {
		if fresh == nil {
			return nil
		}
		return fresh.Close()
	}
	c.add(closeFresh)
	return []Way{
		{Name: "hit", run: func(ctx context.Context) error { return own.GELU(ctx, y, x) }},
		{Name: "miss",
			before: func(ctx context.Context) (err error) { // a device that has done another operation, but not this one
				if err = closeFresh(); err != nil {
					return err
				}
				if fresh, err = gpu.Open(ctx, gpu.WithAdapter(own.Info().Index), gpu.WithSoftware()); err != nil {
					return err
				}
				return fresh.Neg(ctx, y, x)
			},
			run: func(ctx context.Context) error { return fresh.GELU(ctx, y, x) }},
	}, nil
}
