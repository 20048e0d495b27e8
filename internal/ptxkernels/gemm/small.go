package gemm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// smallSizes are the run-time numbers of matmul_small.
type smallSizes[W, D any] struct {
	Total, K   W // elements of c
	AM, AK     W // strides of a along m and k
	BK, BN     W // and of b along k and n
	Flags, Act W
	M, N       D
}

// matmulSmall is for many small products: what they read is in the caches.
var matmulSmall = kit.Register(kit.Kernel{Family: "matmul", Name: "matmul_small", Block: [3]int{tiling.PartThreads, 1, 1},
	Doc: "c = act(a·b + bias), a thread for each element. Parameters: u32 sizes[] (" +
		scalar.WordNames[smallSizes[int, scalar.Divide]]() + "), u64 strides of a and b from product to product, f32* " +
		"a, f32* b, f32* " +
		"bias, f32* c.",
	BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
		sizes := scalar.ParamWords[smallSizes[scalar.Word, scalar.DivisorWord]](k, "sizes")
		strideA, strideB := ptx.Param[uint64](k, "stride_a"), ptx.Param[uint64](k, "stride_b")
		a, b := ptx.PointerParam[float32](k, "a"), ptx.PointerParam[float32](k, "b")
		bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
		after := tiling.EpilogueOf(k, e)
		m, n := sizes.M.Load(k), sizes.N.Load(k)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(i.Ge(sizes.Total.Load()))
		row, col := n.Split(k, i)
		z, row := m.Split(k, row)
		wideZ := ptx.Convert[uint64](z)
		at := ptx.PtrVarOf(a.At(wideZ.Mul(strideA)).At(row.MulWide(sizes.AM.Load())))
		bt := ptx.PtrVarOf(b.At(wideZ.Mul(strideB)).At(col.MulWide(sizes.BN.Load())))
		sum := ptx.VarOf(k, ptx.Imm(float32(0)))
		ptx.For(k, 0, sizes.K.Load(), 1, func(ptx.Reg[uint32]) {
			sum.Set(at.Get().Load(ptx.ReadOnly).Fma(bt.Get().Load(ptx.ReadOnly), sum.Get()))
			at.Set(at.Get().At(sizes.AK.Load()))
			bt.Set(bt.Get().At(sizes.BK.Load()))
		}, ptx.Unroll(4))
		y := tiling.FinishElement(k, i, m, n, sizes.Flags.Load(), sizes.Act.Load(), bias, sum.Get(), after)
		c.At(i).Store(y)
	}})
