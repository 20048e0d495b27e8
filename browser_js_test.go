package wavelane_test

import (
	"syscall/js"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
)

// In a browser WebGPU comes before the CPU; under Node.js there is none, and the device says so.
func TestOpenInBrowser(t *testing.T) {
	navigator := js.Global().Get("navigator")
	if !navigator.Truthy() || !navigator.Get("gpu").Truthy() {
		d, err := wavelane.Open(t.Context())
		require.NoError(t, err)
		defer d.Close()
		require.Equal(t, "cpu", d.Info().Kind)
		require.Contains(t, d.Explain(), "navigator.gpu is missing")
		_, err = wavelane.Open(t.Context(), wavelane.WithDevice("gpu"))
		require.ErrorIs(t, err, wavelane.ErrUnavailable)
		return
	}
	cpu, err := wavelane.Open(t.Context()) // the tests' adapter is software, slower than the CPU
	require.NoError(t, err)
	defer cpu.Close()
	require.Equal(t, "cpu", cpu.Info().Kind)
	require.Contains(t, cpu.Explain(), "only software adapters")

	gpu, err := wavelane.Open(t.Context(), wavelane.WithSoftware())
	require.NoError(t, err)
	defer gpu.Close()
	require.Equal(t, "gpu", gpu.Info().Kind)
	require.Equal(t, "browser", gpu.Info().Backend)
	require.True(t, gpu.Info().Software)
	x := []float32{1, 2, 3, 4, 5, 6}
	for _, d := range []*wavelane.Device{cpu, gpu} {
		b := batch.New(d)
		m := b.Upload(x, 2, 3)
		y := b.Read(b.Scale(b.MatMul(m, b.Transpose(m)), 0.5))
		require.NoError(t, b.Start().Await(t.Context()))
		require.Equal(t, []float32{7, 16, 16, 38.5}, y.Float32s())
	}
}
