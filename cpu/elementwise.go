package cpu

import (
	"slices"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// elementwise lowers an entry of one to three operands with broadcasting.
func elementwise(e *program.Entry, s *engine.SpanOp, c *call) work {
	var p engine.Numbers
	copy(p[:], c.attr.Scalars)
	// As many elements as the result has, which no operand exceeds, are in the result's order.
	if !slices.ContainsFunc(c.in, func(t program.Type) bool { return t.Len() != c.out.Len() }) {
		return one(c.out.Len(), s.Cost.Ns(), func(a *args, lo, hi int) {
			var x [3][]float32
			for k, v := range a.in {
				x[k] = v.f32()[lo:hi]
			}
			s.F(a.out.f32()[lo:hi], x[0], x[1], x[2], p)
		})
	}
	x := program.Expression{Inputs: len(c.in), Results: []int{len(c.in)}, Nodes: []program.Node{{Entry: e, Args: []int{0, 1, 2}[:len(c.in)]}}}
	return fused(newExpression(&x, c.attr.Scalars, c.in, c.out.Shape, false), c)
}
