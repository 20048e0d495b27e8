// Package kernels has kernels written with the builder of package ptx: each executed by the software GPU in this package's tests, over many
// shapes and schedules, against float64.
//
// Sizes are parameters of a launch. What is baked into a kernel is what changes its code: tiles, layouts, element types. Matrices are dense
// and row-major. Pointers are as aligned as allocations are, to 16 bytes at least; sizes count elements and stay below 2³¹ but for products
// of two, which may be as large as memory. No kernel reads or writes beside what its parameters say.
package kernels

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Kernel is a kernel with all that its code depends on.
type Kernel struct {
	Name  string // of the entry
	Doc   string // what it computes, with its parameters in order
	Sizes string // the names of what Grid takes
	Block [3]int // threads of a block, each way
	// Grid is the blocks that a launch for these sizes should have. Kernels that stride over their data work with any other number too.
	Grid  func(sizes ...int) [3]int
	build func(k *ptx.Kernel)
	err   error // of its parameters
}

// Module is the kernel alone in a module.
func (k Kernel) Module() (*ir.Module, error) {
	if k.err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, k.err)
	}
	m := ptx.NewModule()
	b := m.Kernel(k.Name)
	b.RequireThreads(k.Block[0], k.Block[1], k.Block[2])
	k.build(b)
	out, err := m.Build()
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return out, nil
}

// All returns every kernel, those with parameters in the specialisations that the tests run.
func All() []Kernel {
	return []Kernel{
		VectorAdd(), Saxpy(),
		BlockSum(), GridSum(), Softmax(), Scan(), Histogram(),
		Transpose(Padded), Transpose(Swizzled),
		SGEMMNaive(), SGEMMTiled(),
		SGEMM(Tile{M: 64, N: 64, K: 16, PerThreadM: 4, PerThreadN: 4}),
		SGEMM(Tile{M: 128, N: 64, K: 8, PerThreadM: 8, PerThreadN: 4}),
		HGEMM(),
	}
}

// linear is a grid of blocks that do per elements each, at most limit of them: for kernels that stride.
func linear(per, limit int) func(...int) [3]int {
	return func(sizes ...int) [3]int { return [3]int{max(1, min(limit, ceilDiv(sizes[0], per))), 1, 1} }
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// u32 is a constant.
func u32(n int) ptx.Reg[uint32] { return ptx.Imm(uint32(n)) }

// row is element i of the row-major matrix p with rows of length n. The product is taken in 64 bits.
func row[T ptx.Elem](k *ptx.Kernel, p ptx.Ptr[ptx.Global, T], i, n ptx.Reg[uint32]) ptx.Ptr[ptx.Global, T] {
	return ptx.At(k, p, ptx.MulWideU32(k, i, n))
}
