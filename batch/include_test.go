//go:build !js

package batch_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

// residual is a batch of x → relu(x·w) + x.
func residual(t *testing.T, dev batch.Device, w []float32) *batch.Batch {
	b := batch.New(dev)
	x := b.Parameter(compute.Float32, 2, 2)
	b.Return(b.Add(b.ReLU(b.MatMul(x, b.Upload(w, 2, 2))), x))
	require.NoError(t, b.Err())
	return b
}

func TestInclude(t *testing.T) {
	ctx := context.Background()
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer dev.Close()
	part := residual(t, dev, []float32{1, 2, 3, -4})
	b := batch.New(dev)
	x := b.Upload([]float32{1, 0, 0, 1}, 2, 2)
	once := b.Include(part, x)
	twice := b.Include(part, once...)
	y, z := b.Read(once[0]), b.Read(twice[0])
	require.NoError(t, b.Run(ctx))
	require.Equal(t, []float32{2, 2, 3, 1}, y.Float32s())
	require.Equal(t, []float32{2 + 2 + 6, 2 + 0, 3 + 3 + 3, 1 + 6 - 4}, z.Float32s())

	b = batch.New(dev)
	loop := b.Loop(2, part, b.Upload([]float32{1, 0, 0, 1}, 2, 2))
	again := b.Read(loop[0])
	same := b.Loop(0, part, loop...)
	require.Equal(t, loop, same)
	require.Equal(t, 6, b.Len())
	require.NoError(t, b.Run(ctx))
	require.Equal(t, z.Float32s(), again.Float32s())
}

// Parts have parts, imported tensors, and scalars that vary.
func TestIncludeDeep(t *testing.T) {
	ctx := context.Background()
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer dev.Close()
	w, err := dev.Upload(ctx, []float32{10, 20})
	require.NoError(t, err)
	inner := batch.New(dev)
	x := inner.Parameter(compute.Float32, 2)
	inner.Return(inner.Vary(inner.Scale(inner.Add(x, inner.Import(w)), 2)))
	outer := batch.New(dev)
	y := outer.Parameter(compute.Float32, 2)
	outer.Return(outer.Neg(outer.Include(inner, y)[0]), y)

	b := batch.New(dev)
	v := b.Upload([]float32{1, 2})
	out := b.Include(outer, v)
	require.Equal(t, v, out[1], "what is returned as it was taken is the argument")
	r := b.Read(b.Include(inner, out[0])[0])
	plan, err := b.Compile(ctx)
	require.NoError(t, err)
	defer plan.Close()
	require.NoError(t, plan.Run(ctx))
	require.Equal(t, []float32{2 * (-22 + 10), 2 * (-44 + 20)}, r.Float32s())
}

func TestIncludeErrors(t *testing.T) {
	ctx := context.Background()
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer dev.Close()
	part := residual(t, dev, make([]float32, 4))
	require.ErrorIs(t, part.Run(ctx), compute.ErrArgument, "a batch with parameters")
	reads := batch.New(dev)
	reads.Read(reads.Upload([]float32{1}))
	wrong := batch.New(dev)
	wrong.ReLU(batch.Value{})
	pair := batch.New(dev)
	p := pair.Parameter(compute.Float32, 1)
	pair.Return(p, p)
	for name, c := range map[string]struct {
		record func(b *batch.Batch)
		want   error
	}{
		"nil":                {func(b *batch.Batch) { b.Include(nil) }, compute.ErrArgument},
		"itself":             {func(b *batch.Batch) { b.Include(b) }, compute.ErrArgument},
		"too few":            {func(b *batch.Batch) { b.Include(part) }, compute.ErrArgument},
		"shape":              {func(b *batch.Batch) { b.Include(part, b.Fill(1, 4)) }, compute.ErrShape},
		"type":               {func(b *batch.Batch) { b.Include(part, b.Upload(make([]int32, 4), 2, 2)) }, compute.ErrDType},
		"value of the part":  {func(b *batch.Batch) { b.Include(pair, p) }, compute.ErrForeignTensor},
		"reads":              {func(b *batch.Batch) { b.Include(reads) }, compute.ErrArgument},
		"a failed one":       {func(b *batch.Batch) { b.Include(wrong) }, compute.ErrArgument},
		"negative shape":     {func(b *batch.Batch) { b.Parameter(compute.Float32, -1) }, compute.ErrShape},
		"negative loop":      {func(b *batch.Batch) { b.Loop(-1, part, b.Fill(1, 2, 2)) }, compute.ErrArgument},
		"endless loop":       {func(b *batch.Batch) { b.Loop(math.MaxInt, batch.New(nil)) }, compute.ErrTooLarge},
		"loop of many steps": {func(b *batch.Batch) { b.Loop(1<<20+1, part, b.Fill(1, 2, 2)) }, compute.ErrTooLarge},
		"other state":        {func(b *batch.Batch) { b.Loop(2, pair, b.Fill(1, 1)) }, compute.ErrArgument},
	} {
		b := batch.New(dev)
		c.record(b)
		require.ErrorIs(t, b.Err(), c.want, name)
		require.ErrorContains(t, b.Err(), "include_test.go:", name)
	}
}
