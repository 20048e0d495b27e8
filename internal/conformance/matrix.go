package conformance

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["matmul"] = matmulCases
	byName["matvec"] = matvecCases
	byName["conv2d"] = convCases
	byName["max_pool2d"] = poolCases
	byName["avg_pool2d"] = poolCases
}

var activations = []compute.Activation{compute.ReLU, compute.GELU, compute.GELUErf, compute.SiLU, compute.Sigmoid, compute.Tanh}

// matmulSizes are m, k, n: vectors, empty sides, K of every remainder, tiles and their neighbours, and the shapes that call
// for splitting K.
var matmulSizes = [][3]int{
	{1, 1, 1}, {1, 7, 1}, {1, 1000, 1}, {1, 1, 9}, {9, 1, 1}, {5, 1, 7}, {0, 3, 4}, {3, 4, 0}, {3, 0, 4}, {1, 0, 1}, {0, 0, 0},
	{1, 257, 300}, {300, 257, 1}, {1, 64, 1025}, {1025, 63, 1}, {2, 3, 2}, {3, 2, 5}, {4, 4, 4}, {4, 5, 8}, {8, 6, 4}, {12, 7, 20},
	{3, 3, 3}, {5, 5, 5}, {7, 7, 7}, {8, 8, 8}, {9, 9, 9}, {15, 15, 15}, {16, 16, 16}, {17, 17, 17}, {31, 31, 31}, {32, 32, 32},
	{33, 33, 33}, {63, 63, 63}, {64, 64, 64}, {65, 65, 65}, {127, 5, 129}, {128, 128, 128}, {129, 130, 127},
	{64, 9, 1}, {1, 9, 64}, {65, 16, 4}, {4, 16, 65}, {128, 8, 64}, {5, 4099, 3}, {2, 20000, 2}, {33, 1030, 65}, {16, 2048, 16}, {257, 3, 259},
}

func matmulCases(b *builder) {
	transposed := []compute.MatMulOptions{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}}
	for _, s := range matmulSizes {
		for i, o := range transposed {
			if s[0]*s[1]*s[2] > 1e6 && i%3 != 0 {
				continue
			}
			b.random("", program.Attr{Options: o}, matmulShapes(s, o, nil, nil)...)
			b.integers(program.Attr{Options: o}, matmulShapes(s, o, nil, nil)...)
		}
	}
	leading := []struct{ a, b []int }{{[]int{2}, []int{2}}, {[]int{3, 2}, []int{3, 2}}, {[]int{1}, []int{1}}, {[]int{3}, nil}, {nil, []int{3}},
		{[]int{2, 1, 2}, nil}, {[]int{0}, []int{0}}, {[]int{0}, nil}, {[]int{2, 1, 1, 2, 1, 3}, []int{2, 1, 1, 2, 1, 3}}}
	for _, l := range leading {
		for _, o := range transposed {
			b.integers(program.Attr{Options: o}, matmulShapes([3]int{5, 7, 6}, o, l.a, l.b)...)
			b.random("", program.Attr{Options: o}, matmulShapes([3]int{33, 17, 34}, o, l.a, l.b)...)
			b.random("", program.Attr{Options: o}, append(matmulShapes([3]int{4, 8, 12}, o, l.a, l.b), []int{12})...)
		}
	}
	for _, s := range [][3]int{{1, 65, 1}, {300, 17, 1}, {1, 300, 33}, {3, 0, 4}} { // batches of vectors
		b.integers(program.Attr{Options: compute.MatMulOptions{}}, matmulShapes(s, compute.MatMulOptions{}, []int{4}, []int{4})...)
		b.integers(program.Attr{Options: compute.MatMulOptions{}}, matmulShapes(s, compute.MatMulOptions{}, []int{4}, nil)...)
	}
	b.random("a batch of many", program.Attr{Options: compute.MatMulOptions{}}, []int{1000, 3, 2}, []int{1000, 2, 3})
	b.integers(program.Attr{Options: compute.MatMulOptions{}}, []int{33, 9}, []int{9, 34}, []int{34})
	for _, act := range append(activations, compute.NoActivation) {
		for _, s := range [][3]int{{5, 6, 7}, {1, 300, 33}, {66, 65, 68}, {300, 17, 1}, {3, 0, 5}, {2, 5000, 3}, {64, 64, 64}} {
			o := compute.MatMulOptions{Act: act}
			b.random("", program.Attr{Options: o}, matmulShapes(s, o, nil, nil)...)
			b.random("", program.Attr{Options: o}, append(matmulShapes(s, o, nil, nil), []int{s[2]})...)
		}
		o := compute.MatMulOptions{Act: act, TransB: true}
		b.random("", program.Attr{Options: o}, append(matmulShapes([3]int{9, 10, 11}, o, []int{3}, []int{3}), []int{11})...)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, s := range [][3]int{{5, 7, 6}, {33, 65, 35}, {1, 70, 67}, {67, 70, 1}, {130, 6, 130}, {2, 5000, 3}} {
		for _, act := range []compute.Activation{compute.NoActivation, compute.ReLU, compute.GELU} {
			b.add("NaN and Inf stay in their rows and columns", program.Attr{Options: compute.MatMulOptions{Act: act}}, func(r *source) []operand {
				m, k, n := s[0], s[1], s[2]
				x, y := r.integers(1, 4, m, k), r.integers(1, 4, k, n)
				x.set(inf, (m-1)*k+k-1)
				if m > 2 {
					x.set(nan, k/2)
				}
				if n > 2 {
					y.set(-inf, (k-1)*n+1)
				}
				return []operand{x, y}
			}).exact = act == compute.NoActivation
		}
	}
	b.random("one value for both operands", program.Attr{Options: compute.MatMulOptions{}}, []int{33, 33}, []int{33, 33}).same = true
	b.random("one value for both operands", program.Attr{Options: compute.MatMulOptions{TransB: true}}, []int{21, 34}, []int{21, 34}).same = true
	halfMatmulCases(b)
	c := b.integers(program.Attr{Options: compute.MatMulOptions{}}, []int{20, 20}, []int{20, 20})
	b.again(c, inPlace)
	b.again(c, shifted)
}

