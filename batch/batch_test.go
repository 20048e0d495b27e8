package batch_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/program"
)

func open(t *testing.T) *cpu.Device {
	t.Helper()
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	return dev
}

// run is Batch.Run in the form that exists everywhere.
func run(b *batch.Batch) error { return b.Start().Await(context.Background()) }

func TestRunReadsEveryResult(t *testing.T) {
	b := batch.New(open(t))
	x := b.Upload([]float32{-1, 2, -3, 4}, 2, 2)
	y := b.ReLU(x)
	relu, scaled, index := b.Read(y), b.Read(b.Scale(y, 0.5)), b.Read(b.ArgMax(x))
	require.Equal(t, 3, b.Len())
	require.Equal(t, []int{2, 2}, b.Shape(y))
	_, err := relu.Data()
	require.ErrorIs(t, err, compute.ErrNotRun)
	require.Nil(t, relu.Float32s())

	require.NoError(t, run(b))
	require.Equal(t, []float32{0, 2, 0, 4}, relu.Float32s())
	require.Equal(t, []int{2, 2}, relu.Shape())
	require.Equal(t, []float32{0, 1, 0, 2}, scaled.Float32s())
	require.Equal(t, []int32{3}, index.Int32s())
	require.Nil(t, index.Float32s(), "an int32 result has no float32 elements")
}

func TestFirstErrorSticksAndNamesItsLine(t *testing.T) {
	b := batch.New(open(t))
	x := b.Upload([]float32{1, 2, 3})
	y := b.Upload([]float32{1, 2})
	z := b.Add(x, y)
	b.MatMul(z, z)
	r := b.Read(b.ReLU(z))
	for _, err := range []error{b.Err(), run(b)} {
		require.ErrorIs(t, err, compute.ErrShape)
		require.ErrorContains(t, err, "add [[3] [2]]")
		require.ErrorContains(t, err, "batch_test.go:")
		require.NotContains(t, err.Error(), "matmul")
	}
	require.Nil(t, r.Float32s())
	require.Equal(t, []int{3}, b.Shape(x))
	require.Nil(t, b.Shape(z))
}

func TestBadRecordings(t *testing.T) {
	dev := open(t)
	other := batch.New(dev)
	foreign := other.Upload([]float32{1})
	closed, err := dev.Upload(context.Background(), []float32{1, 2})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, c := range []struct {
		name   string
		record func(b *batch.Batch)
		want   error
	}{
		{"nil data", func(b *batch.Batch) { b.Upload(nil) }, compute.ErrArgument},
		{"unknown element type", func(b *batch.Batch) { b.Upload([]string{"a"}) }, compute.ErrDType},
		{"length", func(b *batch.Batch) { b.Upload([]float32{1, 2, 3}, 2, 2) }, compute.ErrShape},
		{"negative dimension", func(b *batch.Batch) { b.Upload([]float32{1}, -1, -1) }, compute.ErrShape},
		{"rank", func(b *batch.Batch) { b.Upload([]float32{1}, 1, 1, 1, 1, 1, 1, 1, 1, 1) }, compute.ErrShape},
		{"huge", func(b *batch.Batch) { b.Fill(0, 1<<20, 1<<20) }, compute.ErrTooLarge},
		{"zero value", func(b *batch.Batch) { b.ReLU(batch.Value{}) }, compute.ErrArgument},
		{"foreign value", func(b *batch.Batch) { b.ReLU(foreign) }, compute.ErrForeignTensor},
		{"element type", func(b *batch.Batch) { b.ReLU(b.Upload([]int32{1})) }, compute.ErrDType},
		{"nil tensor", func(b *batch.Batch) { b.Import(nil) }, compute.ErrArgument},
		{"nil kernel", func(b *batch.Batch) { b.Kernel(nil, nil, compute.Float32, []int{1}) }, compute.ErrArgument},
		{"read into nil", func(b *batch.Batch) { b.ReadInto(b.Scalar(1), nil) }, compute.ErrArgument},
		{"read into wrong length", func(b *batch.Batch) { b.ReadInto(b.Scalar(1), make([]float32, 2)) }, compute.ErrShape},
		{"closed tensor", func(b *batch.Batch) { b.Read(b.ReLU(b.Import(closed))) }, compute.ErrClosed},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			b := batch.New(dev)
			c.record(b)
			require.ErrorIs(t, run(b), c.want)
		})
	}
}

