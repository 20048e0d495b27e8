//go:build linux && !android && (amd64 || arm64)

package libcuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/libcuda"
	"github.com/wavelane/wavelane/ptx/args"
)

const saxpy = `.version 6.0
.target sm_30
.address_size 64
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 .ptr .global x, .param .u64 .ptr .global y)
{
	ret;
}`

// BenchmarkLaunch is what a launch costs above the driver's own call: everything of Recording.Launch against the bare call with
// the same arguments, on a library that does nothing.
func BenchmarkLaunch(b *testing.B) {
	stub := libcuda.OpenStub(b)
	stub.Prepare()
	d, err := cuda.Open(b.Context(), cuda.WithLibrary(libcuda.StubPath(b)), cuda.WithoutCache())
	require.NoError(b, err)
	defer d.Close()
	m, err := d.Load(saxpy)
	require.NoError(b, err)
	k, err := m.Kernel("saxpy")
	require.NoError(b, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(b, err)
	r, err := s.Begin()
	require.NoError(b, err)
	launch := cuda.Launch{Grid: [3]uint32{100}, Block: [3]uint32{256}}
	b.Run("launch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := r.Launch(k, launch, args.U32(1), args.F32(2), args.Ptr(256), args.Ptr(512)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("driver", func(b *testing.B) {
		l := &driver.Launch{Grid: [3]uint32{100, 1, 1}, Block: [3]uint32{256, 1, 1}, Params: make([]byte, 24)}
		b.ReportAllocs()
		for b.Loop() {
			if stub.LaunchKernel(1, l, 2) != driver.Success {
				b.Fatal("failed")
			}
		}
	})
	_, err = r.Submit()
	require.NoError(b, err)
}
