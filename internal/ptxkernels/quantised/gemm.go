package quantised

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// quantTile is the tile of products of many rows.
var quantTile = tiling.Shape{M: 64, N: 64, K: 16}

// quantGemmParams are those of quant_gemm: gemm's, whose b is the weights, then what tells of these.
type quantGemmParams struct {
	tiling.GemmSizes
	packedRow
	X       kit.Buffer
	W       []kit.Buffer `of:"u32"` // weights of the first and of the second product
	Bias, C kit.Buffer
}

var quantGemmKernels = ofFormats(func(f *blockFormat) tiling.Tiled {
	return tiling.Tiled{Shape: quantTile, Kernel: kit.Register(kit.Kernel{Family: "quant_" + f.name(), Name: "quant_gemm_" + f.name(),
		Block:  [3]int{tiling.GemmThreads, 1, 1},
		Doc:    "c[split] = x·w + bias over a split of the depth, of weights that lie along the depth, as rows of k, or across.",
		Params: quantGemmParams{W: make([]kit.Buffer, 2)},
		Build:  func(k *ptx.Kernel) { buildQuantGemm(k, f) }})}
})

func buildQuantGemm(k *ptx.Kernel, f *blockFormat) {
	at := quantGemmParams{W: make([]kit.Buffer, 2)}
	params := kit.NewParams(k, &at)
	x := kit.Ptr[float32](params, &at.X)
	weights, other := kit.Ptr[uint8](params, &at.W[0], ptx.Align(16)), kit.Ptr[uint8](params, &at.W[1], ptx.Align(16))
	bias, c := kit.Ptr[float32](params, &at.Bias), kit.Ptr[float32](params, &at.C)
	k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
	p := tiling.ProductOf(params, quantTile, &at.GemmSizes)
	p.Bias = bias
	p.Places = p.PlacesIn(c)
	a := tiling.MatrixOperand(tiling.NewOperandTile(k, "a", p.Shape.M, p.Shape.K), x, params.U32(&at.LDA), p.Has(tiling.KMajorA), p.Has(tiling.VectorA),
		p.Top, p.M, p.First)
	of := ptx.Select(p.Z.Eq(0), ptx.Address(weights), ptx.Address(other))
	p.Pipelined(a, packedOperand(params, f, &at.packedRow, p, ptx.PtrAt[ptx.Global, uint8](k, of)))
}

// packedOperand is packed weights as an operand. Threads bring four neighbours in a row of weights.
func packedOperand(params *kit.Params, f *blockFormat, packed *packedRow, p *tiling.Product, weights ptx.Ptr[ptx.Global, uint8]) *tiling.Operand {
	k, kMajor := params.Kernel, p.Has(tiling.KMajorB)
	size, depth := p.Shape.N, p.Shape.K
	s := tiling.EitherOperand(tiling.NewOperandTile(k, "b", size, depth), kMajor)
	words, blocks := params.U32(&packed.Words), f.blocksOf(params, &packed.Blocks)
	id := k.Tid(ptx.X)
	either := func(a, b ptx.Reg[uint32]) ptx.Reg[uint32] { return ptx.Select(kMajor, a, b) }
	// Either four of the depth in one column of the result, or four columns at one depth.
	column := either(id.Shr(2), id.And(size/4-1).Shl(2))
	d := either(id.And(depth/4-1).Shl(2), id.Shr(scalar.Log2(size/4)))
	to := s.Place(column, d)
	column = p.Left.Add(column)
	from := ptx.Bitcast[int32](ptx.Select(column.Lt(p.N), d, math.MaxInt32)) // there are values while more of the depth than this is left
	d = p.First.Add(d)
	row, col := ptx.VarOf(k, either(column, d)), ptx.VarOf(k, either(d, column))
	down, right := either(ptx.U32(0), ptx.U32(depth)), either(ptx.U32(depth), ptx.U32(0)) // from tile to tile
	held := tiling.Held(k)
	s.Add(to, held, func(left ptx.Reg[int32]) {
		held.Set(scalar.Constants(make([]float32, 4)))
		k.If(left.Gt(from), func() {
			at := weights.Bytes(row.Get().MulWide(words).Shl(2))
			held.Set(f.Four(k, blocks, at, col.Get()))
		})
		row.Set(row.Get().Add(down))
		col.Set(col.Get().Add(right))
	})
	return s
}

// quantProduct is x, m × depth, times weights with n columns of the result, whose rows are along the depth or across.
type quantProduct struct {
	*kit.Step
	quantWeight
	m, n, depth int
	x           kit.Buffer
	biased      bool
	kMajor      bool
	other       *kit.Buffer // weights of a second product, whose result follows the first one's; nil if there is none
}

func (p *quantProduct) products() int {
	if p.other != nil {
		return 2
	}
	return 1
}

// splitsOf is into how many parts the depth is cut for so many blocks, each a multiple of 256, and how deep they are.
func (p *quantProduct) splitsOf(blocks int) (parts, depth int) {
	n := tiling.Splits(p.Step.Caps.Multiprocessors, blocks, p.depth, p.products()*p.m*p.n)
	depth = kit.CeilDiv(kit.CeilDiv(p.depth, n), 256) * 256
	return kit.CeilDiv(p.depth, depth), depth
}

// Split has emit write so many parts of the result, and adds them up if they are several.
func (p *quantProduct) Split(parts int, emit func(r tiling.Result)) {
	r := tiling.Result{Products: p.products(), Rows: p.m, Cols: p.n, Flags: kit.FlagIf(tiling.BiasOfColumns, p.biased), Bias: p.bias, Y: p.y}
	r.SplitK(p.Step, parts, emit)
}

// exact multiplies float32.
func (p *quantProduct) exact() {
	t := quantGemmKernels[p.blockFormat]
	products, other := p.products(), p.w
	if p.other != nil {
		other = *p.other
	}
	parts, depth := p.splitsOf(t.Blocks(p.m, p.n, products))
	p.Split(parts, func(r tiling.Result) {
		sizes, grid := t.Sizes(p.m, p.n, p.depth, depth, products)
		sizes.LDA = p.depth
		sizes.Flags = int(r.Flags | tiling.KMajorA | kit.FlagIf(tiling.KMajorB, p.kMajor) | kit.FlagIf(tiling.VectorA, p.depth%4 == 0) |
			kit.FlagIf(tiling.VectorC, p.n%4 == 0))
		cols := p.n
		if p.kMajor {
			cols = p.depth
		}
		p.Launch(t.Kernel, grid, quantGemmParams{sizes, packedRowOf(p.blockFormat, p.Type, cols), p.x, []kit.Buffer{p.w, other}, r.Bias, r.Y})
	})
}
