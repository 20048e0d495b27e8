package batch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
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

// silent is a device whose programs do not tell what memory they need.
type silent struct{ batch.Device }

type silentProgram struct{ x program.Executable }

func (s silent) Executor() program.Executor { return s }

func (s silent) Compile(p *program.Program) (program.Executable, error) {
	x, err := s.Device.Executor().Compile(p)
	return silentProgram{x}, err
}

func (s silentProgram) Start(io *program.IO) *compute.Future { return s.x.Start(io) }
func (s silentProgram) Close() error                         { return s.x.Close() }

func TestMemoryLimitOfADeviceThatDoesNotTell(t *testing.T) {
	b := batch.New(silent{open(t)}, batch.WithMemoryLimit(1<<40))
	wide(b)
	require.ErrorIs(t, run(b), compute.ErrUnsupported)
	b = batch.New(silent{open(t)})
	out := wide(b)
	plan, err := b.Compile(context.Background())
	require.NoError(t, err)
	require.Equal(t, -1, plan.Memory().Step)
	require.NoError(t, plan.Start().Await(context.Background()))
	require.NotNil(t, out.Float32s())
	require.NoError(t, plan.Close())
}
