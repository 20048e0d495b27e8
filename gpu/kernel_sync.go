//go:build !js

package gpu

import (
	"context"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// NewKernel is [NewKernelAsync] and waits. Without an error the kernel works. When ctx ends first it returns ctx.Err().
func NewKernel(ctx context.Context, dev *Device, desc KernelDesc) (*Kernel, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	return program.Within(ctx, func() (*Kernel, error) {
		k, f := NewKernelAsync(dev, desc)
		return k, f.Await(ctx)
	}, func(*Kernel) {})
}

// Run is [Kernel.RunAsync] and waits. When ctx ends first, dst is the caller's again.
func (k *Kernel) Run(ctx context.Context, l Launch, dst any, args ...any) error {
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	return k.run(ctx, l, dst, args).AwaitOrAbandon(ctx)
}
