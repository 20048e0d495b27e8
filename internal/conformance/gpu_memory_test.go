package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/wgsl"
)

// A batch whose values are all larger than a binding, and larger than what one dispatch covers, has the results of the CPU device,
// whether values share memory or not.
func TestWebGPUOversizedBatches(t *testing.T) {
	caps := wgsl.DefaultCaps
	caps.MaxBinding, caps.MaxWorkgroups = 1<<14, 64
	_, small := openSoftware(t, ", bindings of 16 KiB", gpu.WithLimits(caps))
	_, cpu := openCPU(t)
	const rows, cols = 100, 700
	r := newSource(Seed(), "oversized", 0)
	x, w := r.integers(-3, 3, rows, cols).data, r.integers(-3, 3, cols, 36).data
	results := func(d batch.Device, options ...batch.Option) (all [][]float32) {
		b := batch.New(d, options...)
		a := b.Upload(x, rows, cols)
		y := a
		for range 3 {
			y = b.Add(b.ReLU(b.Scale(y, 2)), a)
		}
		read := []*batch.Result{b.Read(y), b.Read(b.MatMul(y, b.Upload(w, cols, 36))), b.Read(b.Sum(y)), b.Read(b.Max(b.Transpose(y), 0))}
		require.NoError(t, b.Start().Await(t.Context()))
		for _, one := range read {
			all = append(all, one.Float32s())
		}
		return all
	}
	want := results(cpu)
	for _, options := range [][]batch.Option{nil, {batch.WithoutMemoryPlanning()}} {
		for i, got := range results(small, options...) {
			require.True(t, slices.Equal(want[i], got), "result %d\nrepeat with WAVELANE_SEED=%d", i, Seed())
		}
	}
}

func TestWebGPUMemory(t *testing.T) {
	name, d := openSoftware(t, "")
	testMemory(t, name, d)
	testForks(t, name, d)
}

func TestWebGPUVariesFused(t *testing.T) {
	name, d := openSoftware(t, "")
	testVaryFused(t, name, d)
}
