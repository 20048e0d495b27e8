//go:build !js

package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/wgsl"
)

// Open the best hardware adapter, or explain why there is none.
func ExampleOpen() {
	dev, err := gpu.Open(context.Background())
	if errors.Is(err, compute.ErrUnavailable) {
		dev, err = gpu.Open(context.Background(), gpu.WithSoftware()) // slow, but it runs anywhere
	}
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	fmt.Println(dev.Info().Limits.MaxInvocations >= 128)
	// Output: true
}

func ExampleAdapters() {
	list, err := gpu.Adapters(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range list {
		if a.Type == gpu.Software { // left out of the automatic choice
			fmt.Println(a.Backend, a.Limits.MaxStorageBuffers >= 8)
			break
		}
	}
	// Output: vulkan true
}

// Data stays on the device between kernels.
func ExampleDevice_Upload() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithSoftware())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	t, err := dev.Upload(ctx, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	back := make([]float32, 6)
	if err := compute.Read(ctx, t, back); err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Shape(), t.DType(), back)
	// Output: [2 3] f32 [1 2 3 4 5 6]
}

// A kernel of your own: operands are bindings 0, 1, …, the result follows, then the uniform.
func ExampleNewKernel() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithSoftware())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	axpy, err := gpu.NewKernel(ctx, dev, gpu.KernelDesc{
		Label: "axpy",
		WGSL: `
			struct Params { n: u32, a: f32 }
			@group(0) @binding(0) var<storage, read> x: array<f32>;
			@group(0) @binding(1) var<storage, read> y: array<f32>;
			@group(0) @binding(2) var<storage, read_write> z: array<f32>;
			@group(0) @binding(3) var<uniform> p: Params;
			@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
				if (id.x < p.n) { z[id.x] = p.a * x[id.x] + y[id.x]; }
			}`,
		Bindings:  []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.ReadWrite},
		Uniform:   16,
		Workgroup: [3]uint32{64, 1, 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	z := make([]float32, 3)
	launch := gpu.Launch{Grid: [3]uint32{1, 1, 1}, Params: []uint32{3, math.Float32bits(10)}}
	if err := axpy.Run(ctx, launch, z, []float32{1, 2, 3}, []float32{4, 5, 6}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(z)
	// Output: [14 25 36]
}

// What the compiler says about WGSL has a line and a column.
func ExampleShaderError() {
	dev, err := gpu.Open(context.Background(), gpu.WithSoftware())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	_, err = gpu.NewKernel(context.Background(), dev, gpu.KernelDesc{
		Label:     "typo",
		WGSL:      "@compute @workgroup_size(64)\nfn main() { let x: i32 = 1.5; }",
		Bindings:  []wgsl.Access{wgsl.ReadWrite},
		Workgroup: [3]uint32{64, 1, 1},
	})
	var s *gpu.ShaderError
	if errors.As(err, &s) {
		fmt.Println(s.Label, "has a mistake in line", s.Line)
	}
	// Output: typo has a mistake in line 2
}

// A kernel of your own is a step of a batch like any other.
func ExampleLaunch() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithSoftware())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	square, err := gpu.NewKernel(ctx, dev, gpu.KernelDesc{
		Label: "square",
		WGSL: `
			@group(0) @binding(0) var<storage, read> x: array<f32>;
			@group(0) @binding(1) var<storage, read_write> y: array<f32>;
			@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
				if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
			}`,
		Bindings:  []wgsl.Access{wgsl.Read, wgsl.ReadWrite},
		Workgroup: [3]uint32{64, 1, 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	b := batch.New(dev)
	x := b.Scale(b.Upload([]float32{1, 2, 3}), 2)
	y := b.Kernel(square, gpu.Launch{Grid: [3]uint32{1, 1, 1}}, compute.Float32, []int{3}, x)
	sum := b.Read(b.Sum(y))
	if err := b.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Float32s())
	// Output: [56]
}

// Tuning a plan measures the variants of the kernels that it would use, and remembers the fastest for this adapter.
func ExampleWithTuneCache() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tune")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dev, err := gpu.Open(ctx, gpu.WithSoftware(), gpu.WithTuneCache(dir)) // without a directory: the user's cache
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	b := batch.New(dev)
	x := b.Upload(make([]float32, 64*64), 64, 64)
	b.Read(b.MatMul(x, x))
	p, err := b.Compile(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	measured, err := p.Tune(ctx) // compiles the plan anew with the fastest
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for _, m := range measured {
		fmt.Println(m.Class, slices.Contains(m.Variants, m.Winner))
	}
	// Output: matmul true
}

func ExampleDevice_Memory() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithSoftware(), gpu.WithMemoryLimit(1<<20))
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	t, err := dev.Upload(ctx, make([]float32, 1000))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dev.Memory().InUse >= 4000)
	t.Close()
	_, err = dev.Upload(ctx, make([]float32, 1<<20))
	fmt.Println(errors.Is(err, compute.ErrOutOfMemory))
	// Output:
	// true
	// true
}
