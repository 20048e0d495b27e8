package move

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Embedding lowers taking rows of a table.
func Embedding(s *kit.Step) error {
	return takeRows(s, catalogue.GatherRows(s.Operands[0].Shape, s.Operands[1].Shape))
}

// Gather lowers taking elements along an axis by one list of indices.
func Gather(s *kit.Step) error {
	d, err := catalogue.GatherAxis(s.Operands[0].Shape, s.Operands[1].Shape, s.Attr.Options.(compute.GatherOptions))
	if err != nil {
		return err
	}
	return takeRows(s, d)
}

// TakeAlong lowers taking elements along an axis, by an index for each.
func TakeAlong(s *kit.Step) error {
	d, err := catalogue.TakeAlongDims(s.Operands[0].Shape, s.Operands[1].Shape)
	if err != nil {
		return err
	}
	return takeRows(s, d)
}

// takeRows makes the result of rows that indices name.
func takeRows(s *kit.Step, d catalogue.GatherDims) error {
	kernel, unit := gather, 1
	if d.Inner%4 == 0 {
		kernel, unit = gather4, 4
	}
	total := s.Result.Len() / unit
	p := gatherParams{Total: total, Rows: d.Rows, Width: scalar.Divide(d.Inner / unit), Count: scalar.Divide(d.Count), X: kit.In(0), Indices: kit.In(1),
		Y: kit.Out}
	if d.Own {
		p.Own = d.Count
	}
	if s.Result.DType == compute.Float32 {
		p.Other = math.Float32bits(float32(math.NaN()))
	}
	s.Launch(kernel, moveGrid(total), p)
	return nil
}

// gatherParams are those of gather.
type gatherParams struct {
	Total, Rows   int // units of y; rows of x, for each o
	Own           int
	Other         uint32        // stands where an index is no row
	Width, Count  scalar.Divide `array:"sizes"` // units of a row, rows of y for each o
	X, Indices, Y kit.Buffer    `of:"u32"`
}

var gather, gather4 = gatherKernel("gather", 1), gatherKernel("gather_4", 4)

func gatherKernel(name string, unit int) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "move", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[o, j] = x[o, index], rows of units of words, with the index at o·own + j; other where it is no row."},
		func(k *ptx.Kernel, p *kit.Params, of *gatherParams) {
			total, rows := p.U32(&of.Total), p.U32(&of.Rows)
			own, other := p.U32(&of.Own), kit.Read(p, &of.Other)
			width, count := p.Divisor(&of.Width), p.Divisor(&of.Count)
			x := kit.Ptr[uint32](p, &of.X, ptx.Align(4*unit))
			indices, y := kit.Ptr[uint32](p, &of.Indices), kit.Ptr[uint32](p, &of.Y, ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			var id, from [moveUnits]ptx.Reg[uint32]
			for j, i := range index {
				row, col := width.Split(k, i)
				o, at := count.Split(k, row)
				from[j] = o.Mul(rows).Mad(width.D, col)
				id[j] = ptx.LoadIf(inside[j], indices.At(o.Mad(own, at)), rows)
			}
			var words [moveUnits][]ptx.Reg[uint32]
			for j := range words {
				known := id[j].Lt(rows) // as unsigned numbers: negative ones are beyond it, too
				words[j] = loadUnit(k, unit, known, unitAt(k, x, unit, id[j].Mad(width.D, from[j])), other)
			}
			for j, i := range index {
				storeUnit(k, inside[j], unitAt(k, y, unit, i), words[j])
			}
		})
}
