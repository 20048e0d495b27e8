package lower

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx"
)

// gemms are the kernels that matmul picks from, the largest tile first.
var gemms = []tiled{gemm(tile{128, 128, 8}), gemm(tile{64, 64, 16})}

func gemm(t tile) tiled {
	return tiled{t, register(Kernel{Family: "matmul", Name: fmt.Sprintf("gemm_%dx%dx%d", t.m, t.n, t.k),
		Block: [3]int{gemmThreads, 1, 1},
		Doc: "c[split][product] = act(a·b + bias) over a split of the depth. Bias and activation are for a single split. " +
			"Block = (split · products + product) · tiles + tile. Parameters: " + gemmParams + ".",
		tailed: func(k *ptx.Kernel, e *tail) { newProduct(k, t, e).build() },
	})}
}

// newProduct reads the parameters of gemm.
func newProduct(k *ptx.Kernel, t tile, e *tail) *product {
	sizes := ptx.ParamArray[uint32](k, "sizes", gemmWords)
	strideA, strideB := ptx.Param[uint64](k, "stride_a"), ptx.Param[uint64](k, "stride_b")
	a, b := ptx.PointerParam[float32](k, "a"), ptx.PointerParam[float32](k, "b")
	bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
	after := epilogueOf(k, e)
	k.MinBlocks(map[int]int{64: 3, 128: 2}[t.m]) // what ptxas needs to know lest it saves registers and spills
	p := productOf(k, t, sizes)
	p.bias, p.after = bias, after
	p.places = p.placesIn(c)
	wideZ := ptx.Convert[uint64](k, p.z)
	a, b = ptx.At(k, a, ptx.Mul(k, wideZ, strideA)), ptx.At(k, b, ptx.Mul(k, wideZ, strideB))
	p.a = newSide(k, "a", t.m, t.k, a, sizes.At(k, gemmLDA), p.has(alongA), p.has(vectorA), p.top, p.m, p.first)
	p.b = newSide(k, "b", t.n, t.k, b, sizes.At(k, gemmLDB), p.has(alongB), p.has(vectorB), p.left, p.n, p.first)
	return p
}
