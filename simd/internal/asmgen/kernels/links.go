package kernels

import (
	"slices"

	"github.com/wavelane/wavelane/simd/internal/asmgen/ir"
)

// Links are the kernels that chains are made of: those of which loads and stores are much of the work. Other functions gain little
// by values that stay in registers.
var Links = links("Neg", "Abs", "Sqrt", "Recip", "Floor", "Ceil", "Round", "Trunc", "Sign", "ReLU", "LeakyReLU", "Clip", "Scale",
	"HardSwish", "Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "MulAdd", "Lerp")

func links(names ...string) []*ir.Kernel {
	var list []*ir.Kernel
	for _, name := range names {
		list = append(list, All[slices.IndexFunc(All, func(k *ir.Kernel) bool { return k.Name == name })])
	}
	return list
}
