package conformance

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	for _, name := range []string{"relu_backward", "gelu_backward", "gelu_erf_backward", "silu_backward"} {
		byName[name] = activationGradientCases
		largeByName[name] = largeActivationGradient
	}
	byName["swiglu_backward"] = swigluBackwardCases
	largeByName["swiglu_backward"] = func(b *builder) { b.random("", program.Attr{}, []int{1_000_003}, []int{1_000_003}, []int{1_000_003}) }
	byName["clip_by_norm"] = clipByNormCases
	largeByName["clip_by_norm"] = func(b *builder) { b.clipped(1, []int{3_000_017}, []int{}) }
	byName["adam"] = adamCases
	largeByName["adam"] = func(b *builder) { b.optimised("", compute.AdamOptions{WeightDecay: 0.1}, 10, 1_000_003) }
}

// activationGradientCases leave to other binary entries what all have in common.
func activationGradientCases(b *builder) {
	none := program.Attr{}
	for _, n := range []int{0, 1, 3, 4, 5, 64, 257, 1025, 4099} {
		b.random("", none, []int{n}, []int{n})
	}
	for _, s := range [][][]int{{{}, {}}, {{7}, {}}, {{}, {7}}, {{4, 1}, {1, 5}}, {{33, 16}, {33, 1}}, {{64, 65}, {65}}, {{2, 0, 3}, {3}}} {
		b.random("", none, s...)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	// Infinities meet no slope that rounding or flushing may make 0, or into a number of the other sign.
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

func largeActivationGradient(b *builder) {
	b.random("", program.Attr{}, []int{1_000_003}, []int{1_000_003})
}

func swigluBackwardCases(b *builder) {
	none := program.Attr{}
	for _, s := range [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {255}, {1025}, {4099}, {3, 7}, {}, {2, 3, 4}} {
		b.random("", none, s, s, s)
	}
	x := specials(b.Entry)
	gate, up, dy := make([]float32, 2*len(x)), make([]float32, 2*len(x)), make([]float32, 2*len(x))
	for i := range gate {
		gate[i], up[i], dy[i] = x[i/2], []float32{2, -0.5}[i%2], []float32{-1, 3}[i%2]
	}
	b.given("special gates", none, vector(gate...), vector(up...), vector(dy...)).loose = 4
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	b.given("special dy and up", none, vector(1, 2, 3, 1, 2, 3), vector(nan, inf, -inf, 1, 1, 0), vector(1, 2, 3, nan, inf, -inf))
	b.random("one value for all operands", none, []int{65}, []int{65}, []int{65}).same = true
	c := b.random("", none, []int{259}, []int{259}, []int{259})
	b.again(c, inPlace)
	b.again(c, shifted)
}

// clipped adds a case of x and positive squares of norms, above and below the limit's.
func (b *builder) clipped(limit float32, x, sumsq []int) *testCase {
	return b.add("", program.Attr{Scalars: []float32{limit}}, func(r *source) []operand {
		return []operand{r.floats(-4, 4, x...), r.floats(1e-3, 4, sumsq...)}
	})
}

func clipByNormCases(b *builder) {
	for _, s := range [][][]int{{{1}, {}}, {{5}, {1}}, {{1025}, {}}, {{4099}, {}}, {{3, 5}, {}}, {{3, 64}, {3, 1}}, {{7, 33}, {7, 1}}, {{0}, {}}, {{257}, {257}},
		{{64, 65}, {65}}, {{}, {}}} {
		b.clipped(1, s[0], s[1])
		b.clipped(0.25, s[0], s[1])
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	b.given("special values", program.Attr{Scalars: []float32{2}}, f32s([]int{5, 1}, 1, -3, nan, inf, 0), vector(0, 1, 4, 16, 1e-40, 1e30, nan, -1, 1e-30))
	for _, limit := range []float32{2, 0} {
		b.given("no norm", program.Attr{Scalars: []float32{limit}}, f32s([]int{3, 1}, 1, -3, 0), vector(0, float32(math.Copysign(0, -1))))
	}
	b.given("an infinite norm", program.Attr{Scalars: []float32{2}}, vector(1, -3, 0), vector(inf))
	c := b.clipped(1, []int{5, 129}, []int{})
	b.again(c, inPlace)
	b.again(c, shifted)
}

// optimised adds a case of adam; with the number of the step as an operand where it is not 0, as a number below 1 where it is negative.
func (b *builder) optimised(note string, o compute.AdamOptions, step int32, shape ...int) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
		in := []operand{r.floats(-2, 2, shape...), r.floats(-0.5, 0.5, shape...), r.floats(0, 1, shape...), r.floats(-4, 4, shape...)}
		if step < 0 {
			in = append(in, operand{program.Type{DType: compute.Int32, Shape: []int{1}}, []int32{step + 1}})
		} else if step > 0 {
			in = append(in, operand{program.Type{DType: compute.Int32, Shape: []int{1}}, []int32{step}})
		}
		return in
	})
}

