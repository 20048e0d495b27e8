package lower

import "github.com/wavelane/wavelane/ptx"

// partThreads of a block.
const partThreads = 256

// Arguments in the array sizes of matmul_sum.
const (
	sumTotal  = iota // elements up to the last that may be cut up
	sumFlags         // as gemm's, of bias and result
	sumAct           //
	sumShiftM        // log2 of a tile's rows, columns, and of the rows of tiles in a group
	sumShiftN
	sumShiftGroup
	sumAcross  // tiles in a row of them
	sumDown    // and in a column
	sumTiles   // of a product
	sumLine    // tiles that are cut up
	sumLength  // of a tile
	sumM       // a divisor, as those that follow
	sumN       = sumM + divisorWords
	sumShare   = sumN + divisorWords // of a block
	sumInTotal = sumShare + divisorWords
)

// matmulSum adds up the parts of tiles; see cut.
var matmulSum = register(Kernel{Family: "matmul", Name: "matmul_sum", Block: [3]int{partThreads, 1, 1},
	Doc: "c[i] = act(Σ parts[j][i] + bias) in order of the parts, for those elements whose tile is in parts; c is of the type that " +
		"the flags say. Parameters: u32 sizes[] (elements, flags, activation, log2 of a tile's rows and columns and of the rows of " +
		"tiles in a group, tiles across, down, and of a product, tiles that are cut up, length of a tile; as divisors m, n, share of a " +
		"block), f32* parts, f32* bias, c.",
	tailed: func(k *ptx.Kernel, e *tail) {
		sizes := ptx.ParamArray[uint32](k, "sizes", sumInTotal)
		parts, bias := ptx.PointerParam[float32](k, "parts"), ptx.PointerParam[float32](k, "bias")
		c := ptx.PointerParam[uint8](k, "c")
		after := epilogueOf(k, e)
		total, flags := sizes.At(k, sumTotal), sizes.At(k, sumFlags)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(ptx.Ge(k, i, total))
		m, n := divisorAt(k, sizes, sumM), divisorAt(k, sizes, sumN)
		tile := tileOf(k, sizes, m, n, i)
		k.ReturnIf(ptx.Ge(k, tile, sizes.At(k, sumLine)))
		begin := ptx.Mul(k, tile, sizes.At(k, sumLength))
		last := ptx.Sub(k, ptx.Add(k, begin, sizes.At(k, sumLength)), u32(1))
		more := ptx.Sub(k, quotientAt(k, sizes, sumShare, last), quotientAt(k, sizes, sumShare, begin)) // parts but the first
		k.ReturnIf(ptx.Eq(k, more, u32(0)))
		from := ptx.PtrVarOf(k, ptx.At(k, parts, i))
		sum := ptx.VarOf(k, ptx.Load(k, from.Get()))
		ptx.For(k, u32(0), more, u32(1), func(ptx.Reg[uint32]) {
			from.Set(ptx.At(k, from.Get(), total))
			sum.Set(ptx.Add(k, sum.Get(), ptx.Load(k, from.Get())))
		}, ptx.UnrollBy(8))
		y := finishElement(k, i, m, n, flags, sizes.At(k, sumAct), bias, sum.Get(), after)
		toF16, toBF16 := hasFlag(k, flags, resultF16), hasFlag(k, flags, resultBF16)
		k.If(ptx.Or(k, toF16, toBF16), func() {
			f := ptx.Bitcast[uint16](k, fromFloat32[ptx.F16](k, y))
			b := ptx.Bitcast[uint16](k, fromFloat32[ptx.BF16](k, y))
			ptx.Store(k, ptx.At(k, ptx.Cast[uint16](c), i), ptx.Select(k, toF16, f, b))
		}, func() { ptx.Store(k, ptx.At(k, ptx.Cast[float32](c), i), y) })
	}})

// tileOf is the number of the tile that element i of products of m × n belongs to, by the arguments of matmul_sum.
func tileOf(k *ptx.Kernel, sizes ptx.Array[uint32], m, n divisor, i ptx.Reg[uint32]) ptx.Reg[uint32] {
	row, col := n.split(k, i)
	z, row := m.split(k, row)
	row, col = ptx.Shr(k, row, sizes.At(k, sumShiftM)), ptx.Shr(k, col, sizes.At(k, sumShiftN))
	shift := sizes.At(k, sumShiftGroup)
	top := ptx.Shl(k, ptx.Shr(k, row, shift), shift) // first row of the group
	rows := ptx.Min(k, ptx.Sub(k, sizes.At(k, sumDown), top), ptx.Shl(k, u32(1), shift))
	in := ptx.Mad(k, col, rows, ptx.Sub(k, row, top))
	return ptx.Mad(k, z, sizes.At(k, sumTiles), ptx.Mad(k, top, sizes.At(k, sumAcross), in))
}

// addUp makes of parts what belongs to c of the tiles that are cut up. Of flags, those of bias and result matter.
func addUp(s *step, cut cut, flags, act uint32, t *tail, parts, bias, c Buffer) {
	g := cut.tiling
	sizes := words(cut.elements, int(flags), int(act), log2(g.m), log2(g.n), log2(g.group), g.across, g.down, g.tiles(), cut.tiles,
		cut.length)
	for _, n := range []int{g.rows, g.cols, cut.share} {
		sizes = append(sizes, divisorOf(n)...)
	}
	s.launchTail(t, false, matmulSum, [3]int{ceilDiv(cut.elements, partThreads), 1, 1}, sizes, parts, bias, c)
}

// finishElement is act(x + bias) for element i of products of m × n, and what becomes of that.
func finishElement(k *ptx.Kernel, i ptx.Reg[uint32], m, n divisor, flags, act ptx.Reg[uint32],
	bias ptx.Ptr[ptx.Global, float32], x ptx.Reg[float32], after *epilogue) ptx.Reg[float32] {
	row, col := n.split(k, i)
	z, row := m.split(k, row)
	ofColumns := hasFlag(k, flags, biasOfColumns)
	there := ptx.Or(k, ofColumns, hasFlag(k, flags, biasOfRows))
	b := ptx.LoadIf(k, there, ptx.At(k, bias, ptx.Select(k, ofColumns, col, row)), ptx.Imm(float32(0)))
	y := activate(k, act, []ptx.Reg[float32]{ptx.Add(k, x, b)})[0]
	if after != nil {
		y = after.one(y, site{z, row, col})
	}
	return y
}
