package catalogue

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// AttentionBackward is the gradient of attention. With scores s of a query, weights p = exp(s − lse) and dp = dy·vᵀ, the
// gradient of s is p·(dp − Σdy·y), which spares the sum Σp·dp.
var AttentionBackward = register(&program.Entry{Name: "attention_backward", Method: "AttentionBackward", Class: program.Layer, Dots: attentionFlops(10),
	Doc: "the gradients of attention for q, k and v, where dy is that of y, and y and lse are what attention_lse gave for the same " +
		"options, without the matrix of weights in memory (Dao, \"FlashAttention-2\", 2023); sums have one order, always the same",
	Special: "Q, y, dy and dq are [batch, n, heads, d], k, v, dk and dv are [batch, keys, kvheads, d], lse is [batch, heads, n], or " +
		"all without batch; all are Float32: cast operands of 16 bits before. Heads of queries that share one of keys add to " +
		"the same gradient. Lengths are those of attention, also of rings. Keys that are not in use or that no query sees have " +
		"gradients of zeros, as have queries that see no key or whose lse is −Inf; keys not in use are not read. What is NaN or " +
		"infinite may make NaN of any gradient of its sequence.",
	Inputs: []program.Input{{Name: "q"}, {Name: "k"}, {Name: "v"}, {Name: "y"}, {Name: "lse"}, {Name: "dy"},
		{Name: "lengths", Types: []compute.DType{compute.Int32}, Optional: true}},
	Results: []string{"dq", "dk", "dv"}, Options: compute.AttentionOptions{},
	Tol: program.Tolerance{Abs: 1e-30, Mag: 3e-6}, Domain: [2]float64{-2, 2},
	InferAll: func(in []program.Type, a program.Attr) ([]program.Type, error) {
		d, err := inferAttention(attentionOperands(in), a)
		if err != nil {
			return nil, err
		}
		if q := in[0].Shape; !program.EqualShape(in[3].Shape, q) || !program.EqualShape(in[5].Shape, q) {
			return nil, fmt.Errorf("y and dy must have q's shape %v: %w", q, compute.ErrShape)
		}
		if lse := d.lseType(in[0]); !program.EqualShape(in[4].Shape, lse.Shape) {
			return nil, fmt.Errorf("lse must have shape %v: %w", lse.Shape, compute.ErrShape)
		}
		return in[:3], nil
	},
	RefAll: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
		return attentionBackward(in, a, false)
	},
	MagnitudeAll: func(in []program.Array, a program.Attr, _ []program.Type) [][]float64 {
		return attentionBackward(in, a, true)
	}})

// attentionOperands are those of attention among those of its gradient.
func attentionOperands[T any](in []T) []T { return append(append([]T{}, in[:3]...), in[6:]...) }

// attentionBackward computes the gradients, or the yardstick of their errors: that of a weight grows with its score, that of the
// difference with both of its sides.
func attentionBackward(in []program.Array, a program.Attr, magnitude bool) [][]float64 {
	q, k, v, y, lse, dy := in[0].Data, in[1].Data, in[2].Data, in[3].Data, in[4].Data, in[5].Data
	dq, dk, dv := make([]float64, len(q)), make([]float64, len(k)), make([]float64, len(v))
	size := func(x float64) float64 { return x }
	if magnitude {
		size = math.Abs
	}
	eachQuery(attentionOperands(in), a, func(r queryRow) {
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
