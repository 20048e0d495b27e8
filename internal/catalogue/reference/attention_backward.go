package reference

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func attentionBackwardTable() table {
	return table{
		catalogue.AttentionBackward: {values: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
			return attentionBackward(in, a, false)
		},
			magnitudes: func(in []Array, a program.Attr, _ []program.Type) [][]float64 {
				return attentionBackward(in, a, true)
			}},
	}
}

// attentionBackward computes the gradients, or the yardstick of their errors: that of a weight grows with its score, that of the
// difference with both of its sides.
func attentionBackward(in []Array, a program.Attr, magnitude bool) [][]float64 {
	q, k, v, y, lse, dy := in[0].Data, in[1].Data, in[2].Data, in[3].Data, in[4].Data, in[5].Data
	dq, dk, dv := make([]float64, len(q)), make([]float64, len(k)), make([]float64, len(v))
	size := func(x float64) float64 { return x }
	if magnitude {
		size = math.Abs
	}
	eachQuery(catalogue.AttentionOperands(in), a, func(r queryRow) {
		if math.IsInf(lse[r.row], -1) {
			return
		}
		at := r.q
		mean := 0.0
		for c := range r.D {
			mean += size(dy[at+c] * y[at+c])
		}
		for j, key := range r.keys {
			p, dp := math.Exp(r.s[j]-lse[r.row]), 0.0
			for c := range r.D {
				dp += size(dy[at+c] * v[key+c])
			}
			ds := p * r.slope[j] * (dp - mean) * float64(r.Scale)
			if magnitude {
				p *= 1 + r.size[j] + math.Abs(lse[r.row])
				ds = p * (dp + mean) * float64(r.Scale)
			}
			for c := range r.D {
				dq[at+c] += ds * size(k[key+c])
				dk[key+c] += ds * size(q[at+c])
				dv[key+c] += p * size(dy[at+c])
			}
		}
	})
	return [][]float64{dq, dk, dv}
}
