package lower

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Dispatch is how a kernel that works on a batch spreads it.
type Dispatch uint8

// The ways.
const (
	// GridOverItems runs the kernel of a single item on more blocks, or on more turns of them.
	GridOverItems Dispatch = iota
	// RegistersOverItems holds the sums of several items in registers, so that what they share is read once: kernels of the
	// same family, specialised to the number of items.
	RegistersOverItems
)

// KernelParity says, for entries whose batched kernels have a reference of one item, how the batch is dispatched.
var KernelParity = map[*program.Entry]Dispatch{
	catalogue.RMSNorm: GridOverItems, catalogue.LayerNorm: GridOverItems, catalogue.Softmax: GridOverItems, catalogue.AddRMSNorm: GridOverItems,
	catalogue.SwiGLU: GridOverItems, catalogue.Add: GridOverItems, catalogue.Rope: GridOverItems, catalogue.Attention: GridOverItems,
	catalogue.MatMul: RegistersOverItems,
}
