package analyze

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// flopsOf is the number of operations that an instruction does per thread: a fused multiply-add counts two, a product of
// matrices 2mnk spread over the threads that work on it.
func flopsOf(in *ir.Instr) (float64, roofline.Rate) {
	switch in.Op {
	case "mma", "mma.sp", "wmma.mma", "wgmma.mma_async":
		threads := 32.0
		if in.Kind() == ir.Wgmma {
			threads = 128
		}
		m, n, k := shapeOf(in)
		return 2 * m * n * k / threads, tensorRate(in)
	}
	t := in.Type(0)
	if !t.IsFloat() || in.Kind() != ir.Arithmetic {
		return 0, roofline.F32
	}
	n := 1.0
	switch t {
	case ir.F16x2, ir.BF16x2, ir.F32x2:
		n = 2
	}
	rate := roofline.F32 // half precision outside of tensor cores goes with f32
	if t == ir.F64 {
		rate = roofline.F64
	}
	switch in.Op {
	case "fma", "mad":
		return 2 * n, rate
	case "abs", "neg", "copysign":
		return 0, rate
	}
	return n, rate
}

// shapeOf reads m16n8k16.
func shapeOf(in *ir.Instr) (m, n, k float64) {
	for _, mod := range in.Mods {
		if _, err := fmt.Sscanf(string(mod), "m%fn%fk%f", &m, &n, &k); err == nil {
			return m, n, k
		}
	}
	return 0, 0, 0
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
	m, n, k := shapeOf(in)
	elems := m * n
	switch in.Op {
	case "wmma.load.a":
		elems = m * k
	case "wmma.load.b":
		elems = k * n
	}
	return elems * float64(in.Type(0).Bits()) / 8 / 32
}
