package reference

import (
	"maps"
	"sync"

	"github.com/wavelane/wavelane/internal/program"
)

// entry is what a table says of an entry. An elementwise entry has no values here: they are its F. Without magnitudes, they are the
// values of the operands' absolute values.
type entry struct{ values, magnitudes function }

type (
	function = func(in []Array, a program.Attr, out []program.Type) [][]float64
	single   = func(in []Array, a program.Attr, out program.Type) []float64
	table    map[*program.Entry]entry
)

// one is the function of an entry of one result.
func one(f single) function {
	return func(in []Array, a program.Attr, out []program.Type) [][]float64 {
		return [][]float64{f(in, a, out[0])}
	}
}

var (
	merge  sync.Once
	merged table
)

// functions returns the table of all entries. It is made here and not when the package is initialised, so that programs that import
// the package and do not get here do not link it.
func functions() table {
	merge.Do(func() {
		merged = table{}
		for _, t := range []table{
			attentionTable(), attentionBackwardTable(), cacheTable(), cacheAppendTable(), conv1dTable(), elementwiseTable(), expertTable(),
			fusedTable(), fusedMatmulTable(), gatherTable(), inspectTable(), lossTable(), lz4Table(), matrixTable(), moveTable(),
			normTable(), normBackwardTable(), quantisedTable(), randomTable(), reduceTable(), ropeTable(), rowsTable(), scanTable(),
			scatterTable(), topkTable(), trainingTable(), windowTable(),
		} {
			maps.Copy(merged, t)
		}
	})
	return merged
}
