package misuse

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
)

// memory is the limit of each device.
const memory = 256 << 20

// machine is an open device, with tensors to pass to it.
type machine struct {
	name    string
	device  batch.Device
	ops     compute.Ops
	tensors []compute.Tensor // its own, open
	strange []compute.Tensor // nil, closed, and of other devices
}

// cacheDir is a directory for what a device keeps. Unlike t.TempDir's it may still be written to when the test ends: closing a device
// waits for no call, not for those either that were left at their deadlines.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "misuse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}

// machines opens the CPU, a software WebGPU adapter, and the software GPU of CUDA.
func machines(t *testing.T) []*machine {
	t.Helper()
	ctx := context.Background()
	c, err := cpu.Open(ctx, cpu.WithMemoryLimit(memory))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	g, err := gpu.Open(ctx, gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff), gpu.WithMemoryLimit(memory))
	if err != nil {
		t.Fatal("no software WebGPU adapter: 'scripts/setup test' installs one: ", err)
	}
	t.Cleanup(func() { g.Close() })
	n, err := cuda.Open(ctx, cuda.WithSoftware(), cuda.WithCache(cacheDir(t)), cuda.WithMemoryLimit(memory))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	all := []*machine{
		{name: "cpu", device: c, ops: c.Ops},
		{name: "webgpu", device: g, ops: g.Ops},
		{name: "cuda", device: n, ops: n.Ops},
	}
	upload := func(m *machine, data any, shape ...int) compute.Tensor {
		x, err := m.ops.Upload(ctx, data, shape...)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, m := range all {
		m.tensors = []compute.Tensor{upload(m, []float32{1, 2, 3, 4}, 2, 2), upload(m, []int32{0, 1}), upload(m, []float32{}), upload(m, []compute.F16{0, 1, 2, 3})}
		closed := upload(m, []float32{1, 2, 3, 4}, 2, 2)
		closed.Close()
		m.strange = []compute.Tensor{nil, closed, (*cpu.Tensor)(nil), (*gpu.Tensor)(nil), (*cuda.Tensor)(nil), &cpu.Tensor{}, &gpu.Tensor{}, &cuda.Tensor{}}
	}
	for i, m := range all {
		m.strange = append(m.strange, all[(i+1)%3].tensors[0], all[(i+2)%3].tensors[0])
	}
	return all
}
