package cpu_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

func TestKernel(t *testing.T) {
	d := open(t)
	k, err := cpu.NewKernel(d, "count above", func(out compute.Operand, in []compute.Operand, launch any) error {
		n := int32(0)
		for _, v := range in[0].Data.([]float32) {
			if v > launch.(float32) {
				n++
			}
		}
		out.Data.([]int32)[0] = n
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "count above", k.Name())
	b := batch.New(d)
	x := b.Upload([]float32{1, 2, 3, 4})
	r := b.Read(b.Kernel(k, float32(2.5), compute.Int32, []int{1}, b.Scale(x, 2)))
	require.NoError(t, wait(b.Start()))
	require.Equal(t, []int32{3}, r.Int32s())

	b = batch.New(open(t))
	b.Read(b.Kernel(k, float32(0), compute.Int32, []int{1}, b.Upload([]float32{1})))
	require.ErrorIs(t, wait(b.Start()), compute.ErrForeignTensor)
	_, err = cpu.NewKernel(d, "no function", nil)
	require.ErrorIs(t, err, compute.ErrArgument)
}

// Whatever a user's function does, the process lives, the future ends, and what depends on it fails.
func TestKernelFailures(t *testing.T) {
	d := open(t, cpu.WithWorkers(1))
	own := errors.New("out of ideas")
	for _, c := range []struct {
		name string
		f    cpu.KernelFunc
		want error
	}{
		{"error", func(compute.Operand, []compute.Operand, any) error { return own }, own},
		{"panic", func(out compute.Operand, _ []compute.Operand, _ any) error { return out.Data.(error) }, cpu.ErrKernel},
		{"exit", func(compute.Operand, []compute.Operand, any) error { runtime.Goexit(); return nil }, cpu.ErrKernel},
		{"waiting", func(out compute.Operand, in []compute.Operand, _ any) error {
			x := make([]float32, 100_000) // too large to be computed where it is started
			if err := wait(d.ExpAsync(x, x)); err != nil {
				return err
			}
			copy(out.Data.([]float32), x)
			return nil
		}, nil},
	} {
		k, err := cpu.NewKernel(d, c.name, c.f)
		require.NoError(t, err)
		b := batch.New(d)
		v := b.Kernel(k, nil, compute.Float32, []int{2}, b.Upload([]float32{1, 2}))
		r, kept := b.Read(v), b.Keep(v)
		f := b.Start()
		tensor := kept.Tensor()
		y := make([]float32, 2)
		late := tensor.ReadAsync(y)
		if c.want == nil {
			require.NoError(t, wait(f))
			require.NoError(t, wait(late))
			require.Equal(t, []float32{1, 1}, r.Float32s())
			require.Equal(t, []float32{1, 1}, y)
			continue
		}
		err = wait(f)
		require.ErrorIs(t, err, c.want)
		if c.name != "exit" {
			require.ErrorContains(t, err, c.name)
		}
		require.ErrorIs(t, wait(late), c.want)
		require.ErrorIs(t, wait(tensor.ReadAsync(y)), c.want)
		require.NoError(t, tensor.Close())
	}
	require.NoError(t, wait(d.ReLUAsync(make([]float32, 2), make([]float32, 2))))
}
