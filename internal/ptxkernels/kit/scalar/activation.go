package scalar

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx"
)

// Activations are the functions that [activate] knows, in the order in which it asks for them.
var Activations = []struct {
	act compute.Activation
	f   func(Math, Float) Float
}{
	{compute.ReLU, Math.relu}, {compute.GELU, Math.gelu}, {compute.GELUErf, Math.geluErf}, {compute.SiLU, Math.Silu},
	{compute.Sigmoid, Math.sigmoid}, {compute.Tanh, Math.Tanh},
}

// Activate applies the activation with that code, a parameter of the kernel, to each of x. The code is the same in the whole
// grid: for none there is one branch. All functions become code for each of x; who has many calls it in a loop for a few.
func Activate(k *ptx.Kernel, code ptx.Reg[uint32], x []Float) []Float {
	y := make([]*ptx.Var[float32], len(x))
	for i := range x {
		y[i] = ptx.VarOf(k, x[i])
	}
	is := func(a compute.Activation) ptx.Reg[bool] { return code.Eq(uint32(a)) }
	k.If(code.Ne(uint32(compute.NoActivation)), func() {
		for _, a := range Activations {
			k.If(is(a.act), func() {
				for _, v := range y {
					v.Set(a.f(Math{k}, v.Get()))
				}
			})
		}
	})
	out := make([]Float, len(y))
	for i, v := range y {
		out[i] = v.Get()
	}
	return out
}
