package gemm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// smallParams are those of matmul_small.
type smallParams struct {
	Total, K         int `array:"sizes"` // elements of c, depth
	AM, AK           int // strides of a along m and k
	BK, BN           int // and of b along k and n
	Flags, Act       int
	M, N             scalar.Divide
	StrideA, StrideB uint64 // from product to product
	A, B, Bias, C    kit.Buffer
}

// matmulSmall is for many small products: what they read is in the caches.
var matmulSmall = kit.Register(kit.Kernel{Family: "matmul", Name: "matmul_small", Block: [3]int{tiling.PartThreads, 1, 1},
	Doc: "c = act(a·b + bias), a thread for each element.", Params: smallParams{},
	BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
		var at smallParams
		p := kit.NewParams(k, &at)
		strideA, strideB := kit.Read(p, &at.StrideA), kit.Read(p, &at.StrideB)
		a, b := kit.Ptr[float32](p, &at.A), kit.Ptr[float32](p, &at.B)
		bias, c := kit.Ptr[float32](p, &at.Bias), kit.Ptr[float32](p, &at.C)
		after := tiling.EpilogueOf(k, e)
		m, n := p.Divisor(&at.M), p.Divisor(&at.N)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(i.Ge(p.U32(&at.Total)))
		row, col := n.Split(k, i)
		z, row := m.Split(k, row)
		wideZ := ptx.Convert[uint64](z)
		from := ptx.PtrVarOf(a.At(wideZ.Mul(strideA)).At(row.MulWide(p.U32(&at.AM))))
		with := ptx.PtrVarOf(b.At(wideZ.Mul(strideB)).At(col.MulWide(p.U32(&at.BN))))
		sum := ptx.VarOf(k, ptx.Imm(float32(0)))
		ptx.For(k, 0, p.U32(&at.K), 1, func(ptx.Reg[uint32]) {
			sum.Set(from.Get().Load(ptx.ReadOnly).Fma(with.Get().Load(ptx.ReadOnly), sum.Get()))
			from.Set(from.Get().At(p.U32(&at.AK)))
			with.Set(with.Get().At(p.U32(&at.BK)))
		}, ptx.Unroll(4))
		y := tiling.FinishElement(k, i, m, n, p.U32(&at.Flags), p.U32(&at.Act), bias, sum.Get(), after)
		c.At(i).Store(y)
	}})
