package cpu

import (
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/gemm"
)

// decomposed is an entry's decomposition: intermediate values are small beside the weights, which are read once either way, and as
// they are: a cast of a weight is no work.
func decomposed(e *program.Entry) func(c *call) work {
	return func(c *call) work {
		p, err := e.Decompose(c.in, c.attr)
		if err != nil {
			panic(err) // of a checked call
		}
		s := &sequence{}
		values := make([]value, len(p.Values))
		for i, v := range p.Host {
			values[v] = value{p.Values[v].Type, operandOf(i)}
		}
		for _, step := range p.Steps {
			for _, v := range step.Out {
				t := p.Values[v].Type
				if i := slices.Index(p.Read, v); i >= 0 {
					values[v] = value{t, resultOf(i)}
				} else if step.Entry == catalogue.Cast {
					values[v] = values[step.In[0]]
				} else {
					values[v] = value{t, s.temporary(t.Len())}
				}
			}
		}
		for _, step := range p.Steps {
			in, out := make([]value, len(step.In)), values[step.Out[0]].source
			for i, v := range step.In {
				in[i] = values[v]
			}
			switch step.Entry {
			case catalogue.Cast:
			case catalogue.MatMul:
				s.linear(out, in...)
			default:
				s.call(step.Entry, step.Attr, out, in...)
			}
		}
		return s.done()
	}
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
