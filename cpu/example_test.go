package cpu_test

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

func Example() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		panic(err)
	}
	defer dev.Close()

	a := []float32{1, 2, 3, 4} // 2×2
	c := make([]float32, 4)
	f := dev.MatMulAsync(c, a, a, 2, 2, 2)
	if err := f.Await(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(c)
	// Output: [7 10 15 22]
}

func ExampleNewKernel() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		panic(err)
	}
	defer dev.Close()

	reverse, err := cpu.NewKernel(dev, "reverse", func(out compute.Operand, in []compute.Operand, _ any) error {
		x, y := in[0].Data.([]float32), out.Data.([]float32)
		if len(x) != len(y) {
			return fmt.Errorf("%d elements into %d: %w", len(x), len(y), compute.ErrShape)
		}
		for i, v := range x {
			y[len(y)-1-i] = v
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3})
	y := b.Read(b.Kernel(reverse, nil, compute.Float32, []int{3}, b.Scale(x, 10)))
	if err := b.Start().Await(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(y.Float32s())
	// Output: [30 20 10]
}
