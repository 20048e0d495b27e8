package lower

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx"
)

// activations are the functions that [activate] knows, in the order in which it asks for them.
var activations = []struct {
	act compute.Activation
	f   func(calc, float) float
}{
	{compute.ReLU, calc.relu}, {compute.GELU, calc.gelu}, {compute.GELUErf, calc.geluErf}, {compute.SiLU, calc.silu},
	{compute.Sigmoid, calc.sigmoid}, {compute.Tanh, calc.tanh},
}

// activate applies the activation with that code, a parameter of the kernel, to each of x. The code is the same in the whole
// grid: for none there is one branch. All functions become code for each of x; who has many calls it in a loop for a few.
func activate(k *ptx.Kernel, code ptx.Reg[uint32], x []float) []float {
	y := make([]*ptx.Var[float32], len(x))
	for i := range x {
		y[i] = ptx.VarOf(k, x[i])
	}
	is := func(a compute.Activation) ptx.Reg[bool] { return ptx.Eq(k, code, ptx.Imm(uint32(a))) }
	k.If(ptx.Ne(k, code, ptx.Imm(uint32(compute.NoActivation))), func() {
		for _, a := range activations {
			k.If(is(a.act), func() {
				for _, v := range y {
					v.Set(a.f(calc{k}, v.Get()))
				}
			})
		}
	})
	out := make([]float, len(y))
	for i, v := range y {
		out[i] = v.Get()
	}
	return out
}
