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
			"Block = (split · products + product) · tiles + tile. Parameters: " + tiling.GemmParams + ".",
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { newProduct(k, t, e).Build() },
	})}
}

// newProduct reads the parameters of gemm.
func newProduct(k *ptx.Kernel, t tiling.Shape, e *kit.Epilogue) *tiling.Product {
	sizes := ptx.ParamArray[uint32](k, "sizes", tiling.GemmWords)
	strideA, strideB := ptx.Param[uint64](k, "stride_a"), ptx.Param[uint64](k, "stride_b")
	a, b := ptx.PointerParam[float32](k, "a"), ptx.PointerParam[float32](k, "b")
	bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
	after := tiling.EpilogueOf(k, e)
	k.MinBlocks(map[int]int{64: 3, 128: 2}[t.M]) // what ptxas needs to know lest it saves registers and spills
	p := tiling.ProductOf(k, t, sizes)
	p.Bias, p.After = bias, after
	p.Places = p.PlacesIn(c)
	wideZ := ptx.Convert[uint64](p.Z)
	a, b = a.At(wideZ.Mul(strideA)), b.At(wideZ.Mul(strideB))
	p.A = tiling.NewOperand(k, "a", t.M, t.K, a, sizes.At(tiling.GemmLDA), p.Has(tiling.AlongA), p.Has(tiling.VectorA), p.Top, p.M, p.First)
	p.B = tiling.NewOperand(k, "b", t.N, t.K, b, sizes.At(tiling.GemmLDB), p.Has(tiling.AlongB), p.Has(tiling.VectorB), p.Left, p.N, p.First)
	return p
}
