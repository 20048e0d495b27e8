package simd

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func init() {
	for _, e := range []*op.Entry{op.RMSNormMatVec, op.QKV, op.GateUpSwiGLU} {
		lowerings[e.Name] = func(c *call) work { return fusedMatmul(e, c) }
	}
}

// fusedMatmul composes: beside the weights, what goes through memory in between is little, and they are read once either way.
func fusedMatmul(e *op.Entry, c *call) work {
	m, k := op.RowsCols(c.in[0].Shape)
	s := &sequence{}
	// Weights of 16 bits become float32 first.
	weights := map[int]value{}
	for i, t := range c.in {
		if t.DType != compute.Float32 {
			weights[i] = value{op.F32(t.Shape...), s.temporary(t.Len())}
		} else if len(t.Shape) == 2 {
			weights[i] = value{t, operandOf(i)}
		}
	}
	x := value{op.F32(m, k), operandOf(0)}
	normed := value{x.Type, s.temporary(m * k)}
	wide := op.F32(c.out.Len())
	gate, up := value{wide, s.temporary(c.out.Len())}, value{wide, s.temporary(c.out.Len())}
	for i, t := range c.in {
		if t.DType != compute.Float32 {
			s.call(op.Cast, op.Attr{Options: compute.CastOptions{To: compute.Float32}}, weights[i].source, value{t, operandOf(i)})
		}
	}
	product := func(x value, i int, out source, bias ...value) {
		s.call(op.MatMul, op.Attr{Options: compute.MatMulOptions{TransB: true}}, out, append([]value{x, weights[i]}, bias...)...)
	}
	switch e {
	case op.RMSNormMatVec:
		s.call(op.RMSNorm, c.attr, normed.source, x, value{c.in[1], operandOf(1)})
		product(normed, 2, resultOf(0))
	case op.GateUpSwiGLU:
		product(x, 1, gate.source)
		product(x, 2, up.source)
		s.call(op.SwiGLU, op.Attr{}, resultOf(0), gate, up)
	default:
		for i := range 3 {
			var bias []value
			if len(c.in) == 7 {
				bias = append(bias, value{c.in[4+i], operandOf(4 + i)})
			}
			product(x, 1+i, resultOf(i), bias...)
		}
	}
	return s.done()
}
