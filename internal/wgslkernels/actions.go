package wgslkernels

import (
	"github.com/wavelane/wavelane/wgsl"
)

// Buffer names the memory that a dispatch binds: an operand, a result, or scratch memory of the lowering.
type Buffer struct {
	Role  Role
	Index int // of the operand, the result or the scratch buffer
	// Offset and Size in bytes select a part; Size 0 means all from Offset on. Offset is a multiple of Caps.StorageAlign.
	Offset, Size uint64
}

// Role of a buffer in a lowering.
type Role uint8

// Roles.
const (
	Operand Role = iota
	Result
	Scratch
)

// Dispatch runs a kernel once over a grid of workgroups.
type Dispatch struct {
	Kernel *wgsl.Kernel
	Bind   []Buffer // one per Kernel.Bindings
	Params []uint32 // contents of the uniform, at most Kernel.Uniform/4 words; floats as their bits
	Grid   [3]uint32
}

// Copy copies bytes between buffers without a kernel.
type Copy struct {
	From, To Buffer // same Size, multiple of 4
}

// Action is a Dispatch or a Copy (exactly one is set).
type Action struct {
	Dispatch *Dispatch
	Copy     *Copy
}

// Lowering is the code of one step: actions in order. Each sees what the earlier ones wrote.
type Lowering struct {
	Actions []Action
	Scratch []int // bytes of each scratch buffer; contents undefined at the start
}

// Chooser picks one of several variants of an operation: class and problem key the choice ("matmul", "1024x1024x1024"),
// candidates are variant names, the first being the safe default. It returns an index into candidates.
type Chooser func(class, problem string, candidates []string) int
