package gpu

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// allocate gives every value an allocation: blocks of values and scratch memory come first, then tensors, then retained outputs.
//
// Nothing lies over an operand, not even what a thread reads and writes at one allocation: a dispatch may not bind a buffer for reading and, a
// second time, for writing. It could if the operand had no binding and the kernel read the result's, which would be one more pipeline
// for each operand of each expression. CUDA and the CPU device do it.
func (d *core) allocate(pl *plan, lowerings []wgslkernels.Lowering) error {
	p := pl.prog
	for _, v := range p.Values { // also of tensors
		if _, err := d.room(v.Bytes()); err != nil {
			return fmt.Errorf("a value of type %v: %w", v.Type, err)
		}
	}
	err := pl.layout.Allocate(&device.Allocator{Blocks: true, Inputs: p.Host, Room: d.room,
		Scratch: func(i int) []int { return lowerings[i].Scratch }})
	if err != nil {
		return err
	}
	for _, n := range pl.layout.Blocks {
		pl.addAllocation(uint64(n), true)
	}
	for range len(p.Tensor) + len(p.Keep) {
		pl.addAllocation(0, false)
	}
	return nil
}

// allocation is where a value lies.
func (pl *plan) allocation(s program.Slot) int {
	a, blocks := pl.layout.Values[s], len(pl.layout.Blocks)
	switch a.Kind {
	case device.InTensor:
		return blocks + a.Index
	case device.InRetained:
		return blocks + len(pl.prog.Tensor) + a.Index
	}
	return a.Offset
}

// addAllocation returns a new allocation.
func (pl *plan) addAllocation(bytes uint64, stable bool) int {
	pl.sizes, pl.stable = append(pl.sizes, bytes), append(pl.stable, stable)
	return len(pl.sizes) - 1
}

// bytes is the room of a value.
func (pl *plan) bytes(s program.Slot) uint64 { return wgsl.BufferSize(pl.prog.Values[s].Bytes()) }

// room is the size of a buffer for so many bytes.
func (d *core) room(bytes int) (int, error) {
	n := wgsl.BufferSize(bytes)
	if n > d.info.Limits.MaxBuffer {
		return 0, fmt.Errorf("a buffer of %d bytes is needed, the device allows %d: %w", n, d.info.Limits.MaxBuffer, compute.ErrTooLarge)
	}
	return int(n), nil
}

// Memory tells what one run needs; see [program.Executable].
func (pl *plan) Memory() program.Memory { return pl.layout.Memory() }

// Launches lists the launches, copies and fills of each step; see [program.Executable].
func (pl *plan) Launches() [][]program.Launch {
	steps, at := make([][]program.Launch, len(pl.ends)), 0
	for i, end := range pl.ends {
		for ; at < end; at++ {
			l := program.Launch{Kernel: "copy"}
			if a := &pl.actions[at]; a.pipeline != nil {
				l = program.Launch{Kernel: a.kernel.Key, Grid: a.grid, Block: a.kernel.Workgroup}
			}
			steps[i] = append(steps[i], l)
		}
	}
	return steps
}
