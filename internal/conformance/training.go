package conformance

import (
	"math"

	"github.com/wavelane/wavelane/internal/op"
)

func init() {
	for _, name := range []string{"relu_backward", "gelu_backward", "gelu_erf_backward", "silu_backward"} {
		byName[name] = activationGradientCases
		largeByName[name] = largeActivationGradient
	}
}

// activationGradientCases leave to other binary entries what all have in common.
func activationGradientCases(b *builder) {
	none := op.Attr{}
	for _, n := range []int{0, 1, 3, 4, 5, 64, 257, 1025, 4099} {
		b.random("", none, []int{n}, []int{n})
	}
	for _, s := range [][][]int{{{}, {}}, {{7}, {}}, {{}, {7}}, {{4, 1}, {1, 5}}, {{33, 16}, {33, 1}}, {{64, 65}, {65}}, {{2, 0, 3}, {3}}} {
		b.random("", none, s...)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	// Infinities meet no slope that rounding or flushing may turn into 0, or into a number of the other sign.
	ordinary := []float32{0.5, -0.1, 3, 1e-3, 1, 2}
	b.given("special dy", none, f32s([]int{len(ordinary), 1}, ordinary...),
		vector(nan, inf, -inf, 0, 1, -1, 1e10, -1e10, 1e-40, 0x1p-126, math.MaxFloat32))
	b.given("special x", none, f32s([]int{len(specials(b.Entry)), 1}, specials(b.Entry)...), vector(1, -0.25, 1000, nan)).loose = 4
	b.add("NaN and Inf scattered", none, func(r *source) []operand {
		return []operand{r.domain(b.Entry, 300).set(nan, 0, 100, 255, 299).set(inf, 1, 256).set(-inf, 2, 257), r.floats(-4, 4, 300)}
	})
	c := b.random("", none, []int{259}, []int{259})
	b.again(c, inPlace)
	b.again(c, shifted)
	b.random("one value for both operands", none, []int{259}, []int{259}).same = true
}

func largeActivationGradient(b *builder) { b.random("", op.Attr{}, []int{1_000_003}, []int{1_000_003}) }
