package move

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// What puts rows by index uses integer atomics only, whose outcome does not depend on their order. Words about updates count them
// from 1; 0 means none.

// EmbeddingBackward lowers the gradient of a table whose rows were taken.
func EmbeddingBackward(s *kit.Step) error {
	s.Fill(kit.Out, 0, s.Result.Len())
	return ScatterAdd(s)
}

// Scatter puts the last update of each row of the result there.
func Scatter(s *kit.Step) error {
	d := catalogue.GatherRows(s.Operands[0].Shape, s.Operands[1].Shape)
	if d.Count == 0 {
		return nil
	}
	last := s.NewScratch(4 * d.Rows)
	s.Fill(last, 0, d.Rows)
	s.Launch(scatterLast, moveGrid(d.Count), lastParams{d.Count, d.Rows, kit.In(1), last})
	kernel, unit := scatterRows, 1
	if d.Inner%4 == 0 {
		kernel, unit = scatterRows4, 4
	}
	total := d.Count * d.Inner / unit
	s.Launch(kernel, moveGrid(total), scatterParams{total, d.Rows, scalar.Divide(d.Inner / unit), kit.In(1), last, kit.In(2), kit.Out})
	return nil
}

// lastParams are those of scatter_last.
type lastParams struct {
	Count, Rows   int        // of updates, of the result
	Indices, Last kit.Buffer `of:"u32"` // Last is 0 before
}

// scatterParams are those of scatter_rows.
type scatterParams struct {
	Total, Rows         int           // units of x; rows of y
	Width               scalar.Divide // units of a row
	Indices, Last, X, Y kit.Buffer    `of:"u32"`
}

var scatterLast = kit.Define(kit.Kernel{Family: "scatter", Name: "scatter_last", Block: [3]int{moveThreads, 1, 1},
	Doc: "last[row] = the last update whose index is the row."},
	func(k *ptx.Kernel, p *kit.Params, of *lastParams) {
		count, rows := p.U32(&of.Count), p.U32(&of.Rows)
		indices, last := kit.Ptr[uint32](p, &of.Indices), kit.Ptr[uint32](p, &of.Last)
		index, inside := unitsOf(k, count)
		var row [moveUnits]ptx.Reg[uint32]
		for j, i := range index {
			row[j] = ptx.LoadIf(inside[j], indices.At(i), rows)
		}
		for j, i := range index {
			k.If(row[j].Lt(rows), func() {
				last.At(row[j]).Reduce(ptx.OpMax, i.Add(1))
			})
		}
	})

var scatterRows, scatterRows4 = scatterRowsKernel("scatter_rows", 1), scatterRowsKernel("scatter_rows_4", 4)

func scatterRowsKernel(name string, unit int) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[indices[j]] = x[j], rows of units of words, where last says that j is the last one."},
		func(k *ptx.Kernel, p *kit.Params, of *scatterParams) {
			total, rows := p.U32(&of.Total), p.U32(&of.Rows)
			width := p.Divisor(&of.Width)
			indices, last := kit.Ptr[uint32](p, &of.Indices), kit.Ptr[uint32](p, &of.Last)
			x, y := kit.Ptr[uint32](p, &of.X, ptx.Align(4*unit)), kit.Ptr[uint32](p, &of.Y, ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			var row, at [moveUnits]ptx.Reg[uint32]
			var mine [moveUnits]ptx.Reg[bool]
			for j, i := range index {
				update, col := width.Split(k, i)
				row[j] = ptx.LoadIf(inside[j], indices.At(update), rows)
				winner := ptx.LoadIf(row[j].Lt(rows), last.At(row[j]), 0)
				mine[j] = winner.Eq(update.Add(1))
				at[j] = row[j].Mad(width.D, col)
			}
			var words [moveUnits][]ptx.Reg[uint32]
			for j, i := range index {
				words[j] = loadUnit(k, unit, mine[j], unitAt(k, x, unit, i), ptx.U32(0))
			}
			for j := range index {
				storeUnit(k, mine[j], unitAt(k, y, unit, at[j]), words[j])
			}
		})
}
