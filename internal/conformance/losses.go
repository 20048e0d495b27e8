package conformance

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["sum_squares"] = sumSquaresCases
	largeByName["sum_squares"] = func(b *builder) { b.random("", program.Attr{Options: compute.AllAxes}, []int{3_000_017}) }
	byName["cumsum"] = cumSumCases
	largeByName["cumsum"] = func(b *builder) {
		b.integers(program.Attr{Options: compute.CumSumOptions{}}, []int{1_500_017})
		b.random("", program.Attr{Options: compute.CumSumOptions{Reverse: true}}, []int{2, 300_001})
		b.integers(program.Attr{Options: compute.CumSumOptions{Exclusive: true}}, []int{300_001, 3})
	}
	byName["top_k"] = topKCases
	largeByName["top_k"] = func(b *builder) {
		b.random("", program.Attr{Options: compute.TopKOptions{K: 64}}, []int{1, 300_007})
		b.random("", program.Attr{Options: compute.TopKOptions{K: 4}}, []int{3000, 64})
	}
	byName["softmax_backward"] = softmaxBackwardCases
	largeByName["softmax_backward"] = func(b *builder) {
		for _, s := range [][]int{{1_000_003}, {2000, 257}} {
			b.random("", program.Attr{}, s, s)
		}
	}
	for _, name := range []string{"cross_entropy", "cross_entropy_backward"} {
		byName[name] = crossEntropyCases
		largeByName[name] = func(b *builder) {
			for _, s := range [][]int{{1_000_003}, {70_001, 3}, {2, 5, 50_257}} {
				b.scores("", compute.CrossEntropyOptions{LabelSmoothing: 0.1}, s...)
			}
		}
	}
}

// sumSquaresCases leave to norm_l2 what both have in common.
func sumSquaresCases(b *builder) {
	all, last := program.Attr{Options: compute.AllAxes}, program.Attr{Options: compute.LastAxis}
	for _, s := range [][]int{{}, {1}, {5}, {257}, {4099}, {65537}, {3, 1000}, {300, 17}, {0}, {2, 3, 4, 5}} {
		b.random("", all, s)
	}
	for _, s := range [][]int{{1025}, {5, 0}, {3, 1000}, {1000, 3}, {3, 65537}} {
		b.random("", last, s)
	}
	b.add("small integers", last, func(r *source) []operand { return []operand{r.integers(-8, 8, 7, 1031)} }).exact = true
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	b.given("special values", last, f32s([]int{5, 3}, 1, nan, 2, 1, -inf, 2, 1e20, 1, 1, 1e-40, 0, 1e-30, 0, 0, 0))
}

func softmaxBackwardCases(b *builder) {
	none := program.Attr{}
	for _, s := range [][]int{{1}, {3, 5}, {4, 64}, {3, 257}, {2, 1025}, {3, 4099}, {2, 100_001}, {1000, 3}, {129, 130}, {2, 3, 4, 5}, {0, 4}, {4, 0}} {
		b.random("", none, s, s)
	}
	b.add("small integers", none, func(r *source) []operand { return []operand{r.integers(-4, 4, 7, 301), r.integers(-4, 4, 7, 301)} }).exact = true
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	b.add("NaN and Inf", none, func(r *source) []operand {
		return []operand{r.floats(0.01, 1, 5, 70).set(nan, 75).set(inf, 150), r.floats(-1, 1, 5, 70).set(nan, 220).set(inf, 300)}
	})
	b.random("one value for both operands", none, []int{3, 65}, []int{3, 65}).same = true
	c := b.random("", none, []int{5, 129}, []int{5, 129})
	b.again(c, inPlace)
	b.again(c, shifted)
}

// scores adds a case of logits from the domain and of targets, most of which are classes; 0 is the one to be ignored.
func (b *builder) scores(note string, o compute.CrossEntropyOptions, shape ...int) *testCase {
	return b.scoresOf(note, o, func(operand) {}, shape...)
}

func (b *builder) scoresOf(note string, o compute.CrossEntropyOptions, change func(logits operand), shape ...int) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
		x := r.domain(b.Entry, shape...)
		change(x)
		rows := shape[:len(shape)-1]
		classes := shape[len(shape)-1]
		targets := make([]int32, program.Len(rows))
		for i := range targets {
			switch r.IntN(20) {
			case 0:
				targets[i] = []int32{-1, int32(classes), math.MinInt32, math.MaxInt32, 0}[r.IntN(5)]
			default:
				targets[i] = r.Int32N(int32(max(classes, 1)))
			}
		}
		in := []operand{x, {program.Type{DType: compute.Int32, Shape: rows}, targets}}
		if len(b.Inputs) == 3 {
			in = append(in, r.floats(-2, 2, rows...))
		}
		return in
	})
}

