//go:build !js

package benchmarks

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// quantisedOn is m rows of x times weights of n rows of k values.
func quantisedOn(f compute.BlockFormat, m, k, n int) []program.Type {
	words, _ := quant.PackedWords(quant.Type(f), k)
	return []program.Type{program.F32(m, k), {DType: compute.Uint32, Shape: []int{n, words}}}
}

func quantisedProduct(name string, f compute.BlockFormat, eight bool, m, k, n int) measured {
	kind := "float32"
	if eight {
		kind = "8-bit"
	}
	return measured{name: strings.ToLower(fmt.Sprintf(name, f)), entry: catalogue.QuantMatMulRowMajor,
		attr: program.Attr{Options: compute.QuantOptions{Format: f, Q8: eight}}, in: quantisedOn(f, m, k, n), small: quantisedOn(f, m, 512, 48),
		doc: fmt.Sprintf("%s weights %d × %d with %d rows of %s activations", f, n, k, m, kind)}
}

// quantisedFew are products with so few rows that the bytes of the weights bound them. Weights of more than 256 MiB are in no cache.
var quantisedFew = func() (all []measured) {
	const k, n = 8192, 8 * 8192
	for _, f := range []compute.BlockFormat{compute.Q4_K, compute.Q5_K, compute.Q6_K, compute.Q8_0} {
		all = append(all, quantisedProduct("quant_%s", f, true, 1, k, n), quantisedProduct("quant_%s_8", f, true, 8, k, n))
	}
	return append(all, quantisedProduct("quant_%s_f32", compute.Q4_K, false, 1, k, n),
		quantisedProduct("quant_%s_f32_8", compute.Q4_K, false, 8, k, n))
}()

// quantisedMany are products with the rows of a prompt.
var quantisedMany = func() (all []measured) {
	for _, f := range []compute.BlockFormat{compute.Q4_K, compute.Q6_K} {
		for _, eight := range []bool{true, false} {
			name := "quant_matmul_%s_f32"
			if eight {
				name = "quant_matmul_%s"
			}
			p := quantisedProduct(name, f, eight, 512, 8192, 8192)
			p.small = quantisedOn(f, 34, 256, 48)
			p.flops = func(in []program.Type) float64 { // those of the same product of float32
				return 2 * float64(in[0].Len()) * float64(in[1].Shape[0])
			}
			all = append(all, p)
		}
	}
	return all
}()
