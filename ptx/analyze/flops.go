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
	if ops.Warp > 0 {
		return float64(ops.Warp) / 32, cost.RateOf(in)
	}
	return float64(ops.Lane), cost.RateOf(in)
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
