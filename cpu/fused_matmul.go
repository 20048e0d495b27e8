package cpu

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/gemm"
)

// fusedMatMul is composed of other entries: the intermediate values are small beside the weights, which are read once either
// way.
func fusedMatMul(e *program.Entry) func(c *call) work {
	return func(c *call) work { return composeMatMul(e, c) }
}

func composeMatMul(e *program.Entry, c *call) work {
	m, k := program.RowsCols(c.in[0].Shape)
	s := &sequence{}
	operand := func(i int) value { return value{c.in[i], operandOf(i)} }
	x := value{program.F32(m, k), operandOf(0)}
	switch e {
	case catalogue.RMSNormMatVec:
		normed := value{x.Type, s.temporary(m * k)}
		s.call(catalogue.RMSNorm, c.attr, normed.source, x, operand(1))
		s.linear(resultOf(0), normed, operand(2))
	case catalogue.GateUpSwiGLU:
		wide := program.F32(c.out.Len())
		gate, up := value{wide, s.temporary(wide.Len())}, value{wide, s.temporary(wide.Len())}
		s.linear(gate.source, x, operand(1))
		s.linear(up.source, x, operand(2))
		s.call(catalogue.SwiGLU, program.Attr{}, resultOf(0), gate, up)
	default:
		for i := range 3 {
			in := []value{x, operand(1 + i)}
			if len(c.in) == 7 {
				in = append(in, operand(4+i))
			}
			s.linear(resultOf(i), in...)
		}
	}
	return s.done()
}

// linear appends the product of rows with a transposed weight of any element type, plus a bias if there is a third operand.
func (s *sequence) linear(out source, in ...value) {
	rows, weight := in[0].Shape, in[1].Shape
	m, k, n := rows[0], rows[1], weight[0]
	if m == 0 || n == 0 {
		return
	}
	p := &gemm.Product{M: m, N: n, K: k, AM: k, AK: 1, BK: 1, BN: k, LDC: n, Alpha: 1, Batch: 1, StrideC: m * n}
	c := &call{out: program.F32(m, n)}
	for _, v := range in {
		c.in = append(c.in, v.Type)
	}
	s.append(c.multiplication(p, 0, 1), out, in...)
}