func matmulShapes(s [3]int, o compute.MatMulOptions, leadA, leadB []int) [][]int {
	x, y := []int{s[0], s[1]}, []int{s[1], s[2]}
	if o.TransA {
		slices.Reverse(x)
	}
	if o.TransB {
		slices.Reverse(y)
	}
	return [][]int{append(slices.Clone(leadA), x...), append(slices.Clone(leadB), y...)}
}

// integers adds a case whose sums of products are exact.
func (b *builder) integers(a program.Attr, shapes ...[]int) *testCase {
	c := b.add("small integers", a, func(r *source) []operand {
		in := make([]operand, len(shapes))
		for i, s := range shapes {
			in[i] = r.integers(-4, 4, s...)
		}
		return in
	})
	c.exact = true
	return c
}

func matvecCases(b *builder) {
	none := program.Attr{}
	for i, n := range lengths {
		if n > 5000 {
			continue
		}
		b.integers(none, []int{n, 3}, []int{3})
		b.integers(none, []int{3, n}, []int{n})
		b.random("", none, []int{n, lengths[(i*7)%24]}, []int{lengths[(i*7)%24]})
	}
	for _, s := range [][2]int{{70000, 3}, {3, 70000}, {1, 65537}, {65537, 1}, {513, 511}, {0, 0}, {0, 5}, {5, 0}, {1, 1}, {1000, 64}} {
		b.random("", none, []int{s[0], s[1]}, []int{s[1]})
		b.integers(none, []int{s[0], s[1]}, []int{s[1]})
	}
	b.add("NaN and Inf stay in their rows", none, func(r *source) []operand {
		return []operand{r.integers(1, 4, 9, 131).set(float32(math.NaN()), 130, 131*4).set(float32(math.Inf(-1)), 131*7+130), r.integers(1, 4, 131)}
	}).exact = true
	vectorCases(b, true)
	c := b.integers(none, []int{65, 66}, []int{66})
	b.again(c, inPlace)
	b.again(c, shifted)
}

