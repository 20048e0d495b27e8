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
	own, other := 0, uint32(0)
	if d.Own {
		own = d.Count
	}
	if s.Result.DType == compute.Float32 {
		other = math.Float32bits(float32(math.NaN()))
	}
	total := s.Result.Len() / unit
	s.Launch(kernel, moveGrid(total), total, d.Rows, own, other, append(scalar.DivisorOf(d.Inner/unit), scalar.DivisorOf(d.Count)...),
		kit.In(0), kit.In(1), kit.Out)
	return nil
}

var gather, gather4 = gatherKernel("gather", 1), gatherKernel("gather_4", 4)

func gatherKernel(name string, unit int) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "move", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[o, j] = x[o, index], rows of units of words, with the index at o·own + j; other where it is no row. Parameters: " +
			"u32 total (units of y), u32 rows (of x, for each o), u32 own, u32 other, u32 sizes[] (as divisors, units of a row, " +
			"then the rows of y for each o), u32* x, u32* indices, u32* y.",
		Build: func(k *ptx.Kernel) {
			total, rows := ptx.Param[uint32](k, "total"), ptx.Param[uint32](k, "rows")
			own, other := ptx.Param[uint32](k, "own"), ptx.Param[uint32](k, "other")
			sizes := ptx.ParamArray[uint32](k, "sizes", 2*scalar.DivisorWords)
			width, count := scalar.DivisorAt(k, sizes, 0), scalar.DivisorAt(k, sizes, scalar.DivisorWords)
			x := ptx.PointerParam[uint32](k, "x", ptx.Align(4*unit))
			indices := ptx.PointerParam[uint32](k, "indices")
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
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
		}})
}
