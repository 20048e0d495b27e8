//go:build !js

// Quickstart opens the best device of the machine, multiplies two matrices, and runs a chain of operations as one batch.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
)

func main() {
	software := flag.Bool("software", false, "where there is no GPU, run WebGPU on a software adapter")
	flag.Parse()
	var opts []wavelane.Option
	if *software {
		opts = append(opts, wavelane.WithSoftware())
	}
	if err := run(context.Background(), os.Stdout, opts...); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, opts ...wavelane.Option) error {
	dev, err := wavelane.Open(ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintln(w, dev.Explain())

	// One operation is one call.
	a := []float32{
		1, 2, 3,
		4, 5, 6,
	}
	b := []float32{
		1, 0,
		0, 1,
		1, 1,
	}
	c := make([]float32, 4)
	if err := dev.MatMul(ctx, c, a, b, 2, 3, 2); err != nil {
		return err
	}
	fmt.Fprintln(w, "a·b =", c)

	// Many operations are a batch: one upload, one submission, one readback.
	rec := batch.New(dev)
	x := rec.Upload([]float32{-2, -1, 0, 1, 2, 3}, 2, 3)
	y := rec.Softmax(rec.Scale(rec.ReLU(x), 0.5))
	out := rec.Read(y)
	if err := rec.Run(ctx); err != nil { // the first mistake in recording surfaces here too
		return err
	}
	fmt.Fprintf(w, "softmax(½·relu(x)) = %.3f\n", out.Float32s())
	return nil
}
