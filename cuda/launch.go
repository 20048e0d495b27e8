package cuda

import (
	"github.com/wavelane/wavelane/ptx/args"
)

// Arg is an argument of a launch; package ptx/args makes them: args.U32(n), args.F32(x). Buffers have methods
// of their own: Arg, and TensorMap for kernels that copy tiles.
type Arg = args.Arg

// Launch says how to run a kernel. Axes of Grid and Block that are 0 are 1; a Block of zeros is the one that the kernel
// requires.
type Launch struct {
	Grid, Block [3]uint32 // blocks of the grid, threads of a block
	Cluster     [3]uint32 // blocks of a cluster; zeros for none, or for what the kernel requires
	Shared      uint32    // bytes of dynamic shared memory of each block
	Cooperative bool      // all blocks are resident at once, and may wait for each other

	// Args are the arguments, one per parameter, if the kernel is a step of a batch: [Operand] and [Result] stand for the
	// step's memory. Elsewhere arguments are passed beside the launch, and this stays empty.
	Args []Arg
}

// Slots of arguments that are not operands.
const (
	resultSlot = -1
	noSlot     = -2 // an operand that cannot be
)

// Operand is the address of a step's i-th operand, from 0 on.
func Operand(i int) Arg {
	if i < 0 {
		i = noSlot
	}
	return args.Slot(i)
}

// Result is the address of a step's result.
func Result() Arg { return args.Slot(resultSlot) }
