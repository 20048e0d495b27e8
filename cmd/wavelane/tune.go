//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/benchmarks"
	"github.com/wavelane/wavelane/internal/program"
)

// commonShapes of matmul, M×K×N: squares, one row (as in decoding), a few rows, a long inner dimension.
var commonShapes = []string{"256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048",
	"1x1024x1024", "1x4096x4096", "8x4096x4096", "64x4096x64"}

type tuneFlags struct {
	json, software bool
	device, dtype  string
	shapes         []string
}

func tuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune",
		Short: "Measure a GPU's kernel variants and remember the fastest",
		Long: `Measure a GPU's kernel variants on matrix products of common shapes, and remember the fastest of each in the
user's cache directory, where programs on this machine find them: for this GPU and this version of its driver. Shapes of
similar size share a choice. It works alike for WebGPU and for CUDA, whose software GPU (--software) shows how, slowly.`,
		Example: `  wavelane tune
  wavelane tune --shape 64x4096x4096 --shape 1x4096x32000
  wavelane tune --device cuda --type float16
  wavelane tune --device gpu:1 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return tune(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), f)
		},
	}
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
	c.Flags().StringVar(&f.device, "device", "gpu", "`name` as wavelane info lists them, gpu for the best adapter, or cuda")
	c.Flags().StringVar(&f.dtype, "type", "float32", "element `type` of the operands: float32, float16 or bfloat16")
	c.Flags().BoolVar(&f.software, "software", false, "take a software adapter where there is no GPU")
	c.Flags().StringSliceVar(&f.shapes, "shape", commonShapes, "`MxKxN` of a product of [M, K] and [K, N]")
	return c
}

func tune(ctx context.Context, out, errOut io.Writer, f tuneFlags) error {
	upload, ok := uploads[f.dtype]
	if !ok {
		return usagef("--type %s: must be float32, float16 or bfloat16", f.dtype)
	}
	var shapes [][]int
	for _, s := range f.shapes {
		dims, err := product(s)
		if err != nil {
			return usagef("--shape: %w", err)
		}
		shapes = append(shapes, dims)
	}
	devices, err := openDevices(ctx, benchFlags{device: f.device, software: f.software})
	if err != nil {
		return err
	}
	for _, dev := range devices {
		defer dev.Close()
	}
	dev := devices[0]
	if dev.Info().Kind == "cpu" {
		return usagef("--device %s: the CPU has nothing to tune", f.device)
	}
	list := []batch.Measurement{}
	bar := newBar(errOut, len(shapes))
	for i, dims := range shapes {
		bar.describe(f.shapes[i])
		m, err := tuneProduct(ctx, dev, upload, dims)
		if err != nil {
			bar.clear()
			return err
		}
		list = append(list, m...)
		bar.add(1)
	}
	bar.clear()
	if f.json {
		return writeJSON(out, list)
	}
	return writeMeasurements(out, dev.Info(), list)
}

// product returns M, K and N of a shape.
func product(shape string) ([]int, error) {
	var dims []int
	for _, text := range strings.Split(shape, "x") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not of the form 64x4096x4096", shape)
		}
		dims = append(dims, n)
	}
	if len(dims) != 3 {
		return nil, fmt.Errorf("%q is not of the form 64x4096x4096", shape)
	}
	return dims, errors.Join(program.F32(dims[0], dims[1]).Check(), program.F32(dims[1], dims[2]).Check())
}

// uploads bring zeros of a type.
var uploads = map[string]func(b *batch.Batch, rows, columns int) batch.Value{
	"float32":  uploadZeros[float32],
	"float16":  uploadZeros[compute.F16],
	"bfloat16": uploadZeros[compute.BF16],
}

func uploadZeros[T any](b *batch.Batch, rows, columns int) batch.Value {
	return b.Upload(make([]T, rows*columns), rows, columns)
}

// tuneProduct measures the kernels of a matmul.
func tuneProduct(ctx context.Context, dev *wavelane.Device, upload func(b *batch.Batch, rows, columns int) batch.Value,
	dims []int) ([]batch.Measurement, error) {
	b := batch.New(dev)
	b.Keep(b.MatMul(upload(b, dims[0], dims[1]), upload(b, dims[1], dims[2])))
	p, err := b.Compile(ctx)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Tune(ctx)
}

func writeMeasurements(w io.Writer, info wavelane.Info, list []batch.Measurement) error {
	fmt.Fprintf(w, "%s: %s\n", info.Kind, info.Name)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "class\tproblem\tfastest\tmedian\tdefault\tmedian")
	for _, m := range list {
		fmt.Fprintf(table, "%s\t%s", m.Class, m.Problem)
		for i, v := range m.Variants {
			if v == m.Winner {
				fmt.Fprintf(table, "\t%s\t%s", v, benchmarks.Short(m.Median[i]))
			}
		}
		fmt.Fprintf(table, "\t%s\t%s\n", m.Variants[0], benchmarks.Short(m.Median[0]))
	}
	return table.Flush()
}
