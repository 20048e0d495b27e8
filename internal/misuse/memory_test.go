package misuse

import (
	"context"
	"errors"
	"testing"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
)

// A limit of memory is an error on every device when it is reached, and what is closed can be used again.
func TestMemoryLimits(t *testing.T) {
	const limit, tensor = 8 << 20, 1 << 20 // bytes
	ctx := t.Context()
	for name, open := range map[string]func(t *testing.T) (compute.Ops, func() error){
		"cpu": func(t *testing.T) (compute.Ops, func() error) {
			d := must[*cpu.Device](t)(cpu.Open(ctx, cpu.WithMemoryLimit(limit)))
			return d.Ops, d.Close
		},
		"webgpu": func(t *testing.T) (compute.Ops, func() error) {
			d := must[*gpu.Device](t)(gpu.Open(ctx, gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff), gpu.WithMemoryLimit(limit)))
			return d.Ops, d.Close
		},
		"cuda": func(t *testing.T) (compute.Ops, func() error) {
			d := must[*cuda.Device](t)(cuda.Open(ctx, cuda.WithSoftware(), cuda.WithoutCache(), cuda.WithMemoryLimit(limit)))
			return d.Ops, d.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			ops, closeDevice := open(t)
			defer closeDevice()
			for round := range 3 {
				var all []compute.Tensor
				var err error
				for err == nil && len(all) <= limit/tensor {
					var x compute.Tensor
					if x, err = ops.Upload(ctx, make([]float32, tensor/4)); err == nil {
						all = append(all, x)
					}
				}
				if !errors.Is(err, compute.ErrOutOfMemory) || len(all) == 0 {
					t.Errorf("round %d: after %d tensors: %v", round, len(all), err)
				}
				for _, x := range all {
					x.Close()
				}
			}
			x := make([]float32, tensor/4)
			if err := ops.ReLU(context.Background(), x, x); err != nil {
				t.Errorf("after tensors are closed: %v", err)
			}
			if err := ops.ReLU(context.Background(), make([]float32, 2*limit/4), make([]float32, 2*limit/4)); name != "cpu" && !errors.Is(err, compute.ErrOutOfMemory) {
				t.Errorf("an operation beyond the limit: %v", err) // the CPU reads and writes in place
			}
		})
	}
}
