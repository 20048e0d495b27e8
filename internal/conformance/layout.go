package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["conv1d"], byName["gather"], byName["take_along"] = conv1dCases, gatherCases, takeAlongCases
	byName["scatter"], byName["scatter_add"] = scatterCases, scatterCases
	byName["embedding_backward"] = scatterCases
	largeByName["gather"] = func(b *builder) {
		b.indexed("", program.Attr{Options: compute.GatherOptions{Axis: 1}}, 7, []int{300_001}, compute.Float32, []int{7, 5, 3})
	}
	largeByName["take_along"] = func(b *builder) {
		b.indexed("", program.Attr{}, 60, []int{70_001, 5}, compute.Float32, []int{70_001, 60})
	}
	for _, name := range []string{"scatter", "scatter_add", "embedding_backward"} {
		largeByName[name] = func(b *builder) {
			b.indexed("", program.Attr{}, 50_001, []int{70_003}, compute.Float32, []int{50_001, 5}, []int{70_003, 5})
			b.updatesOf(1_000_003, 3)
		}
	}
	largeByName["conv1d"] = func(b *builder) {
		b.integers(program.Attr{Options: compute.Conv1DOptions{Causal: true, Groups: 600}}, []int{2, 600, 1001}, []int{600, 1, 4}, []int{600})
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
		b.integers(program.Attr{Options: s.o}, s.x, s.w)
		s.o.Act = append(slices.Clone(activations), compute.NoActivation)[i%(len(activations)+1)]
		b.random("", program.Attr{Options: s.o}, s.x, s.w, s.w[:1])
	}
	silu := compute.Conv1DOptions{Causal: true, Groups: 5, Act: compute.SiLU}
	b.random("", program.Attr{Options: silu}, all[5].x, all[5].w)
	b.random("", program.Attr{Options: silu}, all[5].x, all[5].w, []int{5})
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, s := range []sizes{all[2], all[4], all[5], all[7]} {
		b.add("NaN and Inf reach only their windows", program.Attr{Options: s.o}, func(r *source) []operand {
			x := r.integers(1, 4, s.x...).set(nan, 0).set(inf, program.Len(s.x)-1)
			return []operand{x, r.integers(1, 4, s.w...)}
		}).exact = true
		b.add("an infinite weight over padding", program.Attr{Options: s.o}, func(r *source) []operand {
			return []operand{r.integers(1, 4, s.x...), r.integers(1, 4, s.w...).set(inf, 0)}
		}).exact = true
	}
	b.bothAliases(b.integers(program.Attr{Options: compute.Conv1DOptions{Causal: true, Groups: 3}}, []int{2, 3, 40}, []int{3, 1, 4}))
}

// indexed adds a case of x, random indices of a shape (within an axis of the given size, and a few outside) and maybe
// updates, all of an element type.
func (b *builder) indexed(note string, a program.Attr, axis int, indices []int, d compute.DType, x []int, updates ...[]int) *testCase {
	return b.add(note, a, func(r *source) []operand {
		ids := make([]int32, program.Len(indices))
		for i := range ids {
			ids[i] = int32(r.IntN(axis+2+axis/8)) - 1
			if r.IntN(50) == 0 {
				ids[i] = []int32{math.MinInt32, math.MaxInt32, -5}[r.IntN(3)]
			}
		}
		in := []operand{r.words(d, x...), {program.Type{DType: compute.Int32, Shape: indices}, ids}}
		for _, s := range updates {
			in = append(in, r.words(d, s...))
		}
		return in
	})
}

func gatherCases(b *builder) {
	for i, c := range []struct {
		x       []int
		axis    int
		indices []int
	}{
		{[]int{5}, 0, []int{7}}, {[]int{1}, 0, []int{1}}, {[]int{9, 4}, 0, []int{6}}, {[]int{9, 4}, 1, []int{6}}, {[]int{9, 4}, -1, []int{}},
		{[]int{9, 5}, 0, []int{2, 3}}, {[]int{3, 4, 8}, 1, []int{5}}, {[]int{3, 4, 8}, -2, []int{2, 2}}, {[]int{3, 4, 7}, 1, []int{300}},
		{[]int{2, 33, 64}, 1, []int{31}}, {[]int{2, 3, 2, 3, 2}, 2, []int{4, 1}}, {[]int{5, 0}, 0, []int{3}}, {[]int{0, 3}, 0, []int{4}},
		{[]int{3, 5}, 1, []int{0}}, {[]int{700, 40}, 0, []int{900}}, {[]int{40, 700}, 1, []int{901}}, {[]int{1000, 3}, 0, []int{30_000}},
	} {
		d := []compute.DType{compute.Float32, compute.Int32, compute.Uint32}[i%3]
		a := program.Attr{Options: compute.GatherOptions{Axis: c.axis}}
		axis := c.axis
		if axis < 0 {
			axis += len(c.x)
		}
		b.indexed("", a, c.x[axis], c.indices, d, c.x)
	}
	b.bothAliases(b.indexed("", program.Attr{Options: compute.GatherOptions{Axis: 1}}, 20, []int{20}, compute.Int32, []int{6, 20}))
}

