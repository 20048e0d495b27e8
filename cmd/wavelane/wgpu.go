//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/wgsl"
)

func wgpuCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "wgpu [LIBRARY]",
		Short: "Say which WebGPU library programs use, where to get one, and whether one works",
		Long: `Say which WebGPU library programs use and where to get one for this platform. With the
path of a library, check that it works: its version, the adapters that it finds, and a
kernel on each of them.`,
		Example: `  wavelane wgpu
  wavelane wgpu ./libwgpu_native.so
  wavelane wgpu linked`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return tryLibrary(c.Context(), c.OutOrStdout(), args[0])
			}
			name, err := gpu.Library("")
			if err != nil {
				fmt.Fprintf(c.OutOrStdout(), "Programs have no WebGPU library: %v\n", err)
			} else {
				fmt.Fprintf(c.OutOrStdout(), "Programs like this one use %s.\n", name)
			}
			return whereFrom(c.OutOrStdout(), runtime.GOOS+"/"+runtime.GOARCH)
		},
	}
}

// wheels are the platforms of the Python package that carries the library, by ours, and the library's name there.
var wheels = map[string][2]string{
	"linux/amd64":   {"manylinux_2_28_x86_64", "libwgpu_native.so"},
	"linux/arm64":   {"manylinux_2_28_aarch64", "libwgpu_native.so"},
	"darwin/amd64":  {"macosx_10_9_x86_64", "libwgpu_native.dylib"},
	"darwin/arm64":  {"macosx_11_0_arm64", "libwgpu_native.dylib"},
	"windows/amd64": {"win_amd64", "wgpu_native.dll"},
}

// whereFrom says where a platform's library comes from.
func whereFrom(w io.Writer, platform string) error {
	wheel, ok := wheels[platform]
	if !ok {
		_, err := fmt.Fprintf(w, "\nFor %s the Python package wgpu has no library; build wgpu-native 29 from https://github.com/gfx-rs/wgpu-native\n", platform)
		return err
	}
	_, err := fmt.Fprintf(w, `
To get version 29 for %s, where pip is:

  pip download --no-deps --only-binary=:all: --platform %s wgpu==0.32.0
  python3 -m zipfile -e wgpu-0.32.0-*.whl .     # the library is in wgpu/resources

or take a release from https://github.com/gfx-rs/wgpu-native/releases. Call it %s, and put
it beside the program or on the system's library path, or name it in WAVELANE_WGPU. Then
'wavelane wgpu FILE' says whether it works.
`, platform, wheel[0], wheel[1])
	return err
}

// doubleWGSL doubles a vector through workgroup memory.
const doubleWGSL = `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> shared_x: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  if id.x < arrayLength(&x) { shared_x[lane] = x[id.x]; }
  workgroupBarrier();
  if id.x < arrayLength(&y) { y[id.x] = 2.0 * shared_x[lane]; }
}`

// tryLibrary runs a kernel on every adapter that a library finds.
func tryLibrary(ctx context.Context, w io.Writer, path string) error {
	name, err := gpu.Library(path)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, name)
	list, err := gpu.Adapters(ctx, gpu.WithLibrary(path))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("the library fits, but finds no Vulkan, Metal or Direct3D 12 adapter to try it on")
	}
	var failed []string
	for _, a := range list {
		if err := double(ctx, path, a.Index); err != nil {
			fmt.Fprintf(w, "  gpu:%d %s (%s): %v\n", a.Index, a.Name, a.Backend, err)
			if a.Backend != "dx12" { // which is not used unless asked for
				failed = append(failed, a.Name)
			}
			continue
		}
		fmt.Fprintf(w, "  gpu:%d %s (%s): works\n", a.Index, a.Name, a.Backend)
	}
	if failed != nil {
		return fmt.Errorf("%s: the kernel failed", strings.Join(failed, ", "))
	}
	return nil
}

// double runs a kernel on an adapter, and compares.
func double(ctx context.Context, path string, adapter int) error {
	d, err := gpu.Open(ctx, gpu.WithLibrary(path), gpu.WithAdapter(adapter), gpu.WithSoftware())
	if err != nil {
		return err
	}
	defer d.Close()
	k, err := gpu.NewKernel(ctx, d, gpu.KernelDesc{Label: "double", WGSL: doubleWGSL, Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite},
		Workgroup: [3]uint32{64, 1, 1}})
	if err != nil {
		return err
	}
	x, y := make([]float32, 1000), make([]float32, 1000)
	for i := range x {
		x[i] = float32(i)
	}
	if err := k.Run(ctx, gpu.Launch{Grid: [3]uint32{16, 1, 1}}, y, x); err != nil {
		return err
	}
	for i := range x {
		if y[i] != 2*x[i] {
			return fmt.Errorf("2·%g is %g", x[i], y[i])
		}
	}
	return nil
}
