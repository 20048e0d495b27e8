package dispatch

import "github.com/wavelane/wavelane/internal/simd/asmgen/ir"

// js is the GOOS where a call of SIMD code has a price, 70 to 80 ns, so that small slices are left to the portable fallbacks.
const js = "js"

// least is the number of elements from which a call pays, as measured under Node.js: a portable fallback takes 2 ns for an element of simple
// arithmetic, 0.8 ns for one of a fold, and 6 to 40 ns for one of a function or of Go's min and max.
func (s signature) least() int {
	if s.Wasm > 0 {
		return s.Wasm
	}
	operations := 0
	for _, n := range s.Build(ir.Features{Round: true}).Nodes {
		switch n.Op {
		case ir.OpInput, ir.OpParam, ir.OpConst, ir.OpAcc, ir.OpBits, ir.OpFloat:
		case ir.OpMinNaN, ir.OpMaxNaN:
			return 16
		default:
			operations++
		}
	}
	switch {
	case operations >= 16:
		return 16
	case s.store:
		return 48
	}
	return 96
}
