//go:build !js

package batch_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

func Example() {
	dev, err := cpu.Open(context.Background()) // or any other device
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	image := []float32{
		0, 0, 0, 9,
		0, 0, 0, 9,
		0, 0, 0, 9,
	}
	edge := []float32{-1, 1}
	b := batch.New(dev)
	x := b.Upload(image, 3, 4)
	y := b.Scale(b.ReLU(b.Conv2D(x, b.Upload(edge, 1, 2))), 0.5)
	out := b.Read(y)
	if err := b.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Shape(), out.Float32s())
	// Output: [3 3] [0 0 4.5 0 0 4.5 0 0 4.5]
}

// A plan is compiled once; each run reads its inputs anew.
func ExampleBatch_Compile() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	ctx := context.Background()
	x := []float32{1, 2, 3}
	b := batch.New(dev)
	total := b.Read(b.Sum(b.Mul(b.Upload(x), b.Upload([]float32{1, 10, 100}))))
	plan, err := b.Compile(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	for range 3 {
		if err := plan.Run(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(total.Float32s())
		x[0]++
	}
	// Output:
	// [321]
	// [322]
	// [323]
}

// A kept value stays on the device as a tensor, for other batches to import.
func ExampleBatch_Keep() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	ctx := context.Background()
	first := batch.New(dev)
	kept := first.Keep(first.Exp(first.Upload([]float32{0, 0, 0})))
	if err := first.Run(ctx); err != nil {
		log.Fatal(err)
	}
	ones := kept.Tensor()
	defer ones.Close()

	second := batch.New(dev)
	total := second.Read(second.Sum(second.Import(ones)))
	if err := second.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(total.Float32s())
	// Output: [3]
}

// A plan may be given other slices and tensors than it was recorded with.
func ExamplePlan_SetInput() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	ctx := context.Background()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3})
	largest := b.Read(b.ArgMax(x))
	plan, err := b.Compile(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	for _, data := range [][]float32{{5, 1, 1}, {1, 7, 7}} {
		if err := plan.SetInput(x, data); err != nil {
			log.Fatal(err)
		}
		if err := plan.Run(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(largest.Int32s())
	}
	// Output:
	// [0]
	// [1]
}

// The first mistake is kept, with the line that made it, and everything after it is ignored.
func ExampleBatch_Err() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	b := batch.New(dev)
	a := b.Upload(make([]float32, 6), 2, 3)
	b.Read(b.Softmax(b.MatMul(a, a))) // inner dimensions differ
	err = b.Run(context.Background())
	fmt.Println(errors.Is(err, compute.ErrShape))
	// Output: true
}
