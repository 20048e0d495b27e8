//go:build !js

package wavelane_test

import (
	"context"
	"fmt"
	"log"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

func ExampleOpen() {
	ctx := context.Background()
	dev, err := wavelane.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	a := []float32{1, 2, 3, 4, 5, 6} // 2×3
	b := []float32{1, 0, 0, 1, 1, 1} // 3×2
	c := make([]float32, 4)
	if err := dev.MatMul(ctx, c, a, b, 2, 3, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c)
	// Output: [4 5 10 11]
}

func ExampleDevice_Upload() {
	ctx := context.Background()
	dev, err := wavelane.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	weights, err := dev.Upload(ctx, []float32{1, -1, 2, 0.5}, 2, 2) // stays on the device
	if err != nil {
		log.Fatal(err)
	}
	defer weights.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{3, 4}, 1, 2)
	y := b.Read(b.ReLU(b.MatMul(x, b.Import(weights))))
	if err := b.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y.Float32s())
	// Output: [11 0]
}

// Weights stay in the blocks that a model file has them in.
func ExampleDevice_Upload_quantised() {
	ctx := context.Background()
	dev, err := wavelane.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	values := make([]float32, 2*32) // two rows: ones, and twos
	for i := range values {
		values[i] = float32(1 + i/32)
	}
	blocks, err := quant.QuantizeMatrix(quant.Q8_0, 2, 32, values, quant.Options{})
	if err != nil {
		log.Fatal(err)
	}
	packed, err := quant.Pack(blocks)
	if err != nil {
		log.Fatal(err)
	}
	weights, err := dev.Upload(ctx, packed.Words, packed.Shape()...)
	if err != nil {
		log.Fatal(err)
	}
	defer weights.Close()

	b := batch.New(dev)
	x := b.Upload(values[:32], 1, 32)
	y := b.Read(b.QuantMatMulRowMajor(x, b.Import(weights), compute.QuantOptions{Format: compute.Q8_0}))
	if err := b.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f\n", y.Float32s())
	// Output: [32.00 64.00]
}

func ExampleDevice_MatMulAsync() {
	ctx := context.Background()
	dev, err := wavelane.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	y := make([]float32, 3)
	f := dev.ScaleAsync(y, []float32{1, 2, 3}, 10)
	<-f.Done() // or a case of a select
	fmt.Println(y, f.Err())
	// Output: [10 20 30] <nil>
}
