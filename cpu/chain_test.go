package cpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
)

// What a link would do with limits that are no numbers is not what Clip does.
func TestClipToNaNInAChain(t *testing.T) {
	nan := float32(math.NaN())
	nodes := []program.Node{{Entry: catalogue.Neg, Args: []int{0}}, {Entry: catalogue.Clip, Args: []int{1}}}
	x := program.Expression{Inputs: 1, Results: []int{2}, Nodes: nodes}
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for _, limits := range [][]float32{{nan, 1}, {-1, nan}, {-1, 1}} {
			c := calculation{e: program.Fused, attr: program.Attr{Options: x, Scalars: limits}, own: 1, in: []program.Type{program.F32(300)}}
			whole, apart := c.programs(t)
			io := &program.IO{Host: []any{newExpressions(t).data(300)}, Read: destinations(apart)}
			want := results(t, open(t), apart, io)
			io.Read = destinations(whole)
			requireBits(t, want, results(t, open(t), whole, io), "limits %v", limits)
		}
	})
}

// Long chains keep values for later, give results on the way and meet steps that have no links.
func TestLongChains(t *testing.T) {
	r := newExpressions(t)
	repeated(t, 20, func(t *testing.T, d *cpu.Device) {
		const n = 40_000
		x, scalars := r.expression(1+r.IntN(4), 20+r.IntN(30), 1+r.IntN(5))
		c := calculation{e: program.Fused, attr: program.Attr{Options: x, Scalars: scalars}, own: x.Inputs}
		io := &program.IO{}
		for range x.Inputs {
			c.in = append(c.in, program.F32(n))
			io.Host = append(io.Host, r.data(n))
		}
		whole, apart := c.programs(t)
		io.Read = destinations(apart)
		want := results(t, d, apart, io)
		io.Read = destinations(whole)
		requireBits(t, want, results(t, d, whole, io), "%v", &x)
	})
}

// Entries have links unless their kernels may stop or they are no single kernel.
func TestElementwiseEntriesHaveLinks(t *testing.T) {
	composed := []string{"relu_backward", "gelu_backward", "gelu_erf_backward", "silu_backward", "swiglu", "clip_by_norm"}
	for _, e := range elementwise {
		assert.Equal(t, !slices.Contains(usual, e.Name) && !slices.Contains(composed, e.Name), cpu.Linked(e), e.Name)
	}
}
