package kernels

import (
	"slices"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// Links are the kernels that chains are made of: those of elementwise entries of the catalogue that have no guard.
//
// LinkClip wants limits that are numbers: what Clip does where they are NaN would take as much time again.
var Links = append(links("Neg", "Abs", "Sqrt", "Recip", "Floor", "Ceil", "Round", "Trunc", "Sign", "ReLU", "LeakyReLU", "Scale",
	"HardSwish", "Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "MulAdd", "Lerp", "Less", "LessEqual", "Equal", "Select", "Exp",
	"Tanh", "Sigmoid", "GELU", "GELUErf", "SiLU", "Mish", "Softplus", "SELU", "ELU"),
	elementwise("Clip", "x; low high", "min(max(x[i], low), high)", 4, func(b *builder) f {
		return b.MinOf(b.Param(1), b.MaxOf(b.Param(0), b.Input(0)))
	}))

func links(names ...string) []*ir.Kernel {
	var list []*ir.Kernel
	for _, name := range names {
		list = append(list, All[slices.IndexFunc(All, func(k *ir.Kernel) bool { return k.Name == name })])
	}
	return list
}
