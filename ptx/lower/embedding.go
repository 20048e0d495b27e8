package lower

import (
	"math"

	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/ptx"
)

func init() {
	lowerings[op.Embedding] = func(s *step) error {
		vocabulary, width := s.in[0].Shape[0], s.in[0].Shape[1]
		kernel, unit := embedding, 1
		if width%4 == 0 {
			kernel, unit = embedding4, 4
		}
		total := s.out.Len() / unit
		s.launch(kernel, moveGrid(total), total, vocabulary, divisorOf(width/unit), operand(0), operand(1), result)
		return nil
	}
}

var embedding, embedding4 = embeddingKernel("embedding", 1), embeddingKernel("embedding_4", 4)

func embeddingKernel(name string, unit int) *Kernel {
	return register(Kernel{Family: "move", Name: name, Block: [3]int{moveThreads, 1, 1},
		Doc: "y[i] = table[ids[i]], rows of units of words; NaN where an id is outside the vocabulary. Parameters: u32 total " +
			"(units of y), u32 vocabulary, u32 width[] (units of a row, as a divisor), u32* table, u32* ids, u32* y.",
		build: func(k *ptx.Kernel) {
			total, vocabulary := ptx.Param[uint32](k, "total"), ptx.Param[uint32](k, "vocabulary")
			width := divisorAt(k, ptx.ParamArray[uint32](k, "width", divisorWords), 0)
			table := ptx.PointerParam[uint32](k, "table", ptx.Align(4*unit))
			ids := ptx.PointerParam[uint32](k, "ids")
			y := ptx.PointerParam[uint32](k, "y", ptx.Align(4*unit))
			index, inside := unitsOf(k, total)
			var id, at [moveUnits]ptx.Reg[uint32]
			for j, i := range index {
				row, col := width.split(k, i)
				at[j] = col
				id[j] = ptx.LoadIf(k, inside[j], ptx.At(k, ids, row), vocabulary)
			}
			var words [moveUnits][]ptx.Reg[uint32]
			for j := range words {
				known := ptx.Lt(k, id[j], vocabulary) // as unsigned numbers: negative ones are beyond it, too
				from := unitAt(k, table, unit, ptx.Mad(k, id[j], width.d, at[j]))
				words[j] = loadUnit(k, unit, known, from, math.Float32bits(float32(math.NaN())))
			}
			for j, i := range index {
				storeUnit(k, inside[j], unitAt(k, y, unit, i), words[j])
			}
		}})
}
