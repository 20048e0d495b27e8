package lower

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

const quadsDoc = " Four elements at a time, those behind the end too. Parameters: u32 quads; "

var (
	swigluBackwardKernel = severalResults("swiglu_backward", "dy·up·slope(gate) and dy·silu(gate)."+quadsDoc+"f32* gate, up, dy, dgate, dup.",
		3, 2, func(k *ptx.Kernel) func(x []float) []float {
			c := calc{k}
			return func(x []float) []float {
				return []float{c.mul(c.mul(x[2], x[1]), c.siluSlope(x[0])), c.mul(x[2], c.silu(x[0]))}
			}
		})
	adamKernel = severalResults("adam", "A step of Adam."+quadsDoc+"f32* grad; f32* p, m, v, changed in place; f32 β1, 1−β1, β2, 1−β2, eps, "+
		"decay of p, rate, root, log β1, log β2; u32 device, 1 if rate is without its correction and root comes from the step; i32* step.",
		1, 3, buildAdam)
)

func SwiGLUBackward(s *step) error {
	quads := ceilDiv(s.out.Len(), 4)
	s.launch(swigluBackwardKernel, s.strides(quads, elementwiseBlock), quads, operand(0), operand(1), operand(2), resultAt(0), resultAt(1))
	return nil
}

func Adam(s *step) error {
	c := catalogue.AdamOf(s.Attr.Options.(compute.AdamOptions), 0)
	rate, root, device, number := c.Rate, c.Root, 0, resultAt(0)
	if len(s.in) == 5 {
		rate, root, device, number = c.LR, 0, 1, operand(4)
	}
	quads := ceilDiv(s.out.Len(), 4)
	arguments := []any{quads, operand(3), resultAt(0), resultAt(1), resultAt(2)}
	for _, v := range []float64{c.Beta1, 1 - c.Beta1, c.Beta2, 1 - c.Beta2, c.Eps, c.Decay, rate, root, math.Log(c.Beta1), math.Log(c.Beta2)} {
		arguments = append(arguments, float32(v))
	}
	s.launch(adamKernel, s.strides(quads, elementwiseBlock), append(arguments, device, number)...)
	return nil
}

// severalResults is a kernel whose results come from the elements at their places. f gets those of the operands, then those that the
// results have already if all are results that are changed in place; body declares what parameters follow the pointers.
func severalResults(name, doc string, operands, results int, body func(k *ptx.Kernel) func(x []float) []float) *Kernel {
	return register(Kernel{Family: "training", Name: name, Doc: doc, Block: [3]int{elementwiseBlock, 1, 1}, build: func(k *ptx.Kernel) {
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
		ptx.For(k, k.GlobalID(ptx.X), count, ptx.Mul(k, k.Nctaid(ptx.X), u32(elementwiseBlock)), func(i ptx.Reg[uint32]) {
			at := ptx.MulWideU32(k, i, u32(16))
			var in [4][]float
			for _, p := range reads {
				for c, v := range ptx.Load4(k, ptx.AtByte(k, p, at)) {
					in[c] = append(in[c], v)
				}
			}
			out := make([][4]float, results)
			for c := range in {
				for r, v := range f(in[c]) {
					out[r][c] = v
				}
			}
			for r, p := range y {
				ptx.Store4(k, ptx.AtByte(k, p, at), out[r])
			}
		}, ptx.NoUnroll())
	}})
}

// buildAdam is decay·p − rate·m/(root·√v + eps). With the number of the step on the device, rate and root are made here: 1 − βᵗ is
// −expm1(t·log β).
func buildAdam(k *ptx.Kernel) func(x []float) []float {
	c := calc{k}
	beta1, rest1 := ptx.Param[float32](k, "beta1"), ptx.Param[float32](k, "rest1")
	beta2, rest2 := ptx.Param[float32](k, "beta2"), ptx.Param[float32](k, "rest2")
	eps, decay := ptx.Param[float32](k, "eps"), ptx.Param[float32](k, "decay")
	rate, root := ptx.VarOf(k, ptx.Param[float32](k, "rate")), ptx.VarOf(k, ptx.Param[float32](k, "root"))
	log1, log2 := ptx.Param[float32](k, "log1"), ptx.Param[float32](k, "log2")
	device := ptx.Param[uint32](k, "device")
	number := ptx.PointerParam[int32](k, "step")
	k.If(ptx.Ne(k, device, u32(0)), func() {
		t := ptx.Convert[float32](k, ptx.Load(k, number))
		rate.Set(ptx.Div(k, rate.Get(), c.neg(c.expm1(c.mul(t, log1)))))
		root.Set(ptx.Rsqrt(k, c.neg(c.expm1(c.mul(t, log2)))))
	})
	return func(x []float) []float { // grad, p, m, v
		m := c.fma(beta1, x[2], c.mul(rest1, x[0]))
		v := c.fma(beta2, x[3], c.mul(rest2, c.mul(x[0], x[0])))
		by := c.fma(root.Get(), ptx.Sqrt(k, v, ptx.Approx), eps)
		return []float{c.fma(decay, x[1], c.neg(ptx.Div(k, c.mul(rate.Get(), m), by))), m, v}
	}
}
