//go:build !js

package benchmarks

import (
	"context"
	"math/rand/v2"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

const (
	million = 1 << 20
	long    = 16 * million // elements beyond every cache
)

// cube is the size of matrices on the GPU; the test takes smaller ones, as software adapters take seconds for these.
var cube = 1024

// All lists the benchmarks.
func All() []Benchmark {
	return append([]Benchmark{
		{Name: "chain16", Unit: "GB/s", prepare: chain,
			Doc: "16 elementwise operations on 1M float32: one batch, a submission for each on resident tensors, a call for each on slices"},
		{Name: "matmul1024", Unit: "GFLOPS", Kinds: []string{"gpu"}, prepare: matmulVariants,
			Doc: "1024×1024 by 1024×1024, resident: tuned choice of kernel, untuned default, one thread per element"},
		{Name: "matmul512", Unit: "GFLOPS", Kinds: []string{"cpu"}, prepare: matmulLoop,
			Doc: "512×512 by 512×512 on slices: the device and a plain Go loop"},
		{Name: "pipeline", Kinds: []string{"gpu"}, prepare: pipelineCache,
			Doc: "one small operation whose pipeline is cached, and one whose pipeline must be compiled"},
		{Name: "elementwise", Unit: "GB/s", prepare: elementwise, Doc: "16M float32, resident: copy, add, gelu"},
		{Name: "reduce", Unit: "GB/s", prepare: reduce, Doc: "16M float32, resident: sum, max, argmax, dot"},
		{Name: "rows", Unit: "GB/s", prepare: rows, Doc: "4096 rows of 1024 float32, resident: softmax, layer norm, RMS norm"},
		{Name: "quant-q4_k", Unit: "GB/s", prepare: quantised(compute.Q4_K),
			Doc: "a vector by 4096×14336 weights in Q4_K, resident: a sum that reads as much, activations in 8 bits and in float32, weights dequantised first"},
		{Name: "quant-q8_0", Unit: "GB/s", prepare: quantised(compute.Q8_0), Doc: "the same with weights in Q8_0"},
	}, append(routing(), onCUDA()...)...)
}

// reduced is by how much the test, for which no figure matters, has less work.
var reduced = 1

// fitting is n, or as much as the software GPU can do in the time that others take for n: it is for kernels, not for work.
func fitting(dev *wavelane.Device, n int) int {
	if i := dev.Info(); i.Kind == "cuda" && i.Software {
		return max(1, n/256/reduced)
	}
	return n / reduced
}

// device is what the benchmarks use of any kind of device.
type device interface {
	batch.Device
	Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, error)
}

// random returns numbers that no kernel finds special.
func random(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = rand.Float32()*2 - 1
	}
	return s
}

// resident makes a way of one step on tensors that stay on the device. The result is kept there, too.
func resident(ctx context.Context, dev device, c *cleanups, name string, work float64,
	record func(b *batch.Batch, in []batch.Value) batch.Value, tensors ...compute.Tensor) (Way, error) {
	b := batch.New(dev)
	var in []batch.Value
	for _, t := range tensors {
		in = append(in, b.Import(t))
	}
	out := b.Keep(record(b, in))
	plan, err := b.Compile(ctx)
	if err != nil {
		return Way{}, err
	}
	c.add(plan.Close)
	return Way{Name: name, Work: work, run: func(ctx context.Context) error {
		if err := plan.Run(ctx); err != nil {
			return err
		}
		return out.Tensor().Close()
	}}, nil
}

func upload(ctx context.Context, dev device, c *cleanups, shape ...int) (compute.Tensor, error) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	t, err := dev.Upload(ctx, random(n), shape...)
	if err == nil {
		c.add(t.Close)
	}
	return t, err
}
