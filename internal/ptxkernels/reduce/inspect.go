package reduce

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

var (
	inspectKernel = reduceKernel("inspect", "how many NaN and Inf, and the lowest place of each, -1 if there is none. Parameters: "+
		"work; u32* out, four per task; f32* x.", 1, inspect)
	inspectJoinKernel = joinKernel("inspect_join", "what inspect says of all parts. Parameters: work; u32* out, four per task; "+
		"u32* parts, four each.", nothingSpecial, bothSpecial, storeWords)
)

var nothingSpecial = []uint32{0, 0, math.MaxUint32, math.MaxUint32}

func bothSpecial(k *ptx.Kernel) scalar.Merge[uint32] {
	return func(a, b []ptx.Reg[uint32]) []ptx.Reg[uint32] {
		return []ptx.Reg[uint32]{ptx.Add(k, a[0], b[0]), ptx.Add(k, a[1], b[1]), ptx.Min(k, a[2], b[2]), ptx.Min(k, a[3], b[3])}
	}
}

// inspect compares absolute values as integers, where infinities are above all numbers and NaN is above those.
func inspect(t threadgroup.Group, _ finish) reduction[uint32] {
	k := t.K
	out := ptx.PointerParam[uint32](k, "out")
	return reduction[uint32]{
		identity: nothingSpecial, neutral: scalar.Num(0), merge: bothSpecial(k),
		value: func(x []scalar.Float, i func() ptx.Reg[uint32]) []ptx.Reg[uint32] {
			magnitude := ptx.And(k, ptx.Bitcast[uint32](k, x[0]), scalar.U32(math.MaxInt32))
			inf := scalar.U32(int(math.Float32bits(float32(math.Inf(1)))))
			nan, inf2 := ptx.Gt(k, magnitude, inf), ptx.Eq(k, magnitude, inf)
			one, zero, nowhere := scalar.U32(1), scalar.U32(0), ptx.Imm(uint32(math.MaxUint32))
			return []ptx.Reg[uint32]{ptx.Select(k, nan, one, zero), ptx.Select(k, inf2, one, zero),
				ptx.Select(k, nan, i(), nowhere), ptx.Select(k, inf2, i(), nowhere)}
		},
		store: func(acc []ptx.Reg[uint32]) { storeWords(t, out, acc) },
	}
}

func storeWords(t threadgroup.Group, out ptx.Ptr[ptx.Global, uint32], acc []ptx.Reg[uint32]) {
	ptx.Store4(t.K, ptx.AtByte(t.K, out, ptx.MulWideU32(t.K, t.Task, scalar.U32(16))), [4]ptx.Reg[uint32](acc))
}
