//go:build !js

// Customkernel runs a shader of its own, for what the catalogue of operations has not: the Mandelbrot set. Inside a batch its
// result goes on to operations of the catalogue without leaving the GPU.
//
//	go run ./examples/customkernel
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/wgsl"
)

//go:embed mandelbrot.wgsl
var mandelbrot string

const (
	width, height = 78, 32
	iterations    = 200
)

func main() {
	software := flag.Bool("software", false, "where there is no GPU, run WebGPU on a software adapter")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *software); err != nil {
		fmt.Fprintln(os.Stderr, "customkernel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, software bool) error {
	// Shaders need WebGPU, so this program opens package gpu, where the others open the best device of any kind.
	dev, err := gpu.Open(ctx)
	if software && errors.Is(err, compute.ErrUnavailable) {
		dev, err = gpu.Open(ctx, gpu.WithSoftware())
	}
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintln(w, dev.Info())

	kernel, err := gpu.NewKernel(ctx, dev, gpu.KernelDesc{
		Label:     "mandelbrot",
		WGSL:      mandelbrot,
		Bindings:  []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, // operands, then the result
		Uniform:   16,
		Workgroup: [3]uint32{8, 8, 1},
	})
	if err != nil {
		var bad *gpu.ShaderError // says line and column
		if errors.As(err, &bad) {
			return fmt.Errorf("mandelbrot.wgsl:%d:%d: %w", bad.Line, bad.Column, err)
		}
		return err
	}

	b := batch.New(dev)
	window := b.Upload([]float32{-2.2, -1.2, 3, 2.4}) // left, top, width, height
	launch := gpu.Launch{
		Grid:   [3]uint32{(width + 7) / 8, (height + 7) / 8, 1},
		Params: []uint32{width, height, iterations},
	}
	escape := b.Kernel(kernel, launch, compute.Float32, []int{height, width}, window)
	brightness := b.Div(b.Log(escape), b.Scalar(float32(math.Log(iterations))))
	inside := b.Mean(b.ReLU(b.Sub(escape, b.Scalar(iterations-1)))) // 1 where z never escaped, else 0
	picture, share := b.Read(brightness), b.Read(inside)
	if err := b.Run(ctx); err != nil {
		return err
	}

	shades := []rune(" .:-=+*#%@")
	for row := range height {
		var line strings.Builder
		for _, v := range picture.Float32s()[row*width : (row+1)*width] {
			line.WriteRune(shades[int(v*float32(len(shades)-1))])
		}
		fmt.Fprintln(w, line.String())
	}
	area, _ := share.Scalar()
	fmt.Fprintf(w, "area of the set, estimated from %d points: %.2f (known: 1.51)\n", width*height, area*3*2.4)
	return nil
}