func convCases(b *builder) {
	type sizes struct {
		x, w []int
		o    compute.Conv2DOptions
	}
	two := [2]int{2, 2}
	all := []sizes{
		{[]int{8, 9}, []int{3, 3}, compute.Conv2DOptions{}},
		{[]int{8, 9}, []int{3, 3}, compute.Conv2DOptions{Pad: [2]int{1, 1}}},
		{[]int{1, 1}, []int{1, 1}, compute.Conv2DOptions{}},
		{[]int{5, 5}, []int{5, 5}, compute.Conv2DOptions{}},
		{[]int{3, 70}, []int{1, 7}, compute.Conv2DOptions{Pad: [2]int{0, 3}}},
		{[]int{70, 3}, []int{7, 1}, compute.Conv2DOptions{Pad: [2]int{3, 0}}},
		{[]int{2, 2}, []int{4, 4}, compute.Conv2DOptions{Pad: two}},
		{[]int{2, 2}, []int{2, 2}, compute.Conv2DOptions{Pad: [2]int{5, 4}}}, // windows of nothing but padding
		{[]int{129, 65}, []int{3, 5}, compute.Conv2DOptions{Stride: two}},
		{[]int{1, 3, 8, 8}, []int{4, 3, 3, 3}, compute.Conv2DOptions{}},
		{[]int{2, 3, 9, 7}, []int{5, 3, 3, 2}, compute.Conv2DOptions{Stride: [2]int{2, 1}, Pad: [2]int{1, 0}}},
		{[]int{2, 3, 11, 12}, []int{4, 3, 3, 3}, compute.Conv2DOptions{Dilation: [2]int{2, 3}}},
		{[]int{1, 2, 13, 13}, []int{3, 2, 3, 3}, compute.Conv2DOptions{Stride: [2]int{3, 2}, Pad: two, Dilation: two}},
		{[]int{2, 4, 6, 6}, []int{6, 2, 3, 3}, compute.Conv2DOptions{Groups: 2, Pad: [2]int{1, 1}}},
		{[]int{1, 6, 7, 5}, []int{6, 1, 3, 3}, compute.Conv2DOptions{Groups: 6, Pad: [2]int{1, 1}}},
		{[]int{1, 3, 7, 5}, []int{6, 1, 3, 3}, compute.Conv2DOptions{Groups: 3}},
		{[]int{2, 17, 5, 6}, []int{9, 17, 1, 1}, compute.Conv2DOptions{}},
		{[]int{1, 65, 4, 4}, []int{33, 65, 1, 1}, compute.Conv2DOptions{Stride: two}},
		{[]int{1, 16, 17, 17}, []int{33, 16, 3, 3}, compute.Conv2DOptions{Pad: [2]int{1, 1}}},
		{[]int{3, 1, 28, 28}, []int{8, 1, 5, 5}, compute.Conv2DOptions{}},
		{[]int{1, 1, 300, 3}, []int{1, 1, 2, 3}, compute.Conv2DOptions{Stride: [2]int{7, 9}}},
		{[]int{0, 3, 8, 8}, []int{4, 3, 3, 3}, compute.Conv2DOptions{}},
		{[]int{2, 3, 8, 8}, []int{0, 3, 3, 3}, compute.Conv2DOptions{}},
		{[]int{2, 0, 4, 4}, []int{3, 0, 3, 3}, compute.Conv2DOptions{}},
		{[]int{1, 1, 0, 0}, []int{1, 1, 2, 2}, compute.Conv2DOptions{Pad: two}},
	}
	bias := func(s sizes) []int {
		if len(s.x) == 2 {
			return []int{1}
		}
		return []int{s.w[0]}
	}
	for _, s := range all {
		a := program.Attr{Options: s.o}
		b.random("", a, s.x, s.w)
		b.integers(a, s.x, s.w)
		b.integers(a, s.x, s.w, bias(s))
	}
	for _, act := range append(activations, compute.NoActivation) {
		for _, s := range []sizes{all[1], all[10], all[14], all[18], all[23]} {
			s.o.Act = act
			b.random("", program.Attr{Options: s.o}, s.x, s.w)
			b.random("", program.Attr{Options: s.o}, s.x, s.w, bias(s))
		}
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, s := range []sizes{all[1], all[10], all[13], all[18], all[7]} {
		b.add("NaN and Inf reach only their windows", program.Attr{Options: s.o}, func(r *source) []operand {
			x := r.integers(1, 4, s.x...).set(nan, 0).set(inf, program.Len(s.x)-1)
			return []operand{x, r.integers(1, 4, s.w...)}
		}).exact = true
		b.add("an infinite weight over padding", program.Attr{Options: s.o}, func(r *source) []operand {
			return []operand{r.integers(1, 4, s.x...), r.integers(1, 4, s.w...).set(inf, 0)}
		}).exact = true
	}
	c := b.integers(program.Attr{Options: compute.Conv2DOptions{Pad: [2]int{1, 1}}}, []int{12, 12}, []int{3, 3})
	b.again(c, inPlace)
	b.again(c, shifted)
	b.random("one value for both operands", program.Attr{Options: compute.Conv2DOptions{}}, []int{7, 7}, []int{7, 7}).same = true
}

func poolCases(b *builder) {
	shapes := [][]int{{8, 9}, {7, 7}, {1, 5, 6}, {2, 3, 9, 8}, {2, 1, 2, 1, 2, 1, 6, 7}, {65, 129}, {3, 0, 6, 6}}
	options := []compute.PoolOptions{
		{Size: [2]int{2, 2}}, {Size: [2]int{1, 1}}, {Size: [2]int{3, 3}, Stride: [2]int{1, 1}}, {Size: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}},
		{Size: [2]int{3, 2}, Stride: [2]int{1, 3}, Pad: [2]int{0, 1}}, {Size: [2]int{5, 6}, Stride: [2]int{4, 7}, Pad: [2]int{2, 3}},
		{Size: [2]int{2, 3}, Stride: [2]int{5, 5}}, {Size: [2]int{1, 1}, Stride: [2]int{3, 2}},
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, s := range shapes {
		for _, o := range options {
			a := program.Attr{Options: o}
			if _, err := b.Check([]program.Type{program.F32(s...)}, a); err != nil {
				continue // the window does not fit
			}
			b.random("", a, s)
			b.add("all negative", a, func(r *source) []operand { return []operand{r.floats(-4, -1, s...)} }) // padding must not win
			b.add("NaN and Inf", a, func(r *source) []operand {
				x := r.integers(-8, 8, s...)
				if n := program.Len(s); n > 0 {
					x.set(nan, n/3).set(inf, n-1).set(-inf, 0)
				}
				return []operand{x}
			})
		}
	}
	whole := program.Attr{Options: compute.PoolOptions{Size: [2]int{64, 65}}}
	b.random("one window", whole, []int{3, 64, 65})
	b.add("all -Inf", program.Attr{Options: options[3]}, func(r *source) []operand { return []operand{fillWith(r.floats(0, 1, 9, 9), -inf)} })
	c := b.random("", program.Attr{Options: options[3]}, []int{33, 35})
	b.again(c, inPlace)
	b.again(c, shifted)
}
