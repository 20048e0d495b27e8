//go:build !js

package gpu

import (
	"context"

	"github.com/wavelane/wavelane/compute"
)

// NewKernel is [NewKernelAsync] and waits. Without an error the kernel works.
func NewKernel(dev *Device, desc KernelDesc) (*Kernel, error) {
	k, f := NewKernelAsync(dev, desc)
	if err := f.Await(context.Background()); err != nil {
		return nil, err
	}
	return k, nil
}

// Run is [Kernel.RunAsync] and waits. When ctx ends first, dst is the caller's again.
func (k *Kernel) Run(ctx context.Context, l Launch, dst any, args ...any) error {
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	return k.RunAsync(l, dst, args...).AwaitOrAbandon(ctx)
}
