package wgslkernels

import (
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/wgsl"
)

// Dispatch runs a kernel once over a grid of workgroups.
type Dispatch struct {
	Kernel *wgsl.Kernel
	Bind   []Buffer // one per Kernel.Bindings; offsets are multiples of Caps.StorageAlign
	Params []uint32 // contents of the uniform, at most Kernel.Uniform/4 words; floats as their bits
	Grid   [3]uint32
}

// Move implements lowering.Launch.
func (d *Dispatch) Move(to func(Buffer) Buffer) *Dispatch {
	moved := *d
	moved.Bind = make([]Buffer, len(d.Bind))
	for i, b := range d.Bind {
		moved.Bind[i] = to(b)
	}
	return &moved
}

// Code implements lowering.Launch.
func (d *Dispatch) Code() (kernel string, grid [3]uint32, words []uint32) {
	return d.Kernel.Key, d.Grid, d.Params
}

// Actions are dispatches and copies; there are no fills.
type (
	Lowering = lowering.Code[*Dispatch]
	Action   = lowering.Action[*Dispatch]
	Buffer   = lowering.Buffer
	tensor   = lowering.Tensor
)
