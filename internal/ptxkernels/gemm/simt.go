package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// gemms are the kernels that matmul picks from, the largest tile first.
var gemms = []tiling.Tiled{simt(tiling.Shape{M: 128, N: 128, K: 8}), simt(tiling.Shape{M: 64, N: 64, K: 16})}

func simt(t tiling.Shape) tiling.Tiled {
	return tiling.Tiled{Shape: t, Kernel: kit.Register(kit.Kernel{Family: "matmul", Name: fmt.Sprintf("gemm_%dx%dx%d", t.M, t.N, t.K),
		Block: [3]int{tiling.GemmThreads, 1, 1},
		Doc: "c[split][product] = act(a·b + bias) over a split of the depth. Bias and activation are for a single split. " +
			"Block = (split · products + product) · tiles + tile.",
		Params:    gemmParams{},
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { buildSIMT(k, t, e) },
	})}
}

// gemmParams are those of gemm.
type gemmParams struct {
	tiling.GemmSizes
	StrideA, StrideB uint64 // from product to product
	A, B, Bias, C    kit.Buffer
}

// product reads the parameters, with a and b of the block's product.
func (at *gemmParams) product(k *ptx.Kernel, t tiling.Shape, blocks int, e *kit.Epilogue) (prod *tiling.Product, p *kit.Params, a, b ptx.Ptr[ptx.Global, float32]) {
	p = kit.NewParams(k, at)
	strideA, strideB := kit.Read(p, &at.StrideA), kit.Read(p, &at.StrideB)
	a, b = kit.Ptr[float32](p, &at.A), kit.Ptr[float32](p, &at.B)
	bias, c := kit.Ptr[float32](p, &at.Bias), kit.Ptr[float32](p, &at.C)
	after := tiling.EpilogueOf(k, e)
	k.MinBlocks(blocks) // what ptxas needs to know lest it saves registers and spills
	prod = tiling.ProductOf(p, t, &at.GemmSizes)
	prod.Bias, prod.Places, prod.After = bias, prod.PlacesIn(c), after
	z := ptx.Convert[uint64](prod.Z)
	return prod, p, a.At(z.Mul(strideA)), b.At(z.Mul(strideB))
}

// buildSIMT writes a kernel whose operands lie either way.
func buildSIMT(k *ptx.Kernel, t tiling.Shape, e *kit.Epilogue) {
	var at gemmParams
	p, params, a, b := at.product(k, t, map[int]int{64: 3, 128: 2}[t.M], e)
	p.Pipelined(
		tiling.MatrixOperand(tiling.SwizzledTile(k, "a", t.M, t.K), a, params.U32(&at.LDA), p.Has(tiling.KMajorA), p.Has(tiling.VectorA), p.Top, p.M, p.First),
		tiling.MatrixOperand(tiling.SwizzledTile(k, "b", t.N, t.K), b, params.U32(&at.LDB), p.Has(tiling.KMajorB), p.Has(tiling.VectorB), p.Left, p.N, p.First))
}
