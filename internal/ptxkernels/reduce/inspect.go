package reduce

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

var inspectKernel = reduceKernel("inspect", "how many NaN and Inf, and the lowest place of each, -1 if there is none: four u32 for each row.", bare, inspect)

// special accumulates counts and lowest places.
var special = threadgroup.Accumulator[uint32]{Identity: []uint32{0, 0, math.MaxUint32, math.MaxUint32},
	Combine: func(a, b []ptx.Reg[uint32]) []ptx.Reg[uint32] {
		return []ptx.Reg[uint32]{a[0].Add(b[0]), a[1].Add(b[1]), a[2].Min(b[2]), a[3].Min(b[3])}
	}}

// inspect compares absolute values as integers, where infinities are above all numbers and NaN is above those.
func inspect(t threadgroup.Group, at *reduceParams, _ finish) reduction[uint32] {
	out := kit.Ptr[uint32](t.Params, &at.Out)
	return reduction[uint32]{
		Accumulator: special, neutral: ptx.F32(0),
		value: func(x []scalar.Float, i func() ptx.Reg[uint32]) []ptx.Reg[uint32] {
			magnitude := ptx.Bitcast[uint32](x[0]).And(math.MaxInt32)
			inf := ptx.U32(int(math.Float32bits(float32(math.Inf(1)))))
			nan, inf2 := magnitude.Gt(inf), magnitude.Eq(inf)
			one, zero, nowhere := ptx.U32(1), ptx.U32(0), ptx.Imm(uint32(math.MaxUint32))
			return []ptx.Reg[uint32]{ptx.Select(nan, one, zero), ptx.Select(inf2, one, zero),
				ptx.Select(nan, i(), nowhere), ptx.Select(inf2, i(), nowhere)}
		},
		store: func(acc []ptx.Reg[uint32]) { out.Bytes(t.Row.MulWide(16)).Store4([4]ptx.Reg[uint32](acc)) },
	}
}
