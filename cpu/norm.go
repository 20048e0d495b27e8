package cpu

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// gatedRows multiplies the result by silu(gate).
var gatedRows = rowsForm{gamma: 2, ns: swigluOp.Cost.Ns(),
	x:     func(a *args) []float32 { return a.in[0].f32() },
	y:     func(a *args) []float32 { return a.out.f32() },
	after: func(a *args, lo, hi int) { swiglu(a.out.f32()[lo:hi], a.in[1].f32()[lo:hi], a.out.f32()[lo:hi]) },
}

var l2NormalizeRow = engine.RowOp[engine.Squares]{Cost: engine.Cost{Scalar: 1.2, AVX512: 0.09}, Merge: engine.Squares.Plus, Block: engine.SquaresOf,
	Write: func(y, x, _, _ []float32, _, row engine.Squares, eps float64) {
		kernels.Scale(y, x, float32(1/math.Sqrt(row.Sum+eps)))
	}}

// addedRows has x + residual as x, which is the first result.
var addedRows = rowsForm{gamma: 2, ns: engine.Cheap.Ns(),
	x: func(a *args) []float32 { return a.outs[0].f32() },
	y: func(a *args) []float32 { return a.outs[1].f32() },
	before: func(a *args, lo, hi int) {
		kernels.Add(a.outs[0].f32()[lo:hi], a.in[0].f32()[lo:hi], a.in[1].f32()[lo:hi])
	},
}
