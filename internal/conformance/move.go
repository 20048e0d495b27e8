package conformance

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	for name, f := range map[string]func(b *builder){"transpose": transposeCases, "slice": sliceCases, "pad": padCases,
		"concat": concatCases, "embedding": embeddingCases, "copy": copyCases, "reshape": reshapeCases, "fill": fillCases, "cast": castCases} {
		byName[name] = f
	}
}

// words adds one case for each element type that the entry's last input takes.
func (b *builder) words(a program.Attr, shapes ...[]int) (f32 *testCase) {
	dtypes := b.Inputs[len(b.Inputs)-1].Types
	if dtypes == nil {
		dtypes = []compute.DType{compute.Float32}
	}
	for _, d := range dtypes {
		c := b.add("", a, func(r *source) []operand {
			in := make([]operand, len(shapes))
			for i, s := range shapes {
				in[i] = r.words(d, s...)
			}
			return in
		})
		if d == compute.Float32 {
			f32 = c
		}
	}
	return f32
}

// bothAliases repeats a case in place and overlapping.
func (b *builder) bothAliases(c *testCase) {
	b.again(c, inPlace)
	b.again(c, shifted)
}

func transposeCases(b *builder) {
	for _, s := range [][]int{{1, 1}, {1, 5}, {5, 1}, {0, 3}, {3, 0}, {3, 4}, {7, 8}, {8, 9}, {15, 17}, {16, 16}, {31, 33}, {32, 32}, {33, 31},
		{63, 65}, {64, 64}, {65, 63}, {2, 1000}, {1000, 3}, {2, 3, 4}, {5, 33, 34}, {2, 3, 4, 5}, {70000, 2}} {
		b.words(program.Attr{Options: compute.TransposeOptions{}}, s)
	}
	for _, p := range [][]int{{0}, {0, 1}, {1, 0}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {3, 1, 2, 0}, {1, 0, 3, 2}, {2, 3, 0, 1},
		{4, 3, 2, 1, 0}, {7, 6, 5, 4, 3, 2, 1, 0}, {1, 0, 3, 2, 5, 4, 7, 6}, {0, 7, 1, 6, 2, 5, 3, 4}} {
		dims := []int{3, 4, 2, 5, 1, 3, 2, 2}[:len(p)]
		b.words(program.Attr{Options: compute.TransposeOptions{Perm: p}}, dims)
	}
	for _, heads := range [][]int{{9, 4, 8}, {5, 3, 64}} { // [n, heads, d] and [heads, n, d]
		b.words(program.Attr{Options: compute.TransposeOptions{Perm: []int{1, 0, 2}}}, heads)
	}
	b.words(program.Attr{Options: compute.TransposeOptions{Perm: []int{0, 2, 1, 3}}}, []int{2, 7, 3, 20})
	b.words(program.Attr{Options: compute.TransposeOptions{Perm: []int{}}}, []int{})
	b.words(program.Attr{Options: compute.TransposeOptions{Perm: []int{1, 0}}}, []int{257, 129})
	b.bothAliases(b.words(program.Attr{Options: compute.TransposeOptions{}}, []int{33, 34}))
}

