package tiling

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// PartThreads of a block.
const PartThreads = 256

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
	sumN       = sumM + scalar.DivisorWords
	sumShare   = sumN + scalar.DivisorWords // of a block
	sumInTotal = sumShare + scalar.DivisorWords
)

// matmulSum adds up the parts of tiles; see cut.
var matmulSum = kit.Register(kit.Kernel{Family: "matmul", Name: "matmul_sum", Block: [3]int{PartThreads, 1, 1},
	Doc: "c[i] = act(Σ parts[j][i] + bias) in order of the parts, for those elements whose tile is in parts; c is of the type that " +
		"the flags say. Parameters: u32 sizes[] (elements, flags, activation, log2 of a tile's rows and columns and of the rows of " +
		"tiles in a group, tiles across, down, and of a product, tiles that are cut up, length of a tile; as divisors m, n, share of a " +
		"block), f32* parts, f32* bias, c.",
	BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
		sizes := ptx.ParamArray[uint32](k, "sizes", sumInTotal)
		parts, bias := ptx.PointerParam[float32](k, "parts"), ptx.PointerParam[float32](k, "bias")
		c := ptx.PointerParam[uint8](k, "c")
		after := EpilogueOf(k, e)
		total, flags := sizes.At(sumTotal), sizes.At(sumFlags)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(i.Ge(total))
		m, n := scalar.DivisorAt(k, sizes, sumM), scalar.DivisorAt(k, sizes, sumN)
		tile := tileOf(k, sizes, m, n, i)
		k.ReturnIf(tile.Ge(sizes.At(sumLine)))
		begin := tile.Mul(sizes.At(sumLength))
		last := begin.Add(sizes.At(sumLength)).Sub(1)
		more := scalar.QuotientAt(k, sizes, sumShare, last).Sub(scalar.QuotientAt(k, sizes, sumShare, begin)) // parts but the first
		k.ReturnIf(more.Eq(0))
		from := ptx.PtrVarOf(parts.At(i))
		sum := ptx.VarOf(k, from.Get().Load())
		ptx.For(k, 0, more, 1, func(ptx.Reg[uint32]) {
			from.Set(from.Get().At(total))
			sum.Set(sum.Get().Add(from.Get().Load()))
		}, ptx.Unroll(8))
		y := FinishElement(k, i, m, n, flags, sizes.At(sumAct), bias, sum.Get(), after)
		toF16, toBF16 := scalar.HasFlag(k, flags, ResultF16), scalar.HasFlag(k, flags, ResultBF16)
		k.If(toF16.Or(toBF16), func() {
			f := ptx.Bitcast[uint16](scalar.FromFloat32[ptx.F16](k, y))
			b := ptx.Bitcast[uint16](scalar.FromFloat32[ptx.BF16](k, y))
			ptx.Cast[uint16](c).At(i).Store(ptx.Select(toF16, f, b))
		}, func() { ptx.Cast[float32](c).At(i).Store(y) })
	}})

// tileOf is the number of the tile that element i of products of m × n belongs to, by the arguments of matmul_sum.
func tileOf(k *ptx.Kernel, sizes ptx.Array[uint32], m, n scalar.Divisor, i ptx.Reg[uint32]) ptx.Reg[uint32] {
	row, col := n.Split(k, i)
	z, row := m.Split(k, row)
	row, col = row.Shr(sizes.At(sumShiftM)), col.Shr(sizes.At(sumShiftN))
	shift := sizes.At(sumShiftGroup)
	top := row.Shr(shift).Shl(shift) // first row of the group
	rows := sizes.At(sumDown).Sub(top).Min(ptx.U32(1).Shl(shift))
	in := col.Mad(rows, row.Sub(top))
	return z.Mad(sizes.At(sumTiles), top.Mad(sizes.At(sumAcross), in))
}

// AddPartials makes of parts what belongs to c of the tiles that are cut up. Of flags, those of bias and result matter.
func AddPartials(s *kit.Step, cut Schedule, flags, act uint32, t *kit.Epilogue, parts, bias, c kit.Buffer) {
	g := cut.Tiling
	sizes := kit.Words(cut.Elements, int(flags), int(act), scalar.Log2(g.m), scalar.Log2(g.n), scalar.Log2(g.group), g.Across, g.Down, g.Tiles(), cut.Tiles,
		cut.Length)
	for _, n := range []int{g.rows, g.cols, cut.Share} {
		sizes = append(sizes, scalar.DivisorOf(n)...)
	}
	s.LaunchEpilogue(t, false, matmulSum, [3]int{kit.CeilDiv(cut.Elements, PartThreads), 1, 1}, sizes, parts, bias, c)
}

// FinishElement is act(x + bias) for element i of products of m × n, and what becomes of that.
func FinishElement(k *ptx.Kernel, i ptx.Reg[uint32], m, n scalar.Divisor, flags, act ptx.Reg[uint32],
	bias ptx.Ptr[ptx.Global, float32], x ptx.Reg[float32], after *Epilogue) ptx.Reg[float32] {
	row, col := n.Split(k, i)
	z, row := m.Split(k, row)
	ofColumns := scalar.HasFlag(k, flags, BiasOfColumns)
	there := ofColumns.Or(scalar.HasFlag(k, flags, BiasOfRows))
	b := ptx.LoadIf(there, bias.At(ptx.Select(ofColumns, col, row)), 0)
	y := scalar.Activate(k, act, []ptx.Reg[float32]{x.Add(b)})[0]
	if after != nil {
		y = after.ApplyOne(y, Site{Z: z, Row: row, Col: col})
	}
	return y
}
