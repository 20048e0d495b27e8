package webgpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

func TestCPUType(t *testing.T) {
	require.Equal(t, softwareAdapter, cpuType(0x10005), "llvmpipe")
	require.Equal(t, softwareAdapter, cpuType(0x1AE0), "SwiftShader")
	require.Equal(t, softwareAdapter, cpuType(0x1414), "WARP")
	require.Equal(t, softwareAdapter, cpuType(0), "unknown")
	require.Equal(t, virtualAdapter, cpuType(0x1AF4), "virtio")
}

func TestLimits(t *testing.T) {
	offer := wgsl.DefaultCaps
	offer.StorageAlign = 64
	got, err := Limits(offer, wgsl.Caps{})
	require.NoError(t, err)
	require.Equal(t, offer, got)
	got, err = Limits(offer, wgsl.Caps{MaxShared: 100, StorageAlign: 256, MaxWorkgroupSize: [3]uint32{0, 8, 0}})
	require.NoError(t, err)
	want := offer
	want.MaxShared, want.StorageAlign, want.MaxWorkgroupSize[1] = 100, 256, 8
	require.Equal(t, want, got)
	_, err = Limits(offer, wgsl.Caps{MaxShared: 1 << 20, MaxBuffer: 1 << 50, StorageAlign: 32, MaxWorkgroupSize: [3]uint32{0, 0, 65}})
	require.ErrorIs(t, err, compute.ErrUnsupported)
	for _, part := range []string{"MaxShared 1048576 of at most 16384", "MaxBuffer", "StorageAlign 32 of at least 64", "MaxWorkgroupSize[2] 65"} {
		require.ErrorContains(t, err, part)
	}
}
