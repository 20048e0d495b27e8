package batch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// wide records a step that needs much more memory than those before and after it.
func wide(b *batch.Batch) *batch.Result {
	x := b.Upload(make([]float32, 64), 64, 1)
	y := b.Upload(make([]float32, 64), 1, 64)
	small := b.ReLU(x)
	large := b.Add(b.MatMul(small, y), y)
	return b.Read(b.ReLU(b.Sum(large)))
}

func TestMemoryOfAPlan(t *testing.T) {
	dev := open(t)
	b := batch.New(dev, batch.WithoutFusion())
	wide(b)
	plan, err := b.Compile(t.Context())
	require.NoError(t, err)
	defer plan.Close()
	m := plan.Memory()
	require.Equal(t, 2*64*4, m.Inputs)
	require.Equal(t, 4, m.Results)
	require.GreaterOrEqual(t, m.Peak, 64*64*4, "the product")
	require.Less(t, m.Peak, 2*64*64*4, "the sum lies where the product was")
	require.Contains(t, []int{1, 2, 3}, m.Step)
	require.Contains(t, m.At, "[64 64]")

	apart := batch.New(dev, batch.WithoutFusion(), batch.WithoutMemoryPlanning())
	wide(apart)
	separate, err := apart.Compile(t.Context())
	require.NoError(t, err)
	defer separate.Close()
	require.Greater(t, separate.Memory().Peak, m.Peak)

	none := batch.New(dev)
	none.Read(none.ReLU(none.Upload([]float32{1})))
	direct, err := none.Compile(t.Context())
	require.NoError(t, err)
	defer direct.Close()
	require.Equal(t, batch.Memory{Inputs: 4, Results: 4, Step: -1}, direct.Memory(), "from slice to slice")
}

func TestMemoryLimit(t *testing.T) {
	dev := open(t)
	b := batch.New(dev, batch.WithMemoryLimit(10_000))
	out := wide(b)
	_, err := b.Compile(t.Context())
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	require.ErrorContains(t, err, "the limit is 10000")
	require.ErrorContains(t, err, "bytes of memory are needed, most in step ")
	require.ErrorContains(t, err, "(recorded at ")
	require.ErrorContains(t, err, "memory_test.go:")
	require.ErrorContains(t, err, "[64 64]")
	require.ErrorIs(t, run(b), compute.ErrOutOfMemory)
	require.Nil(t, out.Float32s())
	for _, limit := range []uint64{0, 100_000} {
		b = batch.New(dev, batch.WithMemoryLimit(limit))
		out = wide(b)
		require.NoError(t, run(b))
		require.NotNil(t, out.Float32s())
	}
}

func TestStepsOfADeviceWithoutLaunches(t *testing.T) {
	b := batch.New(open(t))
	wide(b)
	plan, err := b.Compile(context.Background())
	require.NoError(t, err)
	_, err = plan.Steps()
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.NoError(t, plan.Close())
}
