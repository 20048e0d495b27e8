package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// testElements uploads and reads all floats of 16 bits, which keep their bits.
func testElements(t *testing.T, dev batch.Device) {
	ctx := t.Context()
	f16, bf16 := make([]compute.F16, 1<<16), make([]compute.BF16, 1<<16)
	for i := range f16 {
		f16[i], bf16[i] = compute.F16(i), compute.BF16(i)
	}
	for _, data := range []any{f16, bf16} {
		x, f := device.Upload(ctx, program.ExecutorOf(dev), data, 256, 256)
		require.NoError(t, f.Await(ctx))
		defer x.Close()
		read := program.MakeSlice(program.Type{DType: x.DType(), Shape: x.Shape()})
		require.NoError(t, x.ReadAsync(read).Await(ctx))
		require.Equal(t, data, read)
	}
	b := batch.New(dev)
	x := b.Upload([]compute.F16{0x3c00, 0x8001, 0x7c00, 0xfbff})
	y := b.Read(b.Copy(x))
	z := b.Read(b.Copy(b.Upload(bf16)))
	wide := b.Read(b.Cast(x, compute.BFloat16))
	require.NoError(t, b.Start().Await(ctx))
	require.Equal(t, []compute.F16{0x3c00, 0x8001, 0x7c00, 0xfbff}, y.F16s())
	require.Nil(t, y.BF16s())
	require.Equal(t, bf16, z.BF16s())
	require.Nil(t, z.F16s())
	require.Equal(t, compute.BF16Of(1), wide.BF16s()[0])
}

func TestElementsCPU(t *testing.T) {
	_, d := openCPU(t, cpu.WithWorkers(1))
	testElements(t, d)
}
