package simd

import (
	"runtime"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/simd/internal/gemm"
)

func matmul(c *call) work {
	o := c.attr.Options.(compute.MatMulOptions)
	d, _ := op.MatMulShape(c.in[0].Shape, c.in[1].Shape, o) // checked
	p := &gemm.Product{M: d.M, N: d.N, K: d.K, AM: d.K, AK: 1, BK: d.N, BN: 1, LDC: d.N, Alpha: 1,
		Batch: d.Batch, StrideA: d.StrideA, StrideB: d.StrideB, StrideC: d.M * d.N}
	if o.TransA {
		p.AM, p.AK = 1, d.M
	}
	if o.TransB {
		p.BK, p.BN = 1, d.K
	}
	p.Act, p.ActNS = inPlace(o.Act)
	return multiplication(p)
}

func matvec(c *call) work {
	m, k := c.in[0].Shape[0], c.in[0].Shape[1]
	return multiplication(&gemm.Product{M: m, N: 1, K: k, AM: k, AK: 1, BK: 1, BN: 1, LDC: 1, Alpha: 1, Batch: 1})
}

// multiplication is the work of a product of the first two operands; a third one is its bias.
func multiplication(p *gemm.Product) work {
	plan := gemm.NewPlan(p, runtime.GOMAXPROCS(0))
	w := work{scratch: (plan.Scratch() + 1) / 2 * 8}
	for i := range plan.Phases() {
		units, ns := plan.Phase(i)
		w.phases = append(w.phases, phase{units: units, ns: ns, do: func(a *args, lo, hi int) {
			o := gemm.Operands{A: a.in[0].f32(), B: a.in[1].f32(), C: a.out.f32()}
			if len(a.in) == 3 {
				o.Bias = a.in[2].f32()
			}
			plan.Do(i, lo, hi, &o, words32(a), a.stop)
		}})
	}
	return w
}

// inPlace returns an activation as an epilogue runs it, and its cost; nil for none.
func inPlace(a compute.Activation) (func(y []float32), float64) {
	f, ns := activation(a)
	if f == nil {
		return nil, 0
	}
	return func(y []float32) { f(y, y, nil, nil, numbers{}) }, ns
}
