// Package lowering is the vocabulary of lowered steps: what the code of one step of a program consists of, whichever language its
// kernels are written in, and the part of writing it that is the same for all: prologues and epilogues are separated from the entry,
// entries are made of others, operands are numbered as the step has them.
package lowering

import (
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
)

// Role of a buffer in a lowering.
type Role uint8

// Roles.
const (
	Operand Role = iota
	Result
	Scratch

	// Operands of a step's prologue, and those of its epilogue from the second on. A finished lowering has neither: they are operands.
	OfPrologue
	OfEpilogue
)

// Buffer names memory of a step: an operand, a result, or scratch memory of the lowering. What lies between the end of its elements
// and the next multiple of 16 bytes may be read and written, and is undefined.
type Buffer struct {
	Role  Role
	Index int // of the operand, the result or the scratch buffer
	// Offset and Size in bytes select a part; Size 0 means all from Offset on.
	Offset, Size int
}

// Plus is the buffer from n bytes further on.
func (b Buffer) Plus(n int) Buffer {
	b.Offset += n
	return b
}

// Copy copies Size bytes between buffers, a multiple of 4.
type Copy struct{ From, To Buffer }

// Fill writes one word of four bytes everywhere in a buffer.
type Fill struct {
	To   Buffer
	Word uint32
}

// Launch is a run of a kernel over a grid; each language has its own.
type Launch[L any] interface {
	comparable
	// Move returns the launch with every buffer replaced.
	Move(to func(Buffer) Buffer) L
	// Code is the kernel's name, the grid, and the parameters as words of 32 bits.
	Code() (kernel string, grid [3]uint32, words []uint32)
}

// Action is a launch, a copy or a fill: exactly one is not nil.
type Action[L any] struct {
	Launch L
	Copy   *Copy
	Fill   *Fill
}

// Code is the code of one step: actions in order. Each sees what the earlier ones wrote.
type Code[L any] struct {
	Actions []Action[L]
	Scratch []int // bytes of each scratch buffer; contents undefined at the start
}

// Chooser decides between variants of a kernel.
type Chooser = tune.Chooser

// Tensor is a value of a step that is made of others: memory and what it holds.
type Tensor struct {
	Buffer
	program.Type
}
