package conformance

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// faulty is a device that computes another operation in place of one.
type faulty struct {
	program.Executor
	from, to *program.Entry
}

func (faulty) Fuses(*program.Step, []program.Type, []program.Type) bool { return false }

func (d faulty) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	q := *p
	q.Steps = append([]program.Step{}, p.Steps...)
	for i := range q.Steps {
		if q.Steps[i].Entry == d.from {
			q.Steps[i].Entry = d.to
		}
	}
	return d.Executor.Compile(ctx, &q)
}

// compared is a batch of steps of many kinds, with a tensor that it updates and one that it reads.
func compared(t *testing.T, dev batch.Device) *batch.Batch {
	r := rand.New(rand.NewPCG(Seed(), 10))
	t.Logf("WAVELANE_SEED=%d", Seed())
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = r.Float32()*2 - 1
		}
		return x
	}
	cache, err := upload(dev, random(8*4), 1, 8, 1, 4)
	require.NoError(t, err)
	weights, err := upload(dev, random(16*4), 16, 4)
	require.NoError(t, err)
	t.Cleanup(func() { cache.Close(); weights.Close() })
	b := batch.New(dev)
	x := b.Upload(random(3*16), 3, 16)
	y := b.MatMul(x, b.Import(weights))                               // 0
	z := b.Softmax(b.Sub(b.Exp(y), b.Scale(y, 1000)))                 // 1 to 4
	rows := b.Reshape(z, 1, 3, 1, 4)                                  // 5
	all := b.KVAppend(b.Import(cache), rows, b.Upload([]int32{2}, 1)) // 6
	b.Read(b.Neg(b.Sum(all)))
	b.Read(b.Cast(all, compute.Float16))                                // 7 to 9
	b.Keep(b.ArgMax(z, compute.LastAxis))                               // 10
	b.Read(b.Sqrt(b.Upload([]float32{-1, 4, float32(math.Inf(1)), 0}))) // 11
	require.NoError(t, b.Err())
	return b
}

func testCompare(t *testing.T, dev batch.Device) {
	_, cpu := openCPU(t)
	ctx := context.Background()
	b := compared(t, cpu)
	require.NoError(t, batch.Compare(ctx, b, cpu, dev))
	require.NoError(t, batch.Compare(ctx, b, dev, cpu))
	var e *batch.DivergenceError
	for _, c := range []struct {
		from, to *program.Entry
		step     int
	}{{catalogue.Sub, catalogue.Add, 3}, {catalogue.Sqrt, catalogue.Abs, 11}, {catalogue.Softmax, catalogue.LogSoftmax, 4}, {catalogue.ArgMax, catalogue.ArgMin, 10}} {
		err := batch.Compare(ctx, b, cpu, program.Seal(faulty{program.ExecutorOf(dev), c.from, c.to}))
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, compute.ErrDiverged)
		require.Equal(t, c.step, e.Step, e)
		require.Equal(t, c.from.Name, e.Operation)
		require.NotEqual(t, e.First, e.Second)
	}
	require.Zero(t, e.Index, e)
	require.NoError(t, b.Start().Await(ctx), "tensors are as they were")
}

func TestCompareCPU(t *testing.T) {
	_, d := openCPU(t, cpu.WithWorkers(1))
	testCompare(t, d)
}

func TestDeterminismCheck(t *testing.T) {
	_, dev := openCPU(t)
	var calls atomic.Int64
	k, err := cpu.NewKernel(dev, "moody", func(out compute.Operand, in []compute.Operand, _ any) error {
		y := out.Data.([]float32)
		copy(y, in[0].Data.([]float32))
		if calls.Add(1)%2 == 0 {
			y[3]++
		}
		return nil
	})
	require.NoError(t, err)
	record := func(moody, keep bool, options ...batch.Option) (*batch.Result, error) {
		b := batch.New(dev, append(options, batch.WithDeterminismCheck())...)
		x := b.Upload([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
		y := b.Scale(x, 2)
		if moody {
			y = b.Kernel(k, nil, compute.Float32, []int{2, 3}, y)
		}
		y = b.Neg(y)
		if keep {
			kept := b.Keep(y)
			defer func() { kept.Tensor().Close() }()
		}
		r := b.Read(b.Scale(y, 0))
		if !keep {
			r = b.Read(y)
		}
		return r, b.Start().Await(context.Background())
	}
	for _, keep := range []bool{false, true} {
		r, err := record(false, keep)
		require.NoError(t, err)
		require.NotNil(t, r.Float32s())
		r, err = record(true, keep, batch.WithGuard(batch.NaN, batch.Stop))
		var e *batch.DivergenceError
		require.ErrorAs(t, err, &e)
		require.Equal(t, [2]int{2, 3}, [2]int{e.Step, e.Index}, e)
		require.Equal(t, []int{1, 0}, e.Position)
		require.ElementsMatch(t, []float64{-8, -9}, []float64{e.First, e.Second}) // both runs are under way at once
		require.Contains(t, e.Site, "compare_test.go:")
		require.Nil(t, r.Float32s())
	}
	cache, err := upload(dev, filled(4, 1), 1, 2, 1, 2)
	require.NoError(t, err)
	defer cache.Close()
	b := batch.New(dev, batch.WithDeterminismCheck())
	b.KVAppend(b.Import(cache), b.Upload(filled(2, 1), 1, 1, 1, 2), b.Upload([]int32{0}))
	require.ErrorIs(t, b.Start().Await(context.Background()), compute.ErrUnsupported)

	own := batch.New(dev)
	own.Read(own.Kernel(k, nil, compute.Float32, []int{1}, own.Upload([]float32{1})))
	require.ErrorIs(t, batch.Compare(context.Background(), own, dev, dev), compute.ErrUnsupported)
}
