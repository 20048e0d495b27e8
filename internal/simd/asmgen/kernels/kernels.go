// Package kernels defines the kernels of package simd, each once for all instruction sets.
//
// Functions state their largest error in ULP, units in the last place of the float32 result (2⁻¹⁴⁹ below the normal range),
// against the function in float64. It is what the tests find over all exponents; where the instruction sets differ it is the
// largest. Polynomials have minimax coefficients (Remez exchange, relative error, the coefficients rounded to float32 from
// the lowest on and those above fitted anew each time) unless a comment names another source.
package kernels

import (
	"slices"
	"strings"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// All are the kernels, by subject.
var All = slices.Concat(arithmetic, roundings, clamps, exponentials, logarithms, trigonometrics,
	hyperbolics, activations, powers, fasts, folds, searches, normalisations)

type (
	// f is a value of the loop; the package writes it too often for a longer name.
	f       = ir.F
	builder = ir.Builder
)

// doc is a kernel's comment: the loop, then notes.
func doc(name, statement string, notes []string) string {
	s := name + " computes\n\n\tfor i := range y {\n\t\t" + statement + "\n\t}"
	if len(notes) > 0 {
		s += "\n\n" + strings.Join(notes, "\n")
	}
	return s
}

// elementwise is a kernel that stores expr. Operands are names: inputs, and after a semicolon parameters.
func elementwise(name, operands, expr string, unroll int, body func(b *builder) f, notes ...string) *ir.Kernel {
	k := &ir.Kernel{Name: name, Doc: doc(name, "y[i] = "+expr, notes), Unroll: unroll}
	k.Inputs, k.Params = operandNames(operands)
	k.Body = func(b *builder) { b.Store(body(b)) }
	return k
}

func operandNames(s string) (inputs, params []string) {
	in, p, _ := strings.Cut(s, ";")
	return strings.Fields(in), strings.Fields(p)
}

// unary is an elementwise kernel of one input.
func unary(name, expr string, unroll int, body func(b *builder, x f) f, notes ...string) *ir.Kernel {
	return elementwise(name, "x", expr, unroll, func(b *builder) f { return body(b, b.Input(0)) }, notes...)
}

// binary is an elementwise kernel of two inputs.
func binary(name, expr string, body func(b *builder, x, y f) f, notes ...string) *ir.Kernel {
	return elementwise(name, "a b", expr, 4, func(b *builder) f { return body(b, b.Input(0), b.Input(1)) }, notes...)
}
