//go:build !js

package wavelane

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

func TestDeviceOperationsAndLifetime(t *testing.T) {
	t.Setenv(environment, "cpu")
	ctx := context.Background()
	d, err := Open(ctx)
	require.NoError(t, err)

	c := make([]float32, 4)
	require.NoError(t, d.MatMul(ctx, c, []float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}, 2, 2, 2))
	require.Equal(t, []float32{19, 22, 43, 50}, c)
	require.NoError(t, d.MatMulWithBias(ctx, c, []float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}, []float32{-100, 1}, 2, 2, 2,
		compute.MatMulOptions{TransB: true, Act: compute.ReLU}))
	require.Equal(t, []float32{0, 24, 0, 54}, c)

	err = d.MatMul(ctx, c[:3], []float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}, 2, 2, 2)
	require.ErrorIs(t, err, ErrShape)
	require.ErrorContains(t, err, "matmul [[2 2] [2 2]]")
	require.ErrorIs(t, d.ReLU(ctx, make([]float32, 2), nil), ErrShape)
	require.ErrorIs(t, d.Max(ctx, make([]float32, 1), nil), ErrShape)
	require.ErrorIs(t, d.MatMulWithBias(ctx, c, c, c, nil, 2, 2, 2), ErrShape)
	require.ErrorIs(t, d.ApplyAsync("no_such_op", c, nil, nil, nil).Await(ctx), ErrArgument)

	row := make([]float32, 2)
	require.NoError(t, d.Sum(ctx, row, []float32{1, 2, 3, 4, 5, 6}), "as many rows as results")
	require.Equal(t, []float32{6, 15}, row)
	sum := make([]float32, 6)
	f := d.ApplyAsync("add", sum, []compute.Operand{compute.Of([]float32{0, 10}, 2, 1), compute.Of([]float32{1, 2, 3})}, nil, nil)
	require.NoError(t, f.Await(ctx))
	require.Equal(t, []float32{1, 2, 3, 11, 12, 13}, sum)

	x, err := d.Upload(ctx, []float32{1, 2})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.ReLU(ctx, row, row), ErrClosed)
	require.ErrorIs(t, compute.Read(ctx, x, row), ErrClosed)
	_, err = d.Upload(ctx, []float32{1})
	require.ErrorIs(t, err, ErrClosed)
}
