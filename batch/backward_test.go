package batch_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

func TestMatMulBackwardErrors(t *testing.T) {
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer dev.Close()
	record := func(want error, f func(b *batch.Batch)) {
		b := batch.New(dev)
		f(b)
		require.ErrorIs(t, b.Err(), want)
	}
	x := make([]float32, 6)
	record(compute.ErrShape, func(b *batch.Batch) {
		b.MatMulBackward(b.Upload(x, 2, 3), b.Upload(x, 3, 2), b.Upload(x, 2, 3))
	})
	record(compute.ErrArgument, func(b *batch.Batch) {
		b.MatMulBackward(b.Upload(x, 2, 3), b.Upload(x, 3, 2), b.Upload(x[:4], 2, 2), compute.MatMulOptions{Act: compute.ReLU})
	})
	record(compute.ErrShape, func(b *batch.Batch) { b.BiasBackward(b.Scalar(1)) })
	record(compute.ErrArgument, func(b *batch.Batch) { b.MatMulBackward(batch.Value{}, b.Upload(x), b.Upload(x)) })
}

// The gradients against finite differences of the device's own product: f = Σ dy·(a·b) is linear in each operand.
func TestMatMulBackwardIsTheSlope(t *testing.T) {
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer dev.Close()
	r := testseed.Rand(t)
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = 2*r.Float32() - 1
		}
		return x
	}
	for f := range 16 {
		o := compute.MatMulOptions{TransA: f&1 > 0, TransB: f&2 > 0}
		sa, sb := []int{3, 4}, []int{4, 5}
		if o.TransA {
			slices.Reverse(sa)
		}
		if o.TransB {
			slices.Reverse(sb)
		}
		sy := []int{3, 5}
		if f&4 > 0 {
			sa = append([]int{2}, sa...)
		}
		if f&8 > 0 {
			sb = append([]int{2}, sb...)
		}
		if f>>2 > 0 {
			sy = append([]int{2}, sy...)
		}
		a, b, dy := random(product(sa)), random(product(sb)), random(product(sy))
		rec := batch.New(dev)
		da, db := rec.MatMulBackward(rec.Upload(a, sa...), rec.Upload(b, sb...), rec.Upload(dy, sy...), o)
		require.Equal(t, sa, rec.Shape(da))
		require.Equal(t, sb, rec.Shape(db))
		gotA, gotB, bias := rec.Read(da), rec.Read(db), rec.Read(rec.BiasBackward(rec.Upload(dy, sy...)))
		require.NoError(t, rec.Start().Await(t.Context()))
		value := func() (sum float64) {
			rec := batch.New(dev)
			y := rec.Read(rec.MatMul(rec.Upload(a, sa...), rec.Upload(b, sb...), o))
			require.NoError(t, rec.Start().Await(t.Context()))
			for i, v := range y.Float32s() {
				sum += float64(v) * float64(dy[i])
			}
			return sum
		}
		slope := func(x []float32, i int) float64 {
			const step = 0.5
			was := x[i]
			defer func() { x[i] = was }()
			x[i] = was + step
			up := value()
			x[i] = was - step
			return (up - value()) / (2 * step)
		}
		for i := range a {
			require.InDelta(t, slope(a, i), gotA.Float32s()[i], 1e-4, "%+v %v %v: element %d of a", o, sa, sb, i)
		}
		for i := range b {
			require.InDelta(t, slope(b, i), gotB.Float32s()[i], 1e-4, "%+v %v %v: element %d of b", o, sa, sb, i)
		}
		for j, got := range bias.Float32s() {
			want := 0.0
			for i := j; i < len(dy); i += 5 {
				want += float64(dy[i])
			}
			require.False(t, math.Abs(want-float64(got)) > 1e-5)
		}
	}
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