func sliceCases(b *builder) {
	type cut struct{ shape, start, size, step []int }
	for _, c := range []cut{
		{[]int{10}, []int{0}, []int{10}, nil}, {[]int{10}, []int{3}, []int{4}, nil}, {[]int{10}, []int{9}, []int{1}, nil}, {[]int{10}, []int{10}, []int{0}, nil},
		{[]int{10}, []int{9}, []int{10}, []int{-1}}, {[]int{10}, []int{8}, []int{3}, []int{-3}}, {[]int{10}, []int{0}, []int{5}, []int{2}},
		{[]int{10}, []int{1}, []int{3}, []int{4}}, {[]int{10}, []int{0}, []int{1}, []int{10}}, {[]int{10}, []int{9}, []int{1}, []int{-10}},
		{[]int{1025}, []int{1024}, []int{1025}, []int{-1}}, {[]int{65537}, []int{1}, []int{65536}, nil}, {[]int{0}, []int{0}, []int{0}, nil},
		{[]int{}, []int{}, []int{}, nil},
		{[]int{4, 5}, []int{1, 2}, []int{2, 3}, nil}, {[]int{4, 5}, []int{3, 0}, []int{4, 5}, []int{-1, 1}}, {[]int{4, 5}, []int{0, 4}, []int{4, 5}, []int{1, -1}},
		{[]int{4, 5}, []int{3, 4}, []int{2, 3}, []int{-2, -2}}, {[]int{4, 5}, []int{0, 0}, []int{0, 5}, nil}, {[]int{64, 65}, []int{1, 1}, []int{63, 64}, nil},
		{[]int{3, 4, 5}, []int{0, 1, 0}, []int{3, 2, 5}, nil}, {[]int{3, 4, 5}, []int{2, 0, 4}, []int{3, 2, 2}, []int{-1, 3, -4}},
		{[]int{2, 3, 4, 5}, []int{1, 0, 0, 0}, []int{1, 3, 4, 5}, nil}, {[]int{2, 3, 2, 3, 2}, []int{1, 2, 1, 2, 1}, []int{2, 3, 2, 3, 2}, []int{-1, -1, -1, -1, -1}},
		{[]int{2, 3, 2, 3, 2, 3, 2, 3}, []int{1, 0, 0, 2, 1, 2, 0, 0}, []int{2, 2, 1, 3, 1, 2, 2, 2}, []int{-1, 2, 1, -1, 1, -2, 1, 2}},
		{[]int{70000, 3}, []int{69999, 1}, []int{70000, 2}, []int{-1, 1}},
	} {
		b.words(program.Attr{Options: compute.SliceOptions{Start: c.start, Size: c.size, Step: c.step}}, c.shape)
	}
	b.bothAliases(b.words(program.Attr{Options: compute.SliceOptions{Start: []int{299}, Size: []int{300}, Step: []int{-1}}}, []int{300}))
}

func padCases(b *builder) {
	type frame struct{ shape, before, after []int }
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for i, f := range []frame{
		{[]int{}, []int{}, []int{}}, {[]int{5}, []int{0}, []int{0}}, {[]int{5}, []int{3}, []int{0}}, {[]int{5}, []int{0}, []int{4}}, {[]int{0}, []int{2}, []int{3}},
		{[]int{0}, []int{0}, []int{0}}, {[]int{1023}, []int{1}, []int{1}}, {[]int{3, 4}, []int{1, 2}, []int{2, 1}}, {[]int{3, 4}, []int{0, 0}, []int{0, 1}},
		{[]int{3, 0}, []int{1, 1}, []int{0, 2}}, {[]int{63, 65}, []int{1, 0}, []int{0, 1}}, {[]int{2, 3, 4}, []int{1, 0, 2}, []int{0, 1, 0}},
		{[]int{2, 3, 2, 3, 2}, []int{1, 1, 1, 1, 1}, []int{0, 1, 0, 1, 0}}, {[]int{2, 1, 2, 1, 2, 1, 2, 1}, []int{0, 1, 0, 1, 0, 1, 0, 1}, []int{1, 0, 1, 0, 1, 0, 1, 0}},
		{[]int{70000, 1}, []int{1, 1}, []int{1, 1}}, {[]int{1, 1}, []int{300, 200}, []int{100, 150}},
	} {
		for _, v := range []float32{0, -1.5, nan, inf, -inf, math.MaxFloat32, float32(math.Copysign(0, -1))} {
			if v == 0 || i%3 == 1 {
				b.words(program.Attr{Options: compute.PadOptions{Before: f.before, After: f.after, Value: v}}, f.shape)
			}
		}
	}
	b.given("special values", program.Attr{Options: compute.PadOptions{Before: []int{1}, After: []int{2}, Value: 7}}, vector(specials(catalogue.Neg)...))
	b.bothAliases(b.words(program.Attr{Options: compute.PadOptions{Before: []int{2}, After: []int{3}, Value: 9}}, []int{300}))
}

