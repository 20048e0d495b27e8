package conformance

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func init() {
	byName["conv1d"] = conv1dCases
	largeByName["conv1d"] = func(b *builder) {
		b.integers(op.Attr{Options: compute.Conv1DOptions{Causal: true, Groups: 600}}, []int{2, 600, 1001}, []int{600, 1, 4}, []int{600})
	}
}

func conv1dCases(b *builder) {
	type sizes struct {
		x, w []int
		o    compute.Conv1DOptions
	}
	all := []sizes{
		{[]int{1, 1, 1}, []int{1, 1, 1}, compute.Conv1DOptions{}},
		{[]int{1, 1, 9}, []int{1, 1, 3}, compute.Conv1DOptions{Pad: 1}},
		{[]int{2, 3, 17}, []int{5, 3, 4}, compute.Conv1DOptions{Stride: 2, Pad: 3}},
		{[]int{2, 4, 33}, []int{6, 2, 3}, compute.Conv1DOptions{Groups: 2, Dilation: 3}},
		{[]int{1, 3, 70}, []int{33, 3, 5}, compute.Conv1DOptions{Causal: true}},
		{[]int{2, 5, 131}, []int{5, 1, 4}, compute.Conv1DOptions{Causal: true, Groups: 5}}, // the short convolution of state-space models
		{[]int{1, 7, 64}, []int{7, 1, 4}, compute.Conv1DOptions{Causal: true, Groups: 7}},
		{[]int{1, 3, 3}, []int{3, 1, 7}, compute.Conv1DOptions{Causal: true, Groups: 3}}, // longer than the sequence
		{[]int{2, 2, 1}, []int{2, 1, 4}, compute.Conv1DOptions{Causal: true, Groups: 2}},
		{[]int{1, 2, 29}, []int{4, 1, 3}, compute.Conv1DOptions{Causal: true, Groups: 2, Dilation: 4, Stride: 3}},
		{[]int{1, 2, 30}, []int{2, 2, 2}, compute.Conv1DOptions{Causal: true, Stride: 4}},
		{[]int{3, 17, 20}, []int{9, 17, 1}, compute.Conv1DOptions{}},
		{[]int{1, 2, 5}, []int{3, 2, 1}, compute.Conv1DOptions{Causal: true}},
		{[]int{0, 3, 8}, []int{4, 3, 3}, compute.Conv1DOptions{}},
		{[]int{2, 0, 8}, []int{4, 0, 3}, compute.Conv1DOptions{Causal: true}},
		{[]int{1, 1, 0}, []int{1, 1, 2}, compute.Conv1DOptions{Causal: true}},
	}
	for i, s := range all {
		b.integers(op.Attr{Options: s.o}, s.x, s.w)
		s.o.Act = append(slices.Clone(activations), compute.NoActivation)[i%(len(activations)+1)]
		b.random("", op.Attr{Options: s.o}, s.x, s.w, s.w[:1])
	}
	silu := compute.Conv1DOptions{Causal: true, Groups: 5, Act: compute.SiLU}
	b.random("", op.Attr{Options: silu}, all[5].x, all[5].w)
	b.random("", op.Attr{Options: silu}, all[5].x, all[5].w, []int{5})
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, s := range []sizes{all[2], all[4], all[5], all[7]} {
		b.add("NaN and Inf reach only their windows", op.Attr{Options: s.o}, func(r *source) []operand {
			x := r.integers(1, 4, s.x...).set(nan, 0).set(inf, op.Len(s.x)-1)
			return []operand{x, r.integers(1, 4, s.w...)}
		}).exact = true
		b.add("an infinite weight over padding", op.Attr{Options: s.o}, func(r *source) []operand {
			return []operand{r.integers(1, 4, s.x...), r.integers(1, 4, s.w...).set(inf, 0)}
		}).exact = true
	}
	b.bothAliases(b.integers(op.Attr{Options: compute.Conv1DOptions{Causal: true, Groups: 3}}, []int{2, 3, 40}, []int{3, 1, 4}))
}