func takeAlongCases(b *builder) {
	for i, c := range []struct{ x, indices []int }{
		{[]int{5}, []int{7}}, {[]int{1}, []int{1}}, {[]int{9, 4}, []int{9, 6}}, {[]int{9, 4}, []int{9, 4}}, {[]int{3, 4, 7}, []int{3, 4, 1}},
		{[]int{2, 33, 65}, []int{2, 33, 64}}, {[]int{4, 0}, []int{4, 3}}, {[]int{4, 5}, []int{4, 0}}, {[]int{0, 5}, []int{0, 2}}, {[]int{300, 100}, []int{300, 3}},
		{[]int{3, 9000}, []int{3, 20_000}}, {[]int{2, 1, 2, 3, 1, 2, 2, 9}, []int{2, 1, 2, 3, 1, 2, 2, 5}},
	} {
		d := []compute.DType{compute.Float32, compute.Int32, compute.Uint32}[i%3]
		b.indexed("", program.Attr{}, c.x[len(c.x)-1], c.indices, d, c.x)
	}
	b.bothAliases(b.indexed("", program.Attr{}, 20, []int{6, 20}, compute.Uint32, []int{6, 20}))
}

// updatesOf adds cases of n updates of rows of a width: all of one row, of rows drawn evenly, and by Zipf's law, a few outside.
func (b *builder) updatesOf(n, width int) {
	for _, c := range []struct {
		note string
		rows int
		row  func(r *source) int
	}{
		{"all of one row", 3, func(*source) int { return 1 }},
		{"evenly spread", 30_000, func(r *source) int { return r.IntN(30_100) - 50 }},
		{"few of most rows", 30_000, func(r *source) int { return int(math.Exp(r.Float64()*math.Log(31_000))) - 1 }},
		{"all outside", 2, func(r *source) int { return r.IntN(2)*7 - 5 }},
	} {
		b.updates(fmt.Sprint(n, " updates, ", c.note), n, width, c.rows, c.row)
	}
}

// updates adds a case of n updates of rows of a width, each of a row that is drawn.
func (b *builder) updates(note string, n, width, rows int, row func(r *source) int) {
	b.add(note, program.Attr{}, func(r *source) []operand {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(row(r))
		}
		return []operand{r.integers(-9, 9, rows, width), {program.Type{DType: compute.Int32, Shape: []int{n}}, ids}, r.integers(-3, 9, n, width)}
	}).exact = true
}

// scatterCases are of rows of all widths, of no, one and many updates for each.
func scatterCases(b *builder) {
	for i, c := range []struct {
		x       []int
		indices []int
	}{
		{[]int{5, 3}, []int{4}}, {[]int{1, 1}, []int{1}}, {[]int{9, 4}, []int{30}}, {[]int{9, 8}, []int{2, 3}}, {[]int{3, 64}, []int{5}},
		{[]int{2, 65}, []int{200}}, {[]int{70, 1}, []int{300}}, {[]int{5, 0}, []int{3}}, {[]int{0, 3}, []int{4}}, {[]int{5, 4}, []int{0}},
		{[]int{1, 4}, []int{100}}, {[]int{300, 257}, []int{130}}, {[]int{9000, 3}, []int{7000}}, {[]int{40, 600}, []int{40}},
	} {
		d := compute.Float32
		if types := b.Inputs[0].Types; types != nil {
			d = types[i%len(types)]
		}
		u := append(slices.Clone(c.indices), c.x[1:]...)
		b.indexed("", program.Attr{}, c.x[0], c.indices, d, c.x, u)
	}
	if b.Name != "embedding_backward" {
		b.indexed("one axis", program.Attr{}, 12, []int{30}, compute.Float32, []int{12}, []int{30})
		b.indexed("many axes", program.Attr{}, 3, []int{2, 2}, compute.Float32, []int{3, 2, 1, 4}, []int{2, 2, 2, 1, 4})
	}
	b.add("NaN and Inf stay in their rows", program.Attr{}, func(r *source) []operand {
		ids := operand{program.Type{DType: compute.Int32, Shape: []int{6}}, []int32{3, 0, 3, 4, 1, 3}}
		return []operand{r.integers(-9, 9, 5, 4).set(float32(math.Inf(1)), 0), ids,
			r.integers(-9, 9, 6, 4).set(float32(math.NaN()), 0).set(float32(math.Inf(-1)), 13)}
	})
	b.updatesOf(65_537, 1)
	b.updatesOf(4097, 4)
	b.indexed("two rows", program.Attr{}, 2, []int{70_000}, compute.Float32, []int{2, 3}, []int{70_000, 3})
	b.add("NaN and Inf among many updates", program.Attr{}, func(r *source) []operand {
		ids := make([]int32, 5000)
		for i := range ids {
			ids[i] = int32(i % 5)
		}
		return []operand{r.integers(-9, 9, 5, 1), {program.Type{DType: compute.Int32, Shape: []int{5000}}, ids},
			r.integers(-9, 9, 5000, 1).set(float32(math.NaN()), 4000).set(float32(math.Inf(-1)), 3001, 13).set(float32(math.Inf(1)), 2002, 4997)}
	}).exact = true
	b.add("small integers", program.Attr{}, func(r *source) []operand {
		ids := make([]int32, 500)
		for i := range ids {
			ids[i] = r.Int32N(7)
		}
		return []operand{r.integers(-9, 9, 7, 12), {program.Type{DType: compute.Int32, Shape: []int{500}}, ids}, r.integers(-9, 9, 500, 12)}
	}).exact = true
}
