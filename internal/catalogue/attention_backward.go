package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// AttentionBackward is the gradient of attention. With scores s of a query, weights p = exp(s − lse) and dp = dy·vᵀ, the
// gradient of s is p·(dp − Σdy·y), which avoids the sum Σp·dp.
var AttentionBackward = &program.Entry{Name: "attention_backward", Method: "AttentionBackward", Class: program.Layer, Dots: attentionFlops(10),
	Doc: "the gradients of attention for q, k and v",
	Special: "dy is the gradient of y; y and lse are the results of attention_lse with the same " +
		"options. The matrix of weights is never in memory (Dao, \"FlashAttention-2\", 2023). q, y, dy and dq are " +
		"[batch, n, heads, d]; k, v, dk and dv are [batch, keys, kvheads, d]; lse is [batch, heads, n]; all may " +
		"lack the batch. All are Float32: cast operands of 16 bits first. Heads of queries that share a head of " +
		"keys add to the same gradient. Sums always have the same order. lengths means what it means in attention, " +
		"rings included. Keys that are not in use or that no query sees get gradients of 0; so do queries that see " +
		"no key or whose lse is −Inf. Keys not in use are not read. NaN or Inf in a sequence may make any of its " +
		"gradients NaN.",
	Inputs: []program.Input{{Name: "q"}, {Name: "k"}, {Name: "v"}, {Name: "y"}, {Name: "lse"}, {Name: "dy"},
		{Name: "lengths", Types: []compute.DType{compute.Int32}, Optional: true}},
	Results: []string{"dq", "dk", "dv"}, Options: compute.AttentionOptions{},
	Tol: program.Tolerance{Abs: 1e-30, Mag: 3e-6}, Domain: [2]float64{-2, 2},
	InferAll: func(in []program.Type, a program.Attr) ([]program.Type, error) {
		d, err := inferAttention(AttentionOperands(in), a)
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
	}}

// AttentionOperands are those of attention among those of its gradient.
func AttentionOperands[T any](in []T) []T { return append(append([]T{}, in[:3]...), in[6:]...) }