func concatCases(b *builder) {
	for _, c := range []struct {
		axis   int
		shapes [][]int
	}{
		{0, [][]int{{5}}}, {0, [][]int{{5}, {3}}}, {-1, [][]int{{1}, {7}, {1}}}, {0, [][]int{{0}, {3}, {0}}}, {0, [][]int{{0}, {0}}}, {0, [][]int{{1023}, {2}, {1025}}},
		{0, [][]int{{2, 3}, {4, 3}}}, {1, [][]int{{3, 2}, {3, 5}}}, {-1, [][]int{{33, 1}, {33, 64}, {33, 3}}}, {-2, [][]int{{2, 3}, {1, 3}}},
		{1, [][]int{{2, 3, 4}, {2, 1, 4}, {2, 0, 4}, {2, 2, 4}}}, {2, [][]int{{2, 3, 1}, {2, 3, 4}}}, {0, [][]int{{0, 3}, {2, 3}}}, {1, [][]int{{0, 3}, {0, 2}}},
		{3, [][]int{{2, 1, 2, 1, 2, 1, 2, 1}, {2, 1, 2, 3, 2, 1, 2, 1}}}, {-1, [][]int{{70000, 1}, {70000, 2}}},
		{1, slices.Repeat([][]int{{3, 5}}, 9)}, {0, slices.Repeat([][]int{{7}}, 40)}, // more operands than bindings
	} {
		b.words(program.Attr{Options: compute.ConcatOptions{Axis: c.axis}}, c.shapes...)
	}
	b.words(program.Attr{Options: compute.ConcatOptions{Axis: 1}}, []int{4, 5}, []int{4, 5}, []int{4, 5}).same = true
	b.bothAliases(b.words(program.Attr{Options: compute.ConcatOptions{}}, []int{100}, []int{57}))
}

func embeddingCases(b *builder) {
	add := func(note string, vocabulary, width int, ids ...int32) {
		b.shaped(note, vocabulary, width, []int{len(ids)}, ids...)
	}
	add("", 5, 3, 0, 4, 2, 2, 1)
	add("ids out of range", 5, 3, 0, -1, 5, 4, math.MaxInt32, math.MinInt32, 6, -5, 2)
	add("no ids", 5, 3)
	add("no vocabulary", 0, 3, 0, 1, -1)
	add("no width", 5, 0, 0, 1)
	for _, width := range []int{1, 2, 4, 5, 8, 63, 64, 65, 257, 1025} {
		add("", 9, width, 8, 0, 3, -1, 7, 9)
	}
	b.shaped("one id", 7, 6, []int{}, 3)
	b.shaped("", 7, 6, []int{2, 3}, 0, 6, 5, 1, 1, -7)
	b.shaped("", 3, 4, []int{1, 2, 1, 2, 1, 1, 1}, 2, 1, 0, 3)
	b.add("many ids", program.Attr{}, func(r *source) []operand {
		ids := make([]int32, 70000)
		for i := range ids {
			ids[i] = r.Int32N(1100) - 50
		}
		return []operand{r.floats(-4, 4, 1000, 3), {program.Type{DType: compute.Int32, Shape: []int{70000}}, ids}}
	})
	c := b.shaped("", 20, 3, []int{20}, 19, 0, 1, 18, 2, 2, 2, 17, 5, 4, 3, 11, 12, 13, 14, 6, 7, 8, 9, 10)
	b.bothAliases(c)
}

func (b *builder) shaped(note string, vocabulary, width int, shape []int, ids ...int32) *testCase {
	return b.add(note, program.Attr{}, func(r *source) []operand {
		table := r.floats(-4, 4, vocabulary, width)
		if program.Len(table.Shape) > 3 {
			table.set(float32(math.Inf(1)), 0).set(0x1p-149, 2)
		}
		return []operand{table, {program.Type{DType: compute.Int32, Shape: shape}, slices.Clone(ids)}}
	})
}