// Options and axes that are given twice are an error that says so, and a nil option is one.
func TestOptionsOnce(t *testing.T) {
	dev := open(t)
	for want, record := range map[string]func(b *batch.Batch){
		"2 of compute.Axis given":       func(b *batch.Batch) { b.Sum(b.Scalar(1), compute.AllAxes, compute.LastAxis) },
		"2 of compute.TransposeOptions": func(b *batch.Batch) { b.Transpose(b.Fill(1, 2, 2), make([]compute.TransposeOptions, 2)...) },
		"3 of compute.MatMulOptions given": func(b *batch.Batch) {
			b.MatMulBackward(b.Fill(1, 2, 2), b.Fill(1, 2, 2), b.Fill(1, 2, 2), make([]compute.MatMulOptions, 3)...)
		},
	} {
		b := batch.New(dev)
		record(b)
		require.ErrorIs(t, b.Err(), compute.ErrArgument)
		require.ErrorContains(t, b.Err(), want)
	}
	x := make([]float32, 1)
	err := dev.MatMulAsync(x, x, x, 1, 1, 1, compute.MatMulOptions{}, compute.MatMulOptions{}).Await(t.Context())
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "2 of compute.MatMulOptions given")

	b := batch.New(dev, batch.WithProfile(), nil)
	require.ErrorIs(t, b.Err(), compute.ErrArgument)
	require.ErrorContains(t, run(b), "nil option")
}

func TestPlanReplaysWithNewData(t *testing.T) {
	dev := open(t)
	ctx := context.Background()
	w, err := dev.Upload(ctx, []float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	data := []float32{1, 1}
	b := batch.New(dev)
	x, weights := b.Upload(data, 1, 2), b.Import(w)
	out := b.Read(b.MatMul(x, weights))
	plan, err := b.Compile(ctx)
	require.NoError(t, err)
	replay := func(want ...float32) {
		t.Helper()
		require.NoError(t, plan.Start().Await(ctx))
		require.Equal(t, want, out.Float32s())
	}
	replay(4, 6)
	data[0] = 0 // the slice is read again
	replay(3, 4)
	require.NoError(t, plan.SetInput(x, []float32{2, 0}))
	replay(2, 4)
	w2, err := dev.Upload(ctx, []float32{1, 0, 0, 1}, 2, 2)
	require.NoError(t, err)
	require.NoError(t, plan.SetTensor(weights, w2))
	replay(2, 0)

	require.ErrorIs(t, plan.SetInput(x, []float32{1}), compute.ErrShape)
	require.ErrorIs(t, plan.SetInput(weights, []float32{1, 2, 3, 4}), compute.ErrArgument)
	require.ErrorIs(t, plan.SetInput(batch.New(dev).Scalar(1), []float32{1}), compute.ErrForeignTensor)
	require.ErrorIs(t, plan.SetTensor(weights, nil), compute.ErrArgument)
	require.NoError(t, plan.Close())
	require.NoError(t, plan.Close())
	require.ErrorIs(t, plan.Start().Err(), compute.ErrClosed)
}

func TestKeepStaysOnTheDevice(t *testing.T) {
	dev := open(t)
	ctx := context.Background()
	b := batch.New(dev)
	kept := b.Keep(b.Scale(b.Upload([]float32{1, 2}), 3))
	require.Nil(t, kept.Tensor())
	require.NoError(t, run(b))
	tensor := kept.Tensor()
	defer tensor.Close()
	got := make([]float32, 2)
	require.NoError(t, tensor.ReadAsync(got).Await(ctx))
	require.Equal(t, []float32{3, 6}, got)

	next := batch.New(dev)
	sum := next.Read(next.Sum(next.Import(tensor)))
	require.NoError(t, run(next))
	v, ok := sum.Scalar()
	require.True(t, ok)
	require.Equal(t, float32(9), v)
}

func TestReadIntoAndReadOfInputs(t *testing.T) {
	b := batch.New(open(t))
	x := b.Upload([]float32{5, float32(math.Inf(1))})
	dst := make([]float32, 2)
	b.ReadInto(b.Neg(x), dst)
	echo := b.Read(x)
	require.NoError(t, run(b))
	require.Equal(t, []float32{-5, float32(math.Inf(-1))}, dst)
	require.Equal(t, []float32{5, float32(math.Inf(1))}, echo.Float32s())
}

func TestResultsMustNotOverlap(t *testing.T) {
	for _, from := range []int{0, 2, 3, 5} {
		b, dst := batch.New(open(t)), make([]float32, 8)
		x := b.Upload([]float32{1, 2, 3})
		b.ReadInto(x, dst[:3])
		b.ReadInto(b.Neg(x), dst[from:from+3])
		if err := run(b); from < 3 {
			require.ErrorIs(t, err, compute.ErrArgument)
		} else {
			require.NoError(t, err)
			require.Equal(t, []float32{-1, -2, -3}, dst[from:from+3])
		}
	}
}

// counting passes programs on and counts their steps.
type counting struct {
	program.Executor
	steps int
}

func (*counting) Fuses(*program.Step, []program.Type, []program.Type) bool { return false }

func (c *counting) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	c.steps += len(p.Steps)
	return c.Executor.Compile(ctx, p)
}

