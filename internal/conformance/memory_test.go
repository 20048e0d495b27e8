package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// testMemory has a network of 64 layers, and holds the memory of its plan against the room of three activations. Shared memory must
// not show.
func testMemory(t *testing.T, name string, d batch.Device) {
	const layers, rows, width = 64, 8, 64
	const activation = 4 * rows * width
	r := newSource(Seed(), "memory", 0)
	upload := func(shape ...int) compute.Tensor {
		x, f := device.Upload(context.Background(), program.ExecutorOf(d), r.floats(-0.25, 0.25, shape...).data, shape...)
		err := f.Await(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { x.Close() })
		return x
	}
	weights := []compute.Tensor{upload(width, width), upload(width, width), upload(width, width)}
	bias := upload(width)
	x := r.floats(-1, 1, rows, width).data
	record := func(options ...batch.Option) (*batch.Batch, *batch.Result) {
		b := batch.New(d, options...)
		h := b.Upload(x, rows, width)
		for i := range layers {
			h = b.ReLU(b.Add(b.MatMul(h, b.Import(weights[i%len(weights)])), b.Import(bias)))
		}
		return b, b.Read(h)
	}
	var memory [2]batch.Memory
	var results [2][]float32
	for i, options := range [][]batch.Option{{batch.WithoutMemoryPlanning()}, nil} {
		b, out := record(options...)
		plan, err := b.Compile(t.Context())
		require.NoError(t, err)
		memory[i] = plan.Memory()
		require.NoError(t, plan.Start().Await(t.Context()))
		results[i] = out.Float32s()
		require.NoError(t, plan.Close())
	}
	require.Equal(t, results[0], results[1], "%s: with and without sharing\nrepeat with WAVELANE_SEED=%d", name, Seed())
	require.GreaterOrEqual(t, memory[0].Peak, (layers-1)*activation, "%s: a value of each layer", name)
	m := memory[1]
	t.Logf("%s: %d bytes without sharing, %d with, at step %d, %s; three activations are %d", name, memory[0].Peak, m.Peak, m.Step, m.At, 3*activation)
	require.LessOrEqual(t, m.Peak, 3*activation, name)
	require.GreaterOrEqual(t, m.Peak, activation, name)
	require.Equal(t, activation, m.Inputs)
	require.Equal(t, activation, m.Results)

	// The limit is met exactly, and one byte less is refused with the peak and the step.
	b, _ := record(batch.WithMemoryLimit(uint64(m.Peak)))
	plan, err := b.Compile(t.Context())
	require.NoError(t, err)
	require.NoError(t, plan.Close())
	b, _ = record(batch.WithMemoryLimit(uint64(m.Peak - 1)))
	_, err = b.Compile(t.Context())
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	require.ErrorContains(t, err, m.At)
	require.ErrorIs(t, b.Start().Await(t.Context()), compute.ErrOutOfMemory)
}

// testForks has runs of one program in flight together, each with inputs and results of its own.
func testForks(t *testing.T, name string, d batch.Device) {
	const n, forks, rounds = 40, 3, 4
	b := batch.New(d)
	x := b.Upload(make([]float32, n))
	y := b.Scale(x, 3)
	square := b.Mul(y, y)
	results := []*batch.Result{b.Read(y), b.Read(b.Add(square, b.ReLU(y))), b.Read(b.Sum(square))}
	plans := make([]*batch.Plan, forks)
	own := make([][]*batch.Result, forks)
	var err error
	for i := range plans {
		if i == 0 {
			plans[i], err = b.Compile(t.Context())
		} else {
			plans[i], err = plans[0].Fork()
		}
		require.NoError(t, err)
		for _, r := range results {
			mine, err := plans[i].Result(r)
			require.NoError(t, err)
			own[i] = append(own[i], mine)
		}
	}
	for round := range rounds {
		futures := make([]*compute.Future, forks)
		for i, p := range plans {
			data := make([]float32, n)
			for k := range data {
				data[k] = float32(round + i - k%3)
			}
			require.NoError(t, p.SetInput(x, data))
			futures[i] = p.Start()
		}
		for i, f := range futures {
			require.NoError(t, f.Await(t.Context()), name)
			sum := float32(0)
			for k := range n {
				v := 3 * float32(round+i-k%3)
				sum += v * v
				require.Equal(t, v, own[i][0].Float32s()[k], "%s: round %d, fork %d", name, round, i)
				require.Equal(t, v*v+max(v, 0), own[i][1].Float32s()[k], "%s: round %d, fork %d", name, round, i)
			}
			require.Equal(t, []float32{sum}, own[i][2].Float32s(), "%s: round %d, fork %d", name, round, i)
		}
	}
	for _, p := range plans {
		require.NoError(t, p.Close())
	}
}
