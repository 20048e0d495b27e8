package tiling

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// PartThreads of a block.
const PartThreads = 256

// sumParams are those of matmul_sum.
type sumParams struct {
	Total                  int           `array:"sizes"` // elements up to the last that may be cut up
	Flags, Act             int           // as gemm's, of bias and result
	ShiftM, ShiftN         int           // log2 of a tile's rows and columns
	ShiftGroup             int           // and of the rows of tiles in a group
	Across, Down, PerBatch int           // tiles in a row of them, in a column, and of a product
	Split, Length          int           // tiles that are cut up; the length of each
	M, N, Share            scalar.Divide // Share is that of a block
	Parts, Bias            kit.Buffer
	C                      kit.Buffer `of:"result"`
}

// matmulSum adds up the parts of tiles; see cut.
var matmulSum = kit.Register(kit.Kernel{Family: "matmul", Name: "matmul_sum", Block: [3]int{PartThreads, 1, 1},
	Doc: "c[i] = act(Σ parts[j][i] + bias) in order of the parts, for those elements whose tile is in parts; c is of the type that " +
		"the flags say.",
	Params: sumParams{},
	BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) {
		var at sumParams
		p := kit.NewParams(k, &at)
		parts, bias, c := kit.Ptr[float32](p, &at.Parts), kit.Ptr[float32](p, &at.Bias), kit.Ptr[uint8](p, &at.C)
		after := EpilogueOf(k, e)
		total, flags := p.U32(&at.Total), p.U32(&at.Flags)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(i.Ge(total))
		m, n := p.Divisor(&at.M), p.Divisor(&at.N)
		tile := at.tileOf(p, m, n, i)
		k.ReturnIf(tile.Ge(p.U32(&at.Split)))
		begin := tile.Mul(p.U32(&at.Length))
		last := begin.Add(p.U32(&at.Length)).Sub(1)
		more := p.Quotient(&at.Share, last).Sub(p.Quotient(&at.Share, begin)) // parts but the first
		k.ReturnIf(more.Eq(0))
		from := ptx.PtrVarOf(parts.At(i))
		sum := ptx.VarOf(k, from.Get().Load())
		ptx.For(k, 0, more, 1, func(ptx.Reg[uint32]) {
			from.Set(from.Get().At(total))
			sum.Set(sum.Get().Add(from.Get().Load()))
		}, ptx.Unroll(8))
		y := FinishElement(k, i, m, n, flags, p.U32(&at.Act), bias, sum.Get(), after)
		toF16, toBF16 := scalar.HasFlag(k, flags, ResultF16), scalar.HasFlag(k, flags, ResultBF16)
		k.If(toF16.Or(toBF16), func() {
			f := ptx.Bitcast[uint16](scalar.FromFloat32[ptx.F16](k, y))
			b := ptx.Bitcast[uint16](scalar.FromFloat32[ptx.BF16](k, y))
			ptx.Cast[uint16](c).At(i).Store(ptx.Select(toF16, f, b))
		}, func() { ptx.Cast[float32](c).At(i).Store(y) })
	}})

// tileOf is the number of the tile that element i of products of m × n belongs to, by the parameters.
func (at *sumParams) tileOf(p *kit.Params, m, n scalar.Divisor, i ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := p.Kernel
	row, col := n.Split(k, i)
	z, row := m.Split(k, row)
	row, col = row.Shr(p.U32(&at.ShiftM)), col.Shr(p.U32(&at.ShiftN))
	shift := p.U32(&at.ShiftGroup)
	top := row.Shr(shift).Shl(shift) // first row of the group
	rows := p.U32(&at.Down).Sub(top).Min(ptx.U32(1).Shl(shift))
	in := col.Mad(rows, row.Sub(top))
	return z.Mad(p.U32(&at.PerBatch), top.Mad(p.U32(&at.Across), in))
}

// Result is what becomes of products of rows × cols: y = after(act(x + bias)). Of flags, those of bias and type matter.
type Result struct {
	Products, Rows, Cols int
	Flags, Act           uint32
	After                *kit.Epilogue
	Bias, Y              kit.Buffer
}

// SplitK has emit write the result by so many parts of the depth: as it is to be, or with several parts bare and one after the other,
// which are then added up.
func (r Result) SplitK(s *kit.Step, parts int, emit func(r Result)) {
	if parts == 1 {
		emit(r)
		return
	}
	bare := Result{Products: r.Products, Rows: r.Rows, Cols: r.Cols, Bias: r.Bias, Y: s.NewScratch(4 * parts * r.Products * r.Rows * r.Cols)}
	emit(bare)
	AddPartials(s, UniformSplit(parts, r.Products, r.Rows, r.Cols), r.Flags, r.Act, r.After, bare.Y, r.Bias, r.Y)
}

// AddPartials makes of parts what belongs to c of the tiles that are cut up. Of flags, those of bias and result matter.
func AddPartials(s *kit.Step, cut Schedule, flags, act uint32, t *kit.Epilogue, parts, bias, c kit.Buffer) {
	g := cut.Tiling
	params := sumParams{Total: cut.Elements, Flags: int(flags), Act: int(act),
		ShiftM: scalar.Log2(g.m), ShiftN: scalar.Log2(g.n), ShiftGroup: scalar.Log2(g.group),
		Across: g.Across, Down: g.Down, PerBatch: g.Tiles(), Split: cut.Tiles, Length: cut.Length,
		M: scalar.Divide(g.rows), N: scalar.Divide(g.cols), Share: scalar.Divide(cut.Share), Parts: parts, Bias: bias, C: c}
	s.LaunchEpilogue(t, false, matmulSum, [3]int{kit.CeilDiv(cut.Elements, PartThreads), 1, 1}, params)
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
