package tiling

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// PartThreads of a block.
const PartThreads = 256

// sumSizes are the run-time numbers of matmul_sum.
type sumSizes[W, D any] struct {
	Total                  W // elements up to the last that may be cut up
	Flags, Act             W // as gemm's, of bias and result
	ShiftM, ShiftN         W // log2 of a tile's rows and columns
	ShiftGroup             W // and of the rows of tiles in a group
	Across, Down, PerBatch W // tiles in a row of them, in a column, and of a product
	Split, Length          W // tiles that are cut up; the length of each
	M, N, Share            D // Share is that of a block
}

// matmulSum adds up the parts of tiles; see cut.
var matmulSum = kit.Register(kit.Kernel{Family: "matmul", Name: "matmul_sum", Block: [3]int{PartThreads, 1, 1},
	Doc: "c[i] = act(Σ parts[j][i] + bias) in order of the parts, for those elements whose tile is in parts; c is of the type that " +
		"the flags say. Parameters: u32 sizes[] (" + scalar.WordNames[sumSizes[int, scalar.Divide]]() + "), " +
		"f32* parts, f32* bias, c.",
	BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
		sizes := scalar.ParamWords[sumSizes[scalar.Word, scalar.DivisorWord]](k, "sizes")
		parts, bias := ptx.PointerParam[float32](k, "parts"), ptx.PointerParam[float32](k, "bias")
		c := ptx.PointerParam[uint8](k, "c")
		after := EpilogueOf(k, e)
		total, flags := sizes.Total.Load(), sizes.Flags.Load()
		i := k.GlobalID(ptx.X)
		k.ReturnIf(i.Ge(total))
		m, n := sizes.M.Load(k), sizes.N.Load(k)
		tile := tileOf(k, sizes, m, n, i)
		k.ReturnIf(tile.Ge(sizes.Split.Load()))
		begin := tile.Mul(sizes.Length.Load())
		last := begin.Add(sizes.Length.Load()).Sub(1)
		more := sizes.Share.Quotient(k, last).Sub(sizes.Share.Quotient(k, begin)) // parts but the first
		k.ReturnIf(more.Eq(0))
		from := ptx.PtrVarOf(parts.At(i))
		sum := ptx.VarOf(k, from.Get().Load())
		ptx.For(k, 0, more, 1, func(ptx.Reg[uint32]) {
			from.Set(from.Get().At(total))
			sum.Set(sum.Get().Add(from.Get().Load()))
		}, ptx.Unroll(8))
		y := FinishElement(k, i, m, n, flags, sizes.Act.Load(), bias, sum.Get(), after)
		toF16, toBF16 := scalar.HasFlag(k, flags, ResultF16), scalar.HasFlag(k, flags, ResultBF16)
		k.If(toF16.Or(toBF16), func() {
			f := ptx.Bitcast[uint16](scalar.FromFloat32[ptx.F16](k, y))
			b := ptx.Bitcast[uint16](scalar.FromFloat32[ptx.BF16](k, y))
			ptx.Cast[uint16](c).At(i).Store(ptx.Select(toF16, f, b))
		}, func() { ptx.Cast[float32](c).At(i).Store(y) })
	}})

// tileOf is the number of the tile that element i of products of m × n belongs to, by the arguments of matmul_sum.
func tileOf(k *ptx.Kernel, sizes sumSizes[scalar.Word, scalar.DivisorWord], m, n scalar.Divisor, i ptx.Reg[uint32]) ptx.Reg[uint32] {
	row, col := n.Split(k, i)
	z, row := m.Split(k, row)
	row, col = row.Shr(sizes.ShiftM.Load()), col.Shr(sizes.ShiftN.Load())
	shift := sizes.ShiftGroup.Load()
	top := row.Shr(shift).Shl(shift) // first row of the group
	rows := sizes.Down.Load().Sub(top).Min(ptx.U32(1).Shl(shift))
	in := col.Mad(rows, row.Sub(top))
	return z.Mad(sizes.PerBatch.Load(), top.Mad(sizes.Across.Load(), in))
}

// AddPartials makes of parts what belongs to c of the tiles that are cut up. Of flags, those of bias and result matter.
func AddPartials(s *kit.Step, cut Schedule, flags, act uint32, t *kit.Epilogue, parts, bias, c kit.Buffer) {
	g := cut.Tiling
	sizes := sumSizes[int, scalar.Divide]{Total: cut.Elements, Flags: int(flags), Act: int(act),
		ShiftM: scalar.Log2(g.m), ShiftN: scalar.Log2(g.n), ShiftGroup: scalar.Log2(g.group),
		Across: g.Across, Down: g.Down, PerBatch: g.Tiles(), Split: cut.Tiles, Length: cut.Length,
		M: scalar.Divide(g.rows), N: scalar.Divide(g.cols), Share: scalar.Divide(cut.Share)}
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
