//go:build !js

package batch_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/cpu"
)

// A guard names the step at which numbers went wrong, and the first element that did.
func ExampleWithGuard() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	b := batch.New(dev, batch.WithGuard(batch.NaN|batch.Overflow, batch.Stop))
	x := b.Upload([]float32{1, 4, 9, -16}, 2, 2)
	y := b.Scale(x, 0.25)
	z := b.Sqrt(y)
	b.Read(b.ReLU(b.Add(z, x)))
	err = b.Run(context.Background())
	var found *batch.GuardError
	if errors.As(err, &found) {
		fmt.Println("step", found.Step, found.Operation, found.Check, "at", found.Position)
	}
	// Output: step 1 sqrt NaN at [1 1]
}

// A profile tells what each step took. Its trace is for ui.perfetto.dev.
func ExampleWithProfile() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	b := batch.New(dev, batch.WithProfile())
	x := b.Upload(make([]float32, 256*256), 256, 256)
	b.Read(b.Softmax(b.MatMul(x, x)))
	plan, err := b.Compile(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	if err := plan.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	p, err := plan.Profile()
	if err != nil {
		log.Fatal(err)
	}
	_ = p.String() // a table; p encodes as JSON, and p.Trace writes a trace
	for _, s := range p.Steps {
		fmt.Println(s.Operation, s.Operands, s.Flops, "flops", s.Bytes, "bytes", s.Time > 0)
	}
	// Output:
	// matmul [[256 256] [256 256]] 3.3554432e+07 flops 786432 bytes true
	// softmax [[256 256]] 524288 flops 524288 bytes true
}

// A plan prints as a listing of what runs.
func ExamplePlan_String() {
	dev, err := cpu.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3, 4}, 2, 2)
	b.Exp(x) // nobody reads it
	b.Read(b.MatMul(x, x))
	plan, err := b.Compile(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	fmt.Print(plan)
	// Output:
	// plan of 1 steps, for 2 recorded
	//       v0 = upload [2 2]
	//    0  v2 [2 2] = matmul(v0, v0)  ; recorded as 1
	//       read v2
}