func TestDeadStepsDoNotRun(t *testing.T) {
	dev := &counting{Executor: program.ExecutorOf(open(t))}
	b := batch.New(program.Seal(dev))
	x := b.Upload([]float32{1, -1})
	used := b.ReLU(x)
	b.Exp(b.Exp(x)) // nobody reads it
	out := b.Read(used)
	require.NoError(t, run(b))
	require.Equal(t, 1, dev.steps)
	require.Equal(t, []float32{1, 0}, out.Float32s())
}

func TestEmptyBatchRuns(t *testing.T) {
	require.NoError(t, run(batch.New(open(t))))
}

// The tensors of runs that nobody takes are closed: by the next run, or with the plan. Those that were taken stay the caller's.
func TestKeptTensorsDoNotLeak(t *testing.T) {
	const bytes = 4 * 1000
	dev := open(t)
	b := batch.New(dev)
	kept := b.Keep(b.Neg(b.Upload(make([]float32, 1000))))
	plan, err := b.Compile(t.Context())
	require.NoError(t, err)
	fork, err := plan.Fork()
	require.NoError(t, err)
	start := func(p *batch.Plan) { require.NoError(t, p.Start().Await(context.Background())) }
	used := func() int { return int(dev.Memory().InUse) }

	start(plan)
	once := used()
	require.GreaterOrEqual(t, once, bytes)
	for range 5 {
		start(plan)
	}
	require.Equal(t, once, used(), "each run closes the tensor of the one before")
	first := kept.Tensor()
	start(plan)
	require.GreaterOrEqual(t, used(), once+bytes, "what was taken stays")
	require.NoError(t, first.ReadAsync(make([]float32, 1000)).Await(context.Background()))
	require.NoError(t, first.Close())
	require.Equal(t, once, used())
	start(fork)
	require.GreaterOrEqual(t, used(), once+bytes, "a fork has its own")

	require.NoError(t, fork.Close())
	require.NoError(t, plan.Close())
	require.Nil(t, kept.Tensor())
	require.LessOrEqual(t, used(), once-bytes)
}
