package wgsl_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/wgsl"
)

// Code can be read without a GPU: here that of two steps, on a device that grants only what every WebGPU grants.
func ExampleLowerProgram() {
	b := batch.New(nil) // nothing will run
	x := b.Upload(make([]float32, 6), 2, 3)
	b.Read(b.Sum(b.ReLU(x)))
	p, err := b.Program()
	if err != nil {
		log.Fatal(err)
	}
	code, err := wgsl.LowerProgram(p, &wgsl.DefaultCaps, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range code {
		for _, a := range step.Actions {
			k := a.Dispatch.Kernel
			fmt.Println(len(k.Bindings), "buffers, grid", a.Dispatch.Grid, strings.Contains(k.Source, "@compute"))
		}
	}
	// Output:
	// 2 buffers, grid [1 1 1] true
	// 2 buffers, grid [1 1 1] true
}
