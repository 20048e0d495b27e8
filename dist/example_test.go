//go:build !js

package dist_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/dist"
)

// Under a launcher the same program has as many ranks as that has started.
func Example() {
	ctx := context.Background()
	w, err := dist.Init(ctx)
	if err != nil {
		log.Fatal(err)
	}
	x := []float32{float32(w.Rank() + 1)}
	if err := w.AllReduce(ctx, x, x, dist.Sum); err != nil {
		log.Fatal(err)
	}
	if w.Rank() == 0 {
		fmt.Println(w.Size(), "ranks, sum", x[0])
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: 1 ranks, sum 1
}

// Collectives of a batch are steps of it.
func Example_batch() {
	ctx := context.Background()
	w, err := dist.Init(ctx)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := cpu.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3})
	gradient := b.Scale(x, 2)
	average := b.AllReduce(gradient, w, dist.Mean) // goes on while steps run that do not need it
	result := b.Read(b.Sub(x, b.Scale(average, 0.1)))
	plan, err := b.Compile(ctx) // all ranks call it: it compares what they have recorded
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	if err := plan.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Float32s())
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: [0.8 1.6 2.4]
}

// Every process has a GPU of its own.
func ExampleLocalRank() {
	ctx := context.Background()
	gpu, err := cuda.Open(ctx, cuda.WithDevice(dist.LocalRank()))
	if err != nil {
		log.Fatal(err)
	}
	w, err := dist.Init(ctx, dist.WithDevice(gpu), dist.WithTimeout(10*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Info().Engine)
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
}
