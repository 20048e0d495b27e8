package analyze

import (
	"github.com/wavelane/wavelane/ptx/internal/cost"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// opsOf is the operations of an instruction per thread, and at which rate they go. Products of matrices are spread over the threads that
// work on them.
func opsOf(in *ir.Instr) (float64, roofline.Rate) {
	ops := cost.OpsOf(in)
	switch {
	case ops.Warp > 0:
		return float64(ops.Warp) / 32, tensorRate(in)
	case in.Type(0) == ir.F64:
		return float64(ops.Lane), roofline.F64
	}
	return float64(ops.Lane), roofline.F32 // half precision outside of tensor cores goes with f32
}

// tensorRate is that of the type of the factors: the second type of the opcode, or the first that is not the accumulator's.
func tensorRate(in *ir.Instr) roofline.Rate {
	for i := 1; in.Type(i) != ir.NoType; i++ {
		switch in.Type(i) {
		case ir.BF16:
			return roofline.BF16
		case ir.TF32:
			return roofline.TF32
		case ir.E4M3, ir.E5M2:
			return roofline.FP8
		case ir.S8, ir.U8:
			return roofline.Int8
		case ir.F64:
			return roofline.D64
		}
	}
	return roofline.F16
}

// fragmentBytes is the part of a wmma fragment that one thread moves.
func fragmentBytes(in *ir.Instr) float64 {
	m, n, k, _ := in.Shape()
	elems := m * n
	switch in.Op {
	case "wmma.load.a":
		elems = m * k
	case "wmma.load.b":
		elems = k * n
	}
	return float64(elems*in.Type(0).Bits()) / 8 / 32
}
