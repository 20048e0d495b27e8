//go:build !js

// Vectoradd writes a kernel for NVIDIA GPUs in Go, adds two vectors with it, and shows what the GPU is given: no nvcc, no cgo.
//
//	go run ./examples/vectoradd            # needs an NVIDIA GPU
//	go run ./examples/vectoradd -software  # on the software GPU, on any machine
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

func main() {
	software := flag.Bool("software", false, "run on the software GPU instead of NVIDIA's driver")
	n := flag.Int("n", 1_000_000, "elements")
	show := flag.Bool("ptx", false, "print the kernel's PTX")
	flag.Parse()
	var opts []cuda.Option
	if *software {
		opts = append(opts, cuda.WithSoftware())
	}
	if err := run(context.Background(), os.Stdout, *n, *show, opts...); err != nil {
		fmt.Fprintln(os.Stderr, "vectoradd:", err)
		if errors.Is(err, compute.ErrUnavailable) {
			fmt.Fprintln(os.Stderr, "With -software it runs without a GPU.")
		}
		os.Exit(1)
	}
}

// threads of a block.
const threads = 256

// add is out[i] = x[i] + y[i] for i < n, a thread for each element.
func add() (*ir.Module, error) {
	m := ptx.NewModule()
	k := m.Kernel("add")
	k.RequireThreads(threads, 1, 1)
	n := ptx.Param[uint32](k, "n")
	x := ptx.PointerParam[float32](k, "x")
	y := ptx.PointerParam[float32](k, "y")
	out := ptx.PointerParam[float32](k, "out")
	i := k.GlobalID(ptx.X)
	k.If(i.Lt(n), func() {
		sum := x.At(i).Load().Add(y.At(i).Load())
		out.At(i).Store(sum)
	})
	return m.Build()
}

func run(ctx context.Context, w io.Writer, n int, show bool, opts ...cuda.Option) error {
	if n < 1 || n > 1<<30 {
		return fmt.Errorf("-n %d: has to be between 1 and 2³⁰", n)
	}
	module, err := add()
	if err != nil {
		return err
	}
	if show {
		fmt.Fprintln(w, module)
	}
	dev, err := cuda.Open(ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintln(w, dev.Info())

	loaded, err := dev.LoadModule(module)
	if err != nil {
		return err
	}
	kernel, err := loaded.Kernel("add")
	if err != nil {
		return err
	}
	a := kernel.Attributes()
	fmt.Fprintf(w, "kernel add: %d registers a thread, %d bytes of local memory\n", a.Registers, a.Local)

	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i%1000), float32(2*i%1000)
	}
	var buffers [3]*cuda.Buffer[float32]
	for i := range buffers {
		if buffers[i], err = cuda.Alloc[float32](dev, n); err != nil {
			return err
		}
		defer buffers[i].Close()
	}
	bx, by, bout := buffers[0], buffers[1], buffers[2]
	if err := bx.Upload(ctx, x); err != nil {
		return err
	}
	if err := by.Upload(ctx, y); err != nil {
		return err
	}

	// A stream's recording goes to the GPU as it is made; what is submitted can be waited for.
	stream, err := dev.NewStream(cuda.StreamOptions{Timed: true})
	if err != nil {
		return err
	}
	defer stream.Close()
	rec, err := stream.Begin()
	if err != nil {
		return err
	}
	grid := cuda.Launch{Grid: [3]uint32{uint32((n + threads - 1) / threads)}}
	if err := rec.Launch(kernel, grid, args.U32(uint32(n)), bx.Arg(), by.Arg(), bout.Arg()); err != nil {
		return err
	}
	work, err := rec.Submit()
	if err != nil {
		return err
	}
	finished, err := work.Wait(ctx)
	if err != nil {
		return err
	}
	out := make([]float32, n)
	if err := bout.Download(ctx, out); err != nil {
		return err
	}
	for i := range out {
		if out[i] != x[i]+y[i] {
			return fmt.Errorf("element %d is %v, not %v", i, out[i], x[i]+y[i])
		}
	}
	fmt.Fprintf(w, "%d sums, all right, in %v\n", n, finished.Elapsed())
	return nil
}
