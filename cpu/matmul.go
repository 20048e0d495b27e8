package cpu

import (
	"runtime"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/gemm"
)

// product returns the lowering of an entry that is a product of matrices.
func product(name string) func(c *call) work {
	return func(c *call) work {
		d, _ := catalogue.ProductOf(catalogue.Lookup(name), c.in, c.attr) // checked
		p := &gemm.Product{M: d.M, N: d.N, K: d.K, AM: d.K, AK: 1, BK: d.N, BN: 1, LDC: d.N, Alpha: 1,
			Batch: d.Batch, StrideA: d.StrideA, StrideB: d.StrideB, StrideC: d.M * d.N}
		if d.TransA {
			p.AM, p.AK = 1, d.M
		}
		if d.TransB {
			p.BK, p.BN = 1, d.K
		}
		act, ns := engine.InPlace(d.Act)
		_, epilogue := c.expressions.Ns()
		p.FinishNS = ns + epilogue
		if act != nil || c.epilogue != nil {
			p.Finish = func(context any, y []float32, at int) {
				if act != nil {
					act(y)
				}
				c.Finish(context.(*args), view{unsafe.Pointer(&y[0]), len(y)}, at, at, at+len(y))
			}
		}
		return c.multiplication(p, d.A, d.B)
	}
}

// multiplication is the work of a product of two operands; a third one is its bias. 16-bit operands that the plan does not
// support are widened first.
func (c *call) multiplication(p *gemm.Product, left, right int) work {
	plan := gemm.NewPlan(p, runtime.GOMAXPROCS(0))
	var w work
	room := func(n int) int { // float32 elements of scratch memory
		at := w.scratch / 4
		w.scratch += engine.Padded(n, 16) * 4
		return at
	}
	own := room(plan.Scratch())
	operand := func(i int, halves bool) func(a *args) ([]float32, gemm.Half) {
		t := c.in[i]
		switch {
		case t.DType == compute.Float32:
			return func(a *args) ([]float32, gemm.Half) { return a.in[i].f32(), gemm.Half{} }
		case halves:
			return func(a *args) ([]float32, gemm.Half) {
				return nil, gemm.Half{Bits: a.in[i].u16(), Brain: t.DType == compute.BFloat16}
			}
		}
		at, n := room(t.Len()), t.Len()
		w.phases = append(w.phases, phase{units: n, ns: engine.Widening.Ns(), do: func(a *args, lo, hi int) {
			widen(words32(a)[at+lo:at+hi], a.in[i], t.DType, lo)
		}})
		return func(a *args) ([]float32, gemm.Half) { return words32(a)[at:][:n], gemm.Half{} }
	}
	halfA, halfB := plan.Halves()
	x, y := operand(left, halfA), operand(right, halfB)
	target := func(a *args) []float32 { return a.out.f32() }
	if c.out.DType != compute.Float32 {
		at, n := room(c.out.Len()), c.out.Len()
		target = func(a *args) []float32 { return words32(a)[at:][:n] }
	}
	for i := range plan.Phases() {
		units, ns := plan.Phase(i)
		w.phases = append(w.phases, phase{units: units, ns: ns, do: func(a *args, lo, hi int) {
			o := gemm.Operands{C: target(a), Context: a}
			o.A, o.HalfA = x(a)
			o.B, o.HalfB = y(a)
			if len(c.in) == 3 {
				o.Bias = a.in[2].f32()
			}
			plan.Do(i, lo, hi, &o, words32(a)[own:], a.stop)
		}})
	}
	if c.out.DType != compute.Float32 {
		w.phases = append(w.phases, phase{units: c.out.Len(), ns: engine.Narrowing.Ns(), do: func(a *args, lo, hi int) {
			narrow(a.out, c.out.DType, lo, target(a)[lo:hi])
		}})
	}
	return w
}
