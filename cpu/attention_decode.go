package cpu

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

func pagedAttention(c *call) work {
	d, p, _ := catalogue.PagedShape(c.in[0].Shape, c.in[1].Shape, c.in[2].Shape, c.in[3].Shape, c.in[4].Shape,
		c.attr.Options.(compute.AttentionOptions)) // checked
	return (&attending{AttentionDims: d, Paging: p, table: 3, lengths: 4}).work(c)
}

// attentionParts is the number of parts into which the keys of each block of queries are cut, so that workers share the few
// blocks of long caches.
func attentionParts(blocks, keys int) int {
	const enough, long = 64, 4 * attentionKeys // blocks; keys that are worth a part
	return max(1, min(enough/max(blocks, 1), keys/long))
}

// leftParts are the results of parts in scratch memory: for each row its shiftedSum, and its accumulator.
func (x *attending) leftParts(a *args, parts int) ([]engine.ShiftedSum, []float32) {
	rows := parts * min(attentionRows, x.rows)
	sums := cells[engine.ShiftedSum](a.scratch, rows)
	return sums, words32(a)[4*rows:][:rows*x.D]
}

// leave stores what a part has of its rows.
func (t *attentionTile) leave(x *attending, a *args, unit int) {
	sums, acc := x.leftParts(a, x.Batch*x.KVHeads*x.blocks*x.parts)
	first := unit * min(attentionRows, x.rows)
	for r := range t.n {
		sums[first+r] = engine.ShiftedSum{Max: t.max[r], Sum: t.sum[r]}
	}
	copy(acc[first*x.D:], t.o[:t.n*x.D])
}

// joinParts adds the phase that combines the parts of the blocks' rows.
func (x *attending) joinParts(c *call, w *work, blocks int) {
	rows := blocks * x.parts * min(attentionRows, x.rows)
	w.scratch = rows * (16 + 4*x.D)
	w.phases = append(w.phases, phase{units: blocks, ns: float64(rows/blocks*x.D) * 0.5, do: func(a *args, lo, hi int) {
		t := attentionTiles.Take()
		defer attentionTiles.Give(t)
		sums, acc := x.leftParts(a, blocks*x.parts)
		for u := lo; u < hi; u++ {
			t.start(x, c, a, u)
			stride := min(attentionRows, x.rows)
			for r := range t.n {
				first := u*x.parts*stride + r
				all := sums[first]
				for p := 1; p < x.parts; p++ {
					all = all.Plus(sums[first+p*stride])
				}
				o := t.o[r*x.D:][:x.D]
				for p := range x.parts {
					at := first + p*stride
					if s := sums[at]; s.Sum != 0 {
						kernels.Axpy(o, o, acc[at*x.D:][:x.D], float32(s.Weight(all.Max)/all.Sum))
					}
				}
				narrow(a.out, c.out.DType, t.at[r], o)
			}
		}
	}})
}