func crossEntropyCases(b *builder) {
	plain := compute.CrossEntropyOptions{}
	all := compute.CrossEntropyOptions{LabelSmoothing: 0.25, Shift: true, Ignore: true}
	for _, s := range [][]int{{1}, {5}, {3, 5}, {40, 64}, {33, 257}, {7, 1025}, {3, 4099}, {2, 100_001}, {300, 3}, {20, 1}, {2, 3, 4, 5}, {0, 4}, {0, 0}} {
		b.scores("", plain, s...)
	}
	for _, s := range [][]int{{1, 5}, {7, 33}, {3, 9, 65}, {2, 3, 5, 4}, {2, 50_001}, {5, 1, 7}, {2, 0, 4}} {
		b.scores("", all, s...)
	}
	b.scores("", compute.CrossEntropyOptions{LabelSmoothing: 1}, 9, 100)
	b.scores("", compute.CrossEntropyOptions{Ignore: true, IgnoreIndex: -1}, 100, 10)
	b.scores("", compute.CrossEntropyOptions{Shift: true}, 3, 20, 10)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, o := range []compute.CrossEntropyOptions{plain, {LabelSmoothing: 0.1}} {
		b.scoresOf("NaN and Inf", o, func(x operand) {
			x.set(nan, 3).set(inf, 75).set(-inf, 144, 145, 150)
			fillWith(operand{program.F32(70), x.data.([]float32)[210:280]}, -inf)
		}, 6, 70)
		b.scoresOf("large base, small spread", o, func(x operand) {
			for i := range x.data.([]float32) {
				x.data.([]float32)[i] += 1e4
			}
		}, 9, 100)
		b.scoresOf("wide", o, func(x operand) {
			for i := range x.data.([]float32) {
				x.data.([]float32)[i] *= 100
			}
		}, 9, 100)
	}
	if len(b.Inputs) == 3 {
		c := b.scores("", plain, 5, 129)
		b.again(c, inPlace)
		b.again(c, shifted)
	}
}

func cumSumCases(b *builder) {
	all := []program.Attr{{Options: compute.CumSumOptions{}}, {Options: compute.CumSumOptions{Exclusive: true}},
		{Options: compute.CumSumOptions{Reverse: true}}, {Options: compute.CumSumOptions{Exclusive: true, Reverse: true}}}
	for i, n := range []int{0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 255, 257, 1023, 1024, 1025, 4099, 65537} {
		b.random("", all[i%4], []int{n})
	}
	for i, s := range [][]int{{1000, 3}, {3, 1000}, {300, 1}, {2, 100_000}, {7, 5001}, {2, 3, 4, 5}, {0, 4}, {4, 0}, {129, 257}} {
		b.random("", all[i%4], s)
		b.random("", all[(i+2)%4], s)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, a := range all {
		b.integers(a, []int{3, 20_011})
		b.integers(a, []int{200, 33})
		b.add("NaN and Inf", a, func(r *source) []operand {
			return []operand{r.floats(-1, 1, 5, 1030).set(nan, 1031).set(inf, 3000, 5149).set(-inf, 2500, 4000)}
		})
	}
	c := b.random("", all[0], []int{5, 129})
	b.again(c, inPlace)
	b.again(c, shifted)
}

func topKCases(b *builder) {
	attr := func(k int) program.Attr { return program.Attr{Options: compute.TopKOptions{K: k}} }
	for _, c := range []struct{ rows, cols, k int }{{1, 1, 1}, {3, 5, 2}, {7, 33, 33}, {5, 64, 8}, {3, 257, 50}, {2, 1023, 1}, {2, 1025, 300},
		{1, 3000, 1024}, {2, 4099, 40}, {1, 20_011, 7}, {1, 20_011, 1000}, {2, 100_003, 50}, {0, 5, 3}} {
		b.random("", attr(c.k), []int{c.rows, c.cols})
	}
	b.random("", attr(3), []int{2, 3, 1, 9})
	b.random("", attr(2), []int{5})
	given := func(note string, k int, x func(r *source) operand) {
		b.add(note, attr(k), func(r *source) []operand { return []operand{x(r)} })
	}
	for _, c := range [][3]int{{3, 300, 20}, {1, 9000, 1024}, {2, 30_000, 100}} {
		given("many ties", c[2], func(r *source) operand { return r.integers(-8, 8, c[0], c[1]) })
		given("ascending", c[2], func(*source) operand {
			x := f32s([]int{c[0], c[1]}, make([]float32, c[0]*c[1])...)
			for i := range x.data.([]float32) {
				x.data.([]float32)[i] = float32(i)
			}
			return x
		})
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	given("all equal", 300, func(*source) operand { return fillWith(f32s([]int{2, 700}, make([]float32, 1400)...), 3) })
	given("special values", 12, func(*source) operand {
		return f32s([]int{1, 12}, 1, nan, -inf, 0, float32(math.Copysign(0, -1)), inf, nan, -1, 0, -inf, math.MaxFloat32, -math.MaxFloat32)
	})
	given("NaN everywhere", 20, func(*source) operand { return fillWith(f32s([]int{1, 600}, make([]float32, 600)...), nan) })
}
