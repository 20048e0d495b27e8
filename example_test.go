//go:build !js

package wavelane_test

import (
	"context"
	"fmt"
	"log"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
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
