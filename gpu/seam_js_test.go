package gpu

import (
	"context"
	"testing"
	"time"

	"github.com/wavelane/wavelane/compute"
)

// The waiting methods that browsers do not have: tests run in goroutines, which may wait.

func NewKernel(ctx context.Context, dev *Device, desc KernelDesc) (*Kernel, error) {
	k, f := NewKernelAsync(dev, desc)
	if err := f.Await(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *Kernel) Run(ctx context.Context, l Launch, dst any, args ...any) error {
	return k.RunAsync(l, dst, args...).AwaitOrAbandon(ctx)
}

func (d *Device) Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, error) {
	t, f := d.UploadAsync(data, shape...)
	if err := f.Await(ctx); err != nil {
		if t != nil {
			t.Close()
		}
		return nil, err
	}
	return t, nil
}

func (d *Device) ReLU(ctx context.Context, y, x []float32) error {
	return d.ReLUAsync(y, x).AwaitOrAbandon(ctx)
}

// What the tests of both drivers ask of this one.

const noAdapter = "these tests need a browser with a software adapter; see internal/browser"

// tuneDir is where nothing can be written: pages have no files.
func tuneDir(testing.TB) string { return "/nowhere" }

// lose makes the browser lose the device, and returns what its error says.
func lose(d *Device) string {
	d.GPUDevice().Call("destroy")
	return "destroyed"
}

// many is how often tests repeat what a race could break: there is one thread, and each time takes milliseconds.
const many = 30

// slowRounds keeps the software device busy for a good part of a second.
const slowRounds = 500

// yield gives the thread to the event loop.
func yield() { time.Sleep(20 * time.Millisecond) }
