//go:build !js

package cuda

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// onMachine opens a device that keeps what it measures in dir.
func onMachine(t *testing.T, m *machine, dir string, opts ...Option) *Device {
	d, err := Open(t.Context(), append([]Option{m.on, WithCache(dir)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// product compiles a product of m×k and k×n ones.
func product(t *testing.T, d *Device, m, k, n int) (*batch.Plan, *batch.Result) {
	ones := func(rows, columns int) []float32 {
		s := make([]float32, rows*columns)
		for i := range s {
			s[i] = 1
		}
		return s
	}
	b := batch.New(d)
	y := b.Read(b.MatMul(b.Upload(ones(m, k), m, k), b.Upload(ones(k, n), k, n)))
	p, err := b.Compile(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, y
}

// choice is what a product of 20×33 and 33×24 takes on the device.
func choice(t *testing.T, d *Device) compute.Choice {
	p, y := product(t, d, 20, 33, 24)
	require.NoError(t, p.Start().Await(t.Context()))
	for _, v := range y.Float32s() {
		require.EqualValues(t, 33, v)
	}
	list := d.Choices()
	require.Len(t, list, 1)
	require.Equal(t, "matmul", list[0].Class)
	return list[0]
}

func TestTune(t *testing.T) {
	if testing.Short() { // for the race detector: what it measures, it measures one after the other
		t.Skip("tuning runs without -short")
	}
	dir, m := t.TempDir(), newMachine(t, softgpu.Config{})
	d := onMachine(t, m, dir)
	first := choice(t, d)
	require.Equal(t, "default", first.Why, "nothing is measured unasked")

	p, y := product(t, d, 20, 33, 24)
	list, err := p.Tune(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, first.Problem, list[0].Problem)
	require.Contains(t, list[0].Variants, list[0].Winner)
	require.Greater(t, len(list[0].Variants), 2)
	require.Positive(t, list[0].Median[0])
	measured := compute.Choice{Class: "matmul", Problem: first.Problem, Variant: list[0].Winner, Why: "measured", Uses: 1}
	require.True(t, slices.ContainsFunc(d.Choices(), func(c compute.Choice) bool {
		c.Uses = 1 // more where the default, which was in use before, is the fastest
		return c == measured
	}), "the plan was compiled anew")
	require.NoError(t, p.Start().Await(t.Context()))
	require.EqualValues(t, 33, y.Float32s()[0])

	require.Equal(t, measured, choice(t, onMachine(t, m, dir)), "another process benefits")
	require.Equal(t, first, choice(t, onMachine(t, m, dir, WithAutotune(compute.TuneOff))))
	for name, other := range map[string]softgpu.Config{"GPU": {Multiprocessors: 1}, "driver": {Version: 12060}, "architecture": {SM: 80}} {
		require.Equal(t, "default", choice(t, onMachine(t, newMachine(t, other), dir)).Why, "it was measured with another %s", name)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tune-*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestTuneWithoutCache(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	d := onMachine(t, m, t.TempDir(), WithoutCache(), WithAutotune(compute.TuneFirstUse))
	require.Equal(t, "measured", choice(t, d).Why)
	require.Equal(t, 2, choice(t, d).Uses, "in memory at least")
	require.Equal(t, "default", choice(t, onMachine(t, m, t.TempDir(), WithoutCache())).Why)
}

// A context that ends while variants are measured ends the measurement, and the plan stays what it was.
func TestTuneCancelled(t *testing.T) {
	d := onMachine(t, newMachine(t, softgpu.Config{}), t.TempDir())
	p, y := product(t, d, 100, 400, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	list, err := p.Tune(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, list)
	require.NoError(t, p.Start().Await(t.Context()))
	require.EqualValues(t, 400, y.Float32s()[0])
	require.Equal(t, "default", d.Choices()[0].Why)

	require.NoError(t, d.Close())
	_, err = p.Tune(t.Context())
	require.ErrorIs(t, err, compute.ErrClosed)
}

func TestForcedVariant(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	c := choice(t, onMachine(t, m, t.TempDir(), WithVariant("matmul", "tile64x64"), WithAutotune(compute.TuneFirstUse)))
	require.Equal(t, "tile64x64", c.Variant)
	require.Equal(t, "forced", c.Why)

	b := batch.New(onMachine(t, m, t.TempDir(), WithVariant("matmul", "unknown")))
	b.Read(b.MatMul(b.Upload([]float32{1}, 1, 1), b.Upload([]float32{1}, 1, 1)))
	_, err := b.Compile(t.Context())
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, `no variant "unknown"`)
	for name, o := range map[string]Option{"variant": WithVariant("matmul", ""), "mode": WithAutotune(3)} {
		_, err := Open(t.Context(), m.on, o)
		require.ErrorIs(t, err, compute.ErrArgument, name)
	}
}
