//go:build !js

package batch_test

import (
	"context"
	"fmt"
	"log"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
)

// Dropout zeroes elements at random and scales the others, so that the mean stays. The seed is an input, so that every run of the plan
// may drop others; the numbers are the same on every device.
func ExampleBatch_Select() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	const keep = 0.75
	b := batch.New(dev)
	x := b.Upload([]float32{3, 3, 3, 3, 3, 3, 3, 3}, 8)
	seed := b.Upload([]uint32{2026, 0}, 2)
	kept := b.Less(b.RandomUniform(seed, 0, 8), b.Scalar(keep))
	y := b.Read(b.Select(kept, b.Scale(x, 1/keep), b.Scalar(0)))
	plan, err := b.Compile(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	for step := range uint32(2) {
		if err := plan.SetInput(seed, []uint32{2026, step}); err != nil {
			log.Fatal(err)
		}
		if err := plan.Run(context.Background()); err != nil {
			log.Fatal(err)
		}
		fmt.Println(y.Float32s())
	}
	// Output:
	// [4 4 4 4 0 4 4 0]
	// [0 4 4 4 4 4 4 4]
}

// Many searches at a time for the least of (x−1)²: whoever finds something better by chance goes there. Each repetition has a stream
// of random numbers of its own.
func ExampleBatch_RandomNormal() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	const n = 1000
	step := batch.New(dev)
	x, noise := step.Parameter(compute.Float32, n), step.Parameter(compute.Float32, n)
	cost := func(x batch.Value) batch.Value { return step.Abs(step.Sub(x, step.Scalar(1))) }
	next := step.Add(x, noise)
	step.Return(step.Select(step.Less(cost(next), cost(x)), next, x))

	b := batch.New(dev)
	seed := b.Upload([]uint32{1, 2}, 2)
	state := b.Fill(-3, n)
	for i := range 50 {
		state = b.Include(step, state, b.RandomNormal(seed, i, n))[0]
	}
	least, most := b.Read(b.Min(state)), b.Read(b.Max(state))
	if err := b.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(least.Float32s()[0] > 0.5, most.Float32s()[0] < 1.5)
	// Output: true true
}