func copyCases(b *builder) {
	for _, n := range lengths {
		b.words(program.Attr{}, []int{n})
	}
	for _, s := range [][]int{{}, {3, 5}, {0, 4}, {1, 2, 1, 3, 2, 1, 2, 1}} {
		b.words(program.Attr{}, s)
	}
	b.given("special values", program.Attr{}, vector(specials(catalogue.Neg)...))
	b.bothAliases(b.words(program.Attr{}, []int{1001}))
}

func reshapeCases(b *builder) {
	for _, c := range []struct{ from, to []int }{
		{[]int{}, []int{}}, {[]int{}, []int{1}}, {[]int{1}, []int{}}, {[]int{6}, []int{2, 3}}, {[]int{2, 3}, []int{3, 2}}, {[]int{2, 3}, []int{-1}},
		{[]int{4, 5, 6}, []int{5, -1, 2}}, {[]int{0, 3}, []int{3, 0}}, {[]int{0}, []int{5, 0}}, {[]int{3, 0}, []int{0}}, {[]int{7, 11}, []int{11, 7}},
		{[]int{256}, []int{2, 2, 2, 2, 2, 2, 2, 2}}, {[]int{1025}, []int{1, -1, 1}}, {[]int{65537}, []int{65537, 1}},
	} {
		b.words(program.Attr{Options: compute.ReshapeOptions{Shape: c.to}}, c.from)
	}
	b.bothAliases(b.words(program.Attr{Options: compute.ReshapeOptions{Shape: []int{-1, 11}}}, []int{11, 13}))
}

func fillCases(b *builder) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	values := append(slices.Clone(b.Scalars[0].Test), nan, inf, -inf, math.MaxFloat32, 1e-40)
	for i, s := range [][]int{nil, {}, {1}, {3}, {4}, {5}, {255}, {257}, {1025}, {65537}, {0}, {3, 0}, {3, 5}, {64, 65}, {1, 2, 1, 3, 2, 1, 2, 1}} {
		for _, v := range values {
			if i%4 == 1 || v == 1 {
				b.given("", program.Attr{Scalars: []float32{v}, Options: compute.FillOptions{Shape: s}})
			}
		}
	}
}

func castCases(b *builder) {
	half, single := program.Attr{Options: compute.CastOptions{To: compute.Float16}}, program.Attr{Options: compute.CastOptions{To: compute.Float32}}
	for _, n := range lengths {
		b.random("", half, []int{n})
		for _, a := range []program.Attr{half, single} {
			b.add("", a, func(r *source) []operand { return []operand{r.words(compute.Float16, n)} })
		}
		b.random("", single, []int{n})
	}
	for _, s := range [][]int{{}, {3, 5}, {0, 4}, {1, 2, 1, 3, 2, 1, 2, 1}, {7, 11}} {
		b.random("", half, s)
		b.add("", single, func(r *source) []operand { return []operand{r.words(compute.Float16, s...)} })
	}
	all := make([]compute.F16, 65536)
	for i := range all {
		all[i] = compute.F16(i)
	}
	b.given("every half", single, operand{program.Type{DType: compute.Float16, Shape: []int{65536}}, all})
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	edges := []float32{nan, inf, -inf, 0, 1, -1, 65504, -65504, 65505, 65519, 65519.996, 65520, 65536, -65520, 1e6, math.MaxFloat32, -math.MaxFloat32,
		0x1p-14, 0x1p-14 * 1.5, 0x1p-15, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-26, 0x1p-149, -0x1p-24, // subnormal halves and below
		1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-23, 1 + 0x1p-11 - 0x1p-23, 1 + 3*0x1p-11, 2049, 2051, -2049, 4098, 4102, 0.1, 1.0 / 3} // ties to even
	b.given("edges", half, vector(edges...))
	b.given("edges", half, vector(edges[1:]...))
	b.add("all magnitudes", half, func(r *source) []operand {
		x := make([]float32, 4001)
		for i := range x {
			x[i] = float32(math.Copysign(math.Exp2(r.Float64()*34-16), r.Float64()-0.5))
		}
		return []operand{vector(x...)}
	})
	b.bothAliases(b.random("", single, []int{101}))
	halfCastCases(b)
}
