package lower

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

// What puts rows by index uses integer atomics only, whose outcome does not depend on their order. Words about updates count them
// from 1; 0 means none.

func init() {
	lowerings[catalogue.Scatter] = (*step).scatter
	lowerings[catalogue.ScatterAdd] = (*step).scatterAdd
	lowerings[catalogue.EmbeddingBackward] = func(s *step) error {
		s.fillWords(result, 0, s.out.Len())
		return s.scatterAdd()
	}
}

// scatter puts the last update of each row of the result there.
func (s *step) scatter() error {
	d := catalogue.GatherRows(s.in[0].Shape, s.in[1].Shape)
	if d.Count == 0 {
		return nil
	}
	last := s.scratch(4 * d.Rows)
	s.fillWords(last, 0, d.Rows)
	s.launch(scatterLast, moveGrid(d.Count), d.Count, d.Rows, operand(1), last)
	kernel, unit := scatterRows, 1
	if d.Inner%4 == 0 {
		kernel, unit = scatterRows4, 4
	}
	total := d.Count * d.Inner / unit
	s.launch(kernel, moveGrid(total), total, d.Rows, divisorOf(d.Inner/unit), operand(1), last, operand(2), result)
	return nil
}

var scatterLast = register(Kernel{Family: "scatter", Name: "scatter_last", Block: [3]int{moveThreads, 1, 1},
	Doc: "last[row] = the last update whose index is the row. Parameters: u32 count (of updates), u32 rows, u32* indices, " +
		"u32* last (0 before).",
	build: func(k *ptx.Kernel) {
		count, rows := ptx.Param[uint32](k, "count"), ptx.Param[uint32](k, "rows")
		indices, last := ptx.PointerParam[uint32](k, "indices"), ptx.PointerParam[uint32](k, "last")
		index, inside := unitsOf(k, count)
		var row [moveUnits]ptx.Reg[uint32]
		for j, i := range index {
			row[j] = ptx.LoadIf(k, inside[j], ptx.At(k, indices, i), rows)
		}
		for j, i := range index {
			k.If(ptx.Lt(k, row[j], rows), func() {
				ptx.Reduce(k, ptx.OpMax, ptx.At(k, last, row[j]), ptx.Add(k, i, u32(1)))
			})
		}
	}})

var scatterRows, scatterRows4 = scatterRowsKernel("scatter_rows", 1), scatterRowsKernel("scatter_rows_4", 4)

func scatterRowsKernel(name string, unit int) *Kernel {
	return register(Kernel{Family: "scatter", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[indices[j]] = x[j], rows of units of words, where last says that j is the last one. Parameters: u32 total (units " +
			"of x), u32 rows (of y), u32 width[] (units of a row, as a divisor), u32* indices, u32* last, u32* x, u32* y.",
		build: func(k *ptx.Kernel) {
			total, rows := ptx.Param[uint32](k, "total"), ptx.Param[uint32](k, "rows")
			width := divisorAt(k, ptx.ParamArray[uint32](k, "width", divisorWords), 0)
			indices, last := ptx.PointerParam[uint32](k, "indices"), ptx.PointerParam[uint32](k, "last")
			x := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit))
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			var row, at [moveUnits]ptx.Reg[uint32]
			var mine [moveUnits]ptx.Reg[bool]
			for j, i := range index {
				update, col := width.split(k, i)
				row[j] = ptx.LoadIf(k, inside[j], ptx.At(k, indices, update), rows)
				winner := ptx.LoadIf(k, ptx.Lt(k, row[j], rows), ptx.At(k, last, row[j]), u32(0))
				mine[j] = ptx.Eq(k, winner, ptx.Add(k, update, u32(1)))
				at[j] = ptx.Mad(k, row[j], width.d, col)
			}
			var words [moveUnits][]ptx.Reg[uint32]
			for j, i := range index {
				words[j] = loadUnit(k, unit, mine[j], unitAt(k, x, unit, i), u32(0))
			}
			for j := range index {
				storeUnit(k, mine[j], unitAt(k, y, unit, at[j]), words[j])
			}
		}})
}
