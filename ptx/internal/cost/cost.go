// Package cost counts what instructions cost: arithmetic operations, passes over the banks of shared memory and sectors of global memory.
package cost

import "github.com/wavelane/wavelane/ptx/ir"

// Ops is the arithmetic operations of an instruction: of each lane or, for products of matrices, of all 32 lanes together.
type Ops struct {
	Lane, Warp uint64
	Integer    bool // operations on integers, otherwise flops
}

// OpsOf counts the operations of an instruction:
//   - an addition, multiplication, division, root, … of floating-point numbers is 1, for each element of a packed pair
//   - fma and mad are 2
//   - what does no arithmetic is 0: min, max, abs, neg, copysign, comparisons, conversions
//   - a product of m×k and k×n matrices is 2mnk, also of integers; other arithmetic on integers is 0
//
// A warp has a quarter of a product of wgmma, and four products of Volta's mma.m8n8k4 of halves.
func OpsOf(in *ir.Instr) Ops {
	switch in.Op {
	case "mma", "mma.sp", "mma.sp::ordered_metadata", "wmma.mma", "wgmma.mma_async":
		m, n, k, _ := in.Shape()
		ops := Ops{Warp: uint64(2 * m * n * k), Integer: !in.Type(0).IsFloat()}
		switch {
		case in.Kind() == ir.Wgmma:
			ops.Warp /= 4
		case in.Op == "mma" && k == 4 && in.Type(1) == ir.F16:
			ops.Warp *= 4
		}
		return ops
	case "neg", "abs", "copysign", "min", "max":
		return Ops{}
	}
	t := in.Type(0)
	if in.Kind() != ir.Arithmetic || !t.IsFloat() {
		return Ops{}
	}
	n := uint64(1)
	switch t {
	case ir.F16x2, ir.BF16x2, ir.F32x2:
		n = 2
	}
	if in.Op == "fma" || in.Op == "mad" {
		n *= 2
	}
	return Ops{Lane: n}
}
