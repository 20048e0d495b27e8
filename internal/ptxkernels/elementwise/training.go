package elementwise

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

const quadsDoc = " Four elements at a time, those behind the end too. Parameters: u32 quads; "

var (
	swigluBackwardKernel = severalResults("swiglu_backward", "dy·up·slope(gate) and dy·silu(gate)."+quadsDoc+"f32* gate, up, dy, dgate, dup.",
		3, 2, func(k *ptx.Kernel) func(x []scalar.Float) []scalar.Float {
			c := scalar.Math{K: k}
			return func(x []scalar.Float) []scalar.Float {
				return []scalar.Float{x[2].Mul(x[1]).Mul(c.SiluSlope(x[0])), x[2].Mul(c.Silu(x[0]))}
			}
		})
	adamKernel = severalResults("adam", "A step of Adam."+quadsDoc+"f32* grad; f32* p, m, v, changed in place; f32 β1, 1−β1, β2, 1−β2, eps, "+
		"decay of p, rate, root, log β1, log β2; u32 device, 1 if rate is without its correction and root comes from the step; i32* step.",
		1, 3, buildAdam)
)

// SwiGLUBackward lowers the gradients of SwiGLU for both operands.
func SwiGLUBackward(s *kit.Step) error {
	quads := kit.CeilDiv(s.Result.Len(), 4)
	s.Launch(swigluBackwardKernel, s.GridStride(quads, elementwiseBlock), quads, kit.In(0), kit.In(1), kit.In(2), kit.OutAt(0), kit.OutAt(1))
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
	arguments := []any{quads, kit.In(3), kit.OutAt(0), kit.OutAt(1), kit.OutAt(2)}
	for _, v := range []float64{c.Beta1, 1 - c.Beta1, c.Beta2, 1 - c.Beta2, c.Eps, c.Decay, rate, root, math.Log(c.Beta1), math.Log(c.Beta2)} {
		arguments = append(arguments, float32(v))
	}
	s.Launch(adamKernel, s.GridStride(quads, elementwiseBlock), append(arguments, device, number)...)
	return nil
}

// severalResults is a kernel whose results come from the elements at their places. f gets those of the operands, then those that the
// results have already if all are results that are changed in place; body declares what parameters follow the pointers.
func severalResults(name, doc string, operands, results int, body func(k *ptx.Kernel) func(x []scalar.Float) []scalar.Float) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "training", Name: name, Doc: doc, Block: [3]int{elementwiseBlock, 1, 1}, Build: func(k *ptx.Kernel) {
		count := ptx.Param[uint32](k, "quads")
		var x, y []ptx.Ptr[ptx.Global, float32]
		for i := range operands {
			x = append(x, ptx.PointerParam[float32](k, string(rune('a'+i)), ptx.Align(16)))
		}
		for i := range results {
			y = append(y, ptx.PointerParam[float32](k, string(rune('x'+i)), ptx.Align(16)))
		}
		f := body(k)
		reads := x
		if results > operands { // changed in place
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
func buildAdam(k *ptx.Kernel) func(x []scalar.Float) []scalar.Float {
	c := scalar.Math{K: k}
	beta1, rest1 := ptx.Param[float32](k, "beta1"), ptx.Param[float32](k, "rest1")
	beta2, rest2 := ptx.Param[float32](k, "beta2"), ptx.Param[float32](k, "rest2")
	eps, decay := ptx.Param[float32](k, "eps"), ptx.Param[float32](k, "decay")
	rate, root := ptx.VarOf(k, ptx.Param[float32](k, "rate")), ptx.VarOf(k, ptx.Param[float32](k, "root"))
	log1, log2 := ptx.Param[float32](k, "log1"), ptx.Param[float32](k, "log2")
	device := ptx.Param[uint32](k, "device")
	number := ptx.PointerParam[int32](k, "step")
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
