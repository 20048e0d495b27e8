package gemm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// Arguments in the array sizes of matmul_small.
const (
	smallTotal = iota
	smallK
	smallAM // strides of a along m and k, of b along k and n
	smallAK
	smallBK
	smallBN
	smallFlags
	smallAct
	smallM     // a divisor
	smallN     = smallM + scalar.DivisorWords
	smallWords = smallN + scalar.DivisorWords
)

// matmulSmall is for many small products: what they read is in the caches.
var matmulSmall = kit.Register(kit.Kernel{Family: "matmul", Name: "matmul_small", Block: [3]int{tiling.PartThreads, 1, 1},
	Doc: "c = act(a·b + bias), a thread for each element. Parameters: u32 sizes[] (elements of c, k, strides of a along m " +
		"and k, of b along k and n, flags, activation; as divisors m, n), u64 strides of a and b from product to product, f32* " +
		"a, f32* b, f32* " +
		"bias, f32* c.",
	BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
		sizes := ptx.ParamArray[uint32](k, "sizes", smallWords)
		strideA, strideB := ptx.Param[uint64](k, "stride_a"), ptx.Param[uint64](k, "stride_b")
		a, b := ptx.PointerParam[float32](k, "a"), ptx.PointerParam[float32](k, "b")
		bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
		after := tiling.EpilogueOf(k, e)
		m, n := scalar.DivisorAt(k, sizes, smallM), scalar.DivisorAt(k, sizes, smallN)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(i.Ge(sizes.At(smallTotal)))
		row, col := n.Split(k, i)
		z, row := m.Split(k, row)
		wideZ := ptx.Convert[uint64](z)
		at := ptx.PtrVarOf(a.At(wideZ.Mul(strideA)).At(row.MulWide(sizes.At(smallAM))))
		bt := ptx.PtrVarOf(b.At(wideZ.Mul(strideB)).At(col.MulWide(sizes.At(smallBN))))
		sum := ptx.VarOf(k, ptx.Imm(float32(0)))
		ptx.For(k, 0, sizes.At(smallK), 1, func(ptx.Reg[uint32]) {
			sum.Set(at.Get().Load(ptx.ReadOnly).Fma(bt.Get().Load(ptx.ReadOnly), sum.Get()))
			at.Set(at.Get().At(sizes.At(smallAK)))
			bt.Set(bt.Get().At(sizes.At(smallBK)))
		}, ptx.Unroll(4))
		y := tiling.FinishElement(k, i, m, n, sizes.At(smallFlags), sizes.At(smallAct), bias, sum.Get(), after)
		c.At(i).Store(y)
	}})
