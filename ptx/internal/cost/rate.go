package cost

import (
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// RateOf is the rate at which the operations of an instruction go. Half precision outside of tensor cores goes with f32.
func RateOf(in *ir.Instr) roofline.Rate {
	switch {
	case OpsOf(in).Warp > 0:
		return tensorRate(in)
	case in.Type(0) == ir.F64:
		return roofline.F64
	}
	return roofline.F32
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
