package lower

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx"
)

// gemmThreads of a block, 16 × 16 over a tile of the result. A warp is 4 × 8 of them: what it reads of a row of either
// operand's tile is then at most 128 bytes, all banks once.
const gemmThreads = 256

// longestChain is how many products are added up one after the other before the sum goes to another one: the error of a sum
// grows with the length of its chain.
const longestChain = 2048

// tile is how products are cut up: a block computes m × n of the result, k of the depth at a time. A thread has m/16 × n/16 of
// that, in squares of 4 × 4 that are 64 apart.
type tile struct{ m, n, k int }

// tiled is a kernel of that kind.
type tiled struct {
	tile
	*Kernel
}

// gemms are the kernels that matmul picks from, the largest tile first.
var gemms = []tiled{gemm(tile{128, 128, 8}), gemm(tile{64, 64, 16})}

// Flags of gemm.
const (
	alongA  = 1 << iota // neighbours in memory are neighbours in depth, so that a is [m, k]; otherwise it is [k, m]
	alongB              // likewise: b is [n, k]
	vectorA             // rows begin at multiples of 16 bytes
	vectorB
	vectorC
	biasOfColumns // bias has n elements
	biasOfRows    // bias has m elements
	padded        // zeros of b may stand for what is not there
)

// Arguments in the array sizes of gemm.
const (
	gemmM = iota
	gemmN
	gemmK
	gemmDepth // of one split: a multiple of every tile's k
	gemmLDA   // elements from row to row of a, as it lies in memory
	gemmLDB
	gemmFlags
	gemmAct
	gemmAcross                             // tiles in a row of them: a divisor
	gemmTiles  = gemmAcross + divisorWords // of one product
	gemmBatch  = gemmTiles + divisorWords  // products
	gemmWords  = gemmBatch + divisorWords  //
	gemmParams = "u32 sizes[] (m, n, k, depth of a split, row lengths of a and b in memory, flags, activation; as divisors " +
		"tiles across, tiles of a product, products), u64 strides of a and b from product to product, f32* a, f32* b, f32* " +
		"bias, f32* c"
)

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

// placesIn is where the elements of the block's product lie in c.
func (p *product) placesIn(c ptx.Ptr[ptx.Global, float32]) func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
	k := p.k
	return func(row, col ptx.Reg[uint32]) func(i int) ptx.Ptr[ptx.Global, float32] {
		rows := ptx.Add(k, ptx.MulWideU32(k, p.place, p.m), ptx.Convert[uint64](k, row))
		return ptx.At(k, ptx.At(k, c, ptx.Mul(k, rows, ptx.Convert[uint64](k, p.n))), col).At
	}
}