func adamCases(b *builder) {
	plain := compute.AdamOptions{}
	for i, s := range [][]int{{1}, {2}, {3}, {4}, {5}, {255}, {1025}, {4099}, {3, 7}, {}, {0}, {2, 3, 4}} {
		b.optimised("", plain, 0, s...)
		b.optimised("", compute.AdamOptions{LR: 0.01, WeightDecay: 0.1, Step: 1 + i*i}, int32(i%3*i), s...)
	}
	for _, o := range []compute.AdamOptions{{Beta1: 0.5, Beta2: 0.9, Eps: 1e-3, Step: 7}, {LR: 2, WeightDecay: 0.5}, {Beta1: 1e-6, Step: 100_000}} {
		for _, step := range []int32{0, 1, 2, 100, 1_000_000} {
			b.optimised("", o, step, 70)
		}
	}
	for _, step := range []int32{-1, -2, math.MinInt32, math.MaxInt32} {
		b.optimised("a hostile number of the step", compute.AdamOptions{Step: 7}, step, 70)
	}
	b.optimised("more than a small GPU takes in one turn", plain, 0, 16_500)
	zeros := f32s([]int{9}, make([]float32, 9)...)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	b.given("the first step", program.Attr{Options: plain}, vector(1, 2, 3, 4, 5, 6, 7, 8, 9), zeros, zeros, vector(0, 1, -1, 1e-6, -1e-3, 100, nan, 1e3, -20))
	b.given("an infinite gradient", program.Attr{Options: plain}, vector(1), vector(1), vector(1), vector(inf))
	c := b.optimised("", plain, 3, 259)
	b.again(c, inPlace)
	b.again(c, shifted)
}

func init() {
	programs = append(programs, testProgram{"a network that learns", learn})
}

// learn trains a network of two layers to tell in which of four quadrants points lie, 30 steps of Adam in one program: the loss falls
// to less than half.
func learn(g *graph) {
	const points, hidden, classes, steps = 64, 16, 4, 30
	x := make([]float32, 2*points)
	targets := make([]int32, points)
	for i := range targets {
		a, b := g.between(-1, 1), g.between(-1, 1)
		x[2*i], x[2*i+1] = a, b
		if a > 0 {
			targets[i]++
		}
		if b > 0 {
			targets[i] += 2
		}
	}
	in := g.upload(f32s([]int{points, 2}, x...))
	want := g.upload(operand{program.Type{DType: compute.Int32, Shape: []int{points}}, targets})
	dloss := g.apply(catalogue.Fill, program.Attr{Scalars: []float32{1.0 / points}, Options: compute.FillOptions{Shape: []int{points}}})
	scored := program.Attr{Options: compute.CrossEntropyOptions{}}
	product := func(o compute.MatMulOptions, a, b program.Slot) program.Slot {
		return g.apply(catalogue.MatMul, program.Attr{Options: o}, a, b)
	}
	parameter := func(rows, cols int) []program.Slot {
		zeros := func() operand { return f32s([]int{rows, cols}, make([]float32, rows*cols)...) }
		return []program.Slot{g.upload(g.floats(-1, 1, rows, cols)), g.upload(zeros()), g.upload(zeros())}
	}
	first, second := parameter(2, hidden), parameter(hidden, classes)
	for step := range steps {
		before := product(compute.MatMulOptions{}, in, first[0])
		between := g.apply(catalogue.ReLU, program.Attr{}, before)
		logits := product(compute.MatMulOptions{}, between, second[0])
		g.read(g.apply(catalogue.Mean, program.Attr{Options: compute.AllAxes}, g.apply(catalogue.CrossEntropy, scored, logits, want)))
		dlogits := g.apply(catalogue.CrossEntropyBackward, scored, logits, want, dloss)
		dsecond := product(compute.MatMulOptions{TransA: true}, between, dlogits)
		dbetween := product(compute.MatMulOptions{TransB: true}, dlogits, second[0])
		dfirst := product(compute.MatMulOptions{TransA: true}, in, g.apply(catalogue.ReLUBackward, program.Attr{}, before, dbetween))
		adam := program.Attr{Options: compute.AdamOptions{LR: 0.1, Step: step + 1}}
		first, second = g.applyAll(catalogue.Adam, adam, append(first, dfirst)...), g.applyAll(catalogue.Adam, adam, append(second, dsecond)...)
	}
	io := g.run()
	begin, end := io.Read[0].([]float32)[0], io.Read[steps-1].([]float32)[0]
	require.Less(g, end, begin/2, "%s: the loss was %v and is %v after %d steps", g.d.name, begin, end, steps)
}
