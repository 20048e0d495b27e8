//go:build linux && !android && (amd64 || arm64)

package webgpu

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/wgpu"
	"github.com/wavelane/wavelane/wgsl"
)

// stub compiles testdata/wgpu.c by the headers of a version, with the compiler CC.
func stub(t *testing.T, version string) string {
	headers := filepath.Join("..", "..", "..", "out", "wgpu", version)
	_, err := os.Stat(filepath.Join(headers, "wgpu.h"))
	require.NoError(t, err, "scripts/setup test puts the headers there")
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	library := filepath.Join(t.TempDir(), wgpu.FileName)
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-I", headers, "-DVERSION="+version,
		"-o", library, filepath.Join("testdata", "wgpu.c")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return library
}

// TestStub makes the driver's calls to a library in C, which checks what it gets: structs by value and by address, callbacks, numbers of 32 and of 64 bits. It
// runs in emulation too, where no real library does.
func TestStub(t *testing.T) {
	for _, version := range []string{"29", "27"} {
		t.Run(version, func(t *testing.T) {
			library := stub(t, version)
			list, err := Adapters(t.Context(), library)
			require.NoError(t, err)
			require.Len(t, list, 1)
			a := list[0]
			require.Equal(t, []any{"stub", "maker", "of a test", uint32(0x10005), uint32(77), softwareAdapter, "vulkan"},
				[]any{a.Name, a.Driver, a.DriverInfo, a.Vendor, a.Device, a.Type, a.Backend})
			require.Equal(t, []string{FeatureF16, FeatureSubgroups}, a.Features)
			require.Equal(t, wgsl.Caps{MaxWorkgroups: 65535, MaxInvocations: 256, MaxWorkgroupSize: [3]uint32{256, 256, 64}, MaxShared: 16384,
				MaxStorageBuffers: 8, MaxBinding: 1 << 27, MaxBuffer: 1 << 40, StorageAlign: 32}, a.Limits)
			if version == "29" {
				require.Equal(t, []uint32{4, 8}, []uint32{a.SubgroupMin, a.SubgroupMax})
			}
			a.Limits.MaxInvocations = 128
			d, _, err := Open(t.Context(), a)
			require.NoError(t, err)

			_, err = d.NewBuffer(StorageBuffer, 1<<35)
			require.ErrorIs(t, err, compute.ErrOutOfMemory)
			require.ErrorContains(t, err, "too much")
			kernel := func(key, source string) *wgsl.Kernel {
				return &wgsl.Kernel{Key: key, Source: source, Entry: "main", Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 16,
					Workgroup: [3]uint32{64, 1, 1}, Finite: key == "own"}
			}
			_, err = d.NewPipeline(kernel("foreign", "another text"))
			var shader *ShaderError
			require.ErrorAs(t, err, &shader)
			p, err := d.NewPipeline(kernel("foreign", "the text"))
			require.NoError(t, err)
			p.Free()
			p, err = d.NewPipeline(kernel("own", "the text"))
			require.NoError(t, err)

			buffer := func(kind BufferKind, size uint64) Object {
				b, err := d.NewBuffer(kind, size)
				require.NoError(t, err)
				return b
			}
			x, y, uniforms := buffer(StorageBuffer, 256), buffer(StorageBuffer, 256), buffer(UniformBuffer, 1024)
			up, down := buffer(UploadBuffer, 1280), buffer(ReadbackBuffer, 128)
			g, err := d.NewGroup(p, []Binding{{x, 32, 128}, {y, 64, 128}, {uniforms, 0, 256}})
			require.NoError(t, err)
			run := func(dynamic uint32) error {
				data := make([]byte, 1280)
				for i := range 32 {
					binary.NativeEndian.PutUint32(data[32+4*i:], uint32(1e6*i))
				}
				binary.NativeEndian.PutUint32(data[256+dynamic:], 7)
				d.Write(up, 0, data)
				done := make(chan error, 1)
				require.NoError(t, d.Submit(&Submission{Commands: []Command{
					{From: up, To: x, Size: 256},
					{From: up, FromOffset: 256, To: uniforms, Size: 1024},
					{Pipeline: p, Group: g, Dynamic: dynamic, Grid: [3]uint32{3, 2, 1}},
					{From: y, FromOffset: 64, To: down, Size: 128},
				}, Cuts: []int{2}, Staging: []Object{up, down}, Done: func(err error) { done <- err }}))
				return <-done
			}
			for range 3 {
				require.NoError(t, run(256))
				got := make([]byte, 128)
				d.Read(down, 0, got)
				for i := range 32 {
					require.Equal(t, uint32(1e6*i+10210), binary.NativeEndian.Uint32(got[4*i:]), fmt.Sprint(i))
				}
				require.NoError(t, d.Unmap(down))
			}
			err = run(512)
			require.ErrorIs(t, err, compute.ErrDeviceLost)
			require.ErrorContains(t, err, "pulled out")
			require.NotContains(t, err.Error(), "they say")
			require.ErrorIs(t, d.Lost(), compute.ErrDeviceLost)
			d.Close()
		})
	}
}
