package elementwise

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// trainingParams are those of kernels with several results.
type trainingParams struct {
	Quads int
	X     []kit.Buffer `names:"a,b,c"`
	Y     []kit.Buffer `names:"x,y,z"`
}

// adamParams are those of adam: X is the gradient, Y the parameters and the moments.
type adamParams struct {
	trainingParams
	Beta1, Rest1, Beta2, Rest2 float32 // β and 1−β
	Eps, Decay                 float32
	Rate, Root                 float32
	Log1, Log2                 float32    // of β
	Device                     int        // 1 if rate is without its correction and root comes from the step
	Step                       kit.Buffer `of:"s32"`
}

var (
	swigluBackwardKernel = severalResults("swiglu_backward", "dy·up·slope(gate) and dy·silu(gate); operands are gate, up and dy.",
		func() trainingParams { return trainingParams{X: make([]kit.Buffer, 3), Y: make([]kit.Buffer, 2)} },
		func(at *trainingParams) *trainingParams { return at },
		func(p *kit.Params, _ *trainingParams) func(x []scalar.Float) []scalar.Float {
			c := scalar.Math{K: p.Kernel}
			return func(x []scalar.Float) []scalar.Float {
				return []scalar.Float{x[2].Mul(x[1]).Mul(c.SiluSlope(x[0])), x[2].Mul(c.Silu(x[0]))}
			}
		})
	adamKernel = severalResults("adam", "A step of Adam, of a gradient; parameters and moments are changed in place.",
		func() adamParams {
			return adamParams{trainingParams: trainingParams{X: make([]kit.Buffer, 1), Y: make([]kit.Buffer, 3)}}
		}, func(at *adamParams) *trainingParams { return &at.trainingParams }, buildAdam)
)

// SwiGLUBackward lowers the gradients of SwiGLU for both operands.
func SwiGLUBackward(s *kit.Step) error {
	quads := kit.CeilDiv(s.Result.Len(), 4)
	s.Launch(swigluBackwardKernel, s.GridStride(quads, elementwiseBlock), trainingParams{quads,
		[]kit.Buffer{kit.In(0), kit.In(1), kit.In(2)}, []kit.Buffer{kit.OutAt(0), kit.OutAt(1)}})
	return nil
}

// Adam lowers a step of Adam, which changes parameters and moments in place.
func Adam(s *kit.Step) error {
	c := catalogue.AdamOf(s.Attr.Options.(compute.AdamOptions), 0)
	rate, root, device, number := c.Rate, c.Root, 0, kit.OutAt(0)
	if len(s.Operands) == 5 {
		rate, root, device, number = c.LR, 0, 1, kit.In(4)
	}
	quads := kit.CeilDiv(s.Result.Len(), 4)
	s.Launch(adamKernel, s.GridStride(quads, elementwiseBlock), adamParams{
		trainingParams{quads, []kit.Buffer{kit.In(3)}, []kit.Buffer{kit.OutAt(0), kit.OutAt(1), kit.OutAt(2)}},
		float32(c.Beta1), float32(1 - c.Beta1), float32(c.Beta2), float32(1 - c.Beta2), float32(c.Eps), float32(c.Decay), float32(rate), float32(root),
		float32(math.Log(c.Beta1)), float32(math.Log(c.Beta2)), device, number})
	return nil
}

// severalResults is a kernel whose results come from the elements at their places. f gets those of the operands, then those that the
// results have already if all are results that are changed in place; body reads what parameters follow the pointers.
func severalResults[P any](name, doc string, params func() P, head func(at *P) *trainingParams,
	body func(p *kit.Params, at *P) func(x []scalar.Float) []scalar.Float) *kit.Kernel {
	doc += " Four elements at a time, those after the end too."
	return kit.Register(kit.Kernel{Family: "training", Name: name, Doc: doc, Params: params(), Block: [3]int{elementwiseBlock, 1, 1}, Build: func(k *ptx.Kernel) {
		of := params()
		p, first := kit.NewParams(k, &of), head(&of)
		count := p.U32(&first.Quads)
		pointers := func(fields []kit.Buffer) (to []ptx.Ptr[ptx.Global, float32]) {
			for i := range fields {
				to = append(to, kit.Ptr[float32](p, &fields[i], ptx.Align(16)))
			}
			return to
		}
		x, y := pointers(first.X), pointers(first.Y)
		f, results := body(p, &of), len(y)
		reads := x
		if results > len(x) { // changed in place
			reads = append(reads[:len(reads):len(reads)], y...)
		}
		ptx.For(k, k.GlobalID(ptx.X), count, k.Nctaid(ptx.X).Mul(elementwiseBlock), func(i ptx.Reg[uint32]) {
			at := i.MulWide(16)
			var in [4][]scalar.Float
			for _, p := range reads {
				for c, v := range p.Bytes(at).Load4() {
					in[c] = append(in[c], v)
				}
			}
			out := make([][4]scalar.Float, results)
			for c := range in {
				for r, v := range f(in[c]) {
					out[r][c] = v
				}
			}
			for r, p := range y {
				p.Bytes(at).Store4(out[r])
			}
		}, ptx.NoUnroll())
	}})
}

// buildAdam is decay·p − rate·m/(root·√v + eps). With the number of the step on the device, rate and root are made here: 1 − βᵗ is
// −expm1(t·log β).
func buildAdam(p *kit.Params, of *adamParams) func(x []scalar.Float) []scalar.Float {
	k := p.Kernel
	c := scalar.Math{K: k}
	beta1, rest1 := kit.Read(p, &of.Beta1), kit.Read(p, &of.Rest1)
	beta2, rest2 := kit.Read(p, &of.Beta2), kit.Read(p, &of.Rest2)
	eps, decay := kit.Read(p, &of.Eps), kit.Read(p, &of.Decay)
	rate, root := ptx.VarOf(k, kit.Read(p, &of.Rate)), ptx.VarOf(k, kit.Read(p, &of.Root))
	log1, log2 := kit.Read(p, &of.Log1), kit.Read(p, &of.Log2)
	device, number := p.U32(&of.Device), kit.Ptr[int32](p, &of.Step)
	k.If(device.Ne(0), func() {
		t := ptx.Convert[float32](number.Load().Max(1))
		rate.Set(rate.Get().Div(c.Expm1(t.Mul(log1)).Neg()))
		root.Set(c.Expm1(t.Mul(log2)).Neg().Rsqrt())
	})
	return func(x []scalar.Float) []scalar.Float { // grad, p, m, v
		m := beta1.Fma(x[2], rest1.Mul(x[0]))
		v := beta2.Fma(x[3], rest2.Mul(x[0].Mul(x[0])))
		by := root.Get().Fma(v.Sqrt(ptx.Approx), eps)
		return []scalar.Float{decay.Fma(x[1], rate.Get().Mul(m).Div(by).Neg()), m, v}
	}
}
