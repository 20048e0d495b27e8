package cuda

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

func TestOpen(t *testing.T) {
	m := newMachine(t, softgpu.Config{Devices: 1, SM: 86, Multiprocessors: 3, Memory: 1 << 30})
	d := m.device(t)
	i := d.Info()
	require.True(t, i.Software)
	require.Equal(t, [2]int{8, 6}, i.Capability)
	require.Equal(t, "sm_86", i.Target().String())
	require.Equal(t, 3, i.Multiprocessors)
	require.Equal(t, "12.8", i.Driver)
	require.EqualValues(t, 1<<30, i.Memory)
	require.Regexp(t, `sm_86, 3 multiprocessors, 1\.0 GiB, CUDA 12\.8$`, i.String())
	list, err := Devices(t.Context(), m.on)
	require.NoError(t, err)
	require.Equal(t, []Info{i}, list)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ended, m.on)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Devices(ended, m.on)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Open(t.Context(), m.on, WithDevice(1))
	require.ErrorIs(t, err, compute.ErrUnavailable)
	require.ErrorContains(t, err, "device 1")

	none := newMachine(t, softgpu.Config{SM: 1}) // no such architecture: no device
	_, err = Devices(t.Context(), none.on)
	require.ErrorIs(t, err, compute.ErrUnavailable)
	_, err = Open(t.Context(), none.on)
	require.ErrorIs(t, err, compute.ErrUnavailable)
}

// Devices that are open on the same GPU share its context, which goes with the last of them.
func TestDevicesShareAContext(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	a, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	b, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	require.Same(t, a.primary, b.primary)
	require.Equal(t, 1, m.Live().Contexts)
	tensor, err := a.Upload(t.Context(), []float32{1})
	require.NoError(t, err)
	p := &program.Program{}
	p.Read = []program.Slot{p.Add(f32(1), program.FromTensor)}
	io := &program.IO{Tensors: []compute.Tensor{tensor}, Read: []any{make([]float32, 1)}}
	require.ErrorIs(t, device.Once(t.Context(), program.ExecutorOf(b), p, io).Await(t.Context()), compute.ErrForeignTensor)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Synchronize(), compute.ErrClosed)
	require.ErrorIs(t, tensor.(*Tensor).ReadAsync(make([]float32, 1)).Await(t.Context()), compute.ErrClosed)
	require.NoError(t, tensor.Close())
	_, err = b.Upload(t.Context(), []float32{1})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	// The upload has delivered its result, but may hold the device a moment longer.
	require.Eventually(t, func() bool { return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)
}

// The collector closes a device that nothing refers to, but not one whose stream may be in use.
func TestForgottenDevice(t *testing.T) {
	m := newMachine(t, softgpu.Config{})
	func() {
		d, err := Open(t.Context(), m.on, WithoutCache())
		require.NoError(t, err)
		_, err = d.Upload(t.Context(), []float32{1, 2})
		require.NoError(t, err)
	}()
	require.Eventually(t, func() bool { runtime.GC(); return m.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)

	s := func() *Stream {
		d, err := Open(t.Context(), m.on, WithoutCache())
		require.NoError(t, err)
		s, err := d.NewStream(StreamOptions{})
		require.NoError(t, err)
		return s
	}()
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	finished(t, submitted(t, begun(t, s)))
	s.d.life.Close()
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Option{
		"nil": nil, "library": WithLibrary(""), "device": WithDevice(-1), "logger": WithLogger(nil), "cache": WithCache(""),
		"limit": WithMemoryLimit(0), "two": WithSoftware(SoftwareOptions{}, SoftwareOptions{}),
		"GPUs": WithSoftware(SoftwareOptions{Devices: -1}),
	} {
		_, err := Open(t.Context(), o)
		require.ErrorIs(t, err, compute.ErrArgument, name)
		_, err = Devices(t.Context(), o)
		require.ErrorIs(t, err, compute.ErrArgument, name)
	}
	_, err := Open(t.Context(), WithLibrary("/nowhere/libcuda.so.1"))
	require.ErrorIs(t, err, compute.ErrUnavailable)

	one := WithSoftware(SoftwareOptions{Memory: 64 << 20, Checked: true, Perturb: true, Seed: 3})
	a, err := Open(t.Context(), one, WithoutCache())
	require.NoError(t, err)
	defer a.Close()
	b, err := Open(t.Context(), one, WithoutCache())
	require.NoError(t, err)
	defer b.Close()
	require.Same(t, a.primary, b.primary, "one machine")
	require.EqualValues(t, 64<<20, a.Info().Memory)
	other, err := Open(t.Context(), WithSoftware(), WithoutCache())
	require.NoError(t, err)
	defer other.Close()
	require.NotSame(t, a.primary, other.primary)

	d := softDevice(t, WithDebug())
	require.True(t, d.debug.Load())
}
