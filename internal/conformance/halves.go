package conformance

import (
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

func init() {
	byName["vecmat"] = func(b *builder) { vectorCases(b, false) }
	largeByName["vecmat"] = func(b *builder) {
		b.integers(program.Attr{}, []int{2_000_000}, []int{2_000_000, 3})
		b.typed("", program.Attr{}, b.numbers(true, []int{3, 4001}, []int{4001, 5000}), compute.Float32, compute.Float16).exact = true
	}
}

// as rounds float32 values to another element type.
func (o operand) as(d compute.DType) operand {
	x := o.data.([]float32)
	out := operand{Type: program.Type{DType: d, Shape: o.Shape}}
	switch d {
	case compute.Float16:
		halves := make([]compute.F16, len(x))
		for i, v := range x {
			halves[i] = compute.F16(float16.Fromfloat32(v).Bits())
		}
		out.data = halves
	case compute.Uint32: // a packed cache
		n := len(o.Shape)
		rows := program.F32(o.Shape[:n-2]...).Len()
		m, err := quant.QuantizeMatrix(quant.Type(catalogue.CacheFormat), rows, o.Shape[n-2]*o.Shape[n-1], x, quant.Options{})
		if err != nil {
			panic(err)
		}
		p, err := quant.Pack(m)
		if err != nil {
			panic(err)
		}
		out.Shape, out.data = append(slices.Clone(o.Shape[:n-2]), p.Shape()[1]), p.Words
	case compute.Uint8:
		bytes := make([]uint8, len(x))
		for i, v := range x {
			bytes[i] = uint8(reference.Rounded(float64(v), d))
		}
		out.data = bytes
	case compute.BFloat16:
		halves := make([]compute.BF16, len(x))
		for i, v := range x {
			halves[i] = compute.BF16Of(v)
		}
		out.data = halves
	default:
		return o
	}
	return out
}

// typed is a case whose operands have these element types; those that types does not name stay Float32.
func (b *builder) typed(note string, a program.Attr, inputs func(r *source) []operand, types ...compute.DType) *testCase {
	return b.add(note, a, func(r *source) []operand {
		in := inputs(r)
		for i, d := range types {
			in[i] = in[i].as(d)
		}
		return in
	})
}

// numbers makes operands from the entry's domain, or small integers.
func (b *builder) numbers(exact bool, shapes ...[]int) func(r *source) []operand {
	return func(r *source) []operand {
		var in []operand
		for _, s := range shapes {
			if exact {
				in = append(in, r.integers(-4, 4, s...))
			} else {
				in = append(in, r.domain(b.Entry, s...))
			}
		}
		return in
	}
}

// halfMatmulCases are of operands and results of 16 bits, and of the precisions.
func halfMatmulCases(b *builder) {
	nn, nt := compute.MatMulOptions{}, compute.MatMulOptions{TransB: true}
	tn, tt := compute.MatMulOptions{TransA: true}, compute.MatMulOptions{TransA: true, TransB: true}
	for _, d := range []compute.DType{compute.Float16, compute.BFloat16} {
		add := func(note string, o compute.MatMulOptions, exact bool, shapes ...[]int) *testCase {
			c := b.typed(note, program.Attr{Options: o}, b.numbers(exact, shapes...), d, d)
			c.exact = exact
			return c
		}
		for i, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {4, 8, 12}, {17, 33, 9}, {65, 66, 67}, {64, 64, 64}, {130, 35, 129},
			{1, 257, 33}, {33, 130, 1}, {2, 264, 261}, {5, 64, 40}, {8, 131, 63}, {3, 0, 5}, {0, 3, 4}, {16, 2048, 16}, {130, 328, 72}} {
			for j, o := range []compute.MatMulOptions{nn, nt, tn, tt} {
				if j < 2 || i%4 == j {
					add("", o, i%2 == 0, matmulShapes(s, o, nil, nil)...)
				}
			}
		}
		for _, o := range []compute.MatMulOptions{tn, tt} { // rows at multiples of 16 bytes
			add("", o, true, matmulShapes([3]int{16, 24, 40}, o, nil, nil)...)
		}
		for i, o := range []compute.MatMulOptions{nn, nt, tt} {
			o.Result, o.Act = d, []compute.Activation{compute.NoActivation, compute.GELU, compute.ReLU}[i]
			if o.Act == compute.GELU { // a batch whose depths are cut up
				add("", o, false, append(matmulShapes([3]int{33, 325, 70}, o, []int{3}, []int{3}), []int{70})...)
			}
			add("", o, false, append(matmulShapes([3]int{9, 34, 21}, o, []int{3}, [][]int{nil, {3}, {3}}[i]), []int{21})...)
		}
		o := nn
		o.Result = d
		add("beyond the largest half", o, false, []int{1, 1}, []int{1, 3}).inputs = func(*source) []operand {
			return []operand{f32s([]int{1, 1}, 300).as(d), f32s([]int{1, 3}, 300, -300, 200).as(d)}
		}
		c := add("", o, true, []int{21, 21}, []int{21, 21})
		b.again(c, inPlace)
		b.again(c, shifted)
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		b.typed("NaN and Inf stay in their rows and columns", program.Attr{Options: nn}, func(r *source) []operand {
			return []operand{r.integers(1, 4, 9, 33).set(inf, 8*33+32).set(nan, 16), r.integers(1, 4, 33, 11).set(-inf, 32*11+1)}
		}, d, d).exact = true
		b.typed("subnormal halves", program.Attr{Options: nn}, func(r *source) []operand {
			return []operand{r.floats(-6e-5, 6e-5, 3, 40), r.floats(-1, 1, 40, 5)}
		}, d, d)
		for _, s := range [][]int{{5, 6, 7}, {1, 100, 35}, {66, 40, 65}} { // of Float32
			b.random("", program.Attr{Options: o}, matmulShapes([3]int(s), o, nil, nil)...)
		}
	}
	for _, p := range []compute.Precision{compute.TF32, compute.FP32Tensor} {
		for i, s := range [][3]int{{65, 66, 67}, {128, 64, 96}, {1, 64, 33}, {3, 1030, 17}, {65, 325, 70}} {
			o := []compute.MatMulOptions{nn, nt, tn, tt}[i%4]
			o.Precision = p
			b.random("", program.Attr{Options: o}, matmulShapes(s, o, nil, nil)...)
			b.integers(program.Attr{Options: o}, matmulShapes(s, o, nil, nil)...)
		}
	}
}

// vectorCases are of vecmat, and of what matvec has in common with it: matrices of every element type, and rows of vectors.
func vectorCases(b *builder, transposed bool) {
	shapes := func(rows, k, n int) [][]int {
		x, a := []int{rows, k}, []int{k, n}
		if rows == 0 {
			x = x[1:]
		}
		if transposed {
			return [][]int{{n, k}, x}
		}
		return [][]int{x, a}
	}
	types := func(d compute.DType) []compute.DType {
		if transposed {
			return []compute.DType{d}
		}
		return []compute.DType{compute.Float32, d}
	}
	for _, d := range []compute.DType{compute.Float32, compute.Float16, compute.BFloat16} {
		// Rows of 0 are one vector without an axis for rows.
		for i, s := range [][3]int{{0, 1, 1}, {0, 5, 3}, {0, 3, 5}, {0, 64, 33}, {0, 33, 64}, {0, 129, 130}, {0, 257, 256}, {0, 0, 4}, {0, 4, 0},
			{0, 1030, 7}, {0, 7, 1030}, {0, 2052, 12}, {1, 40, 41}, {2, 63, 34}, {3, 64, 65}, {4, 256, 20}, {5, 33, 19}, {8, 136, 72}, {7, 12, 300}, {9, 50, 51}, {17, 24, 33}} {
			for _, exact := range []bool{i%2 == 0, true} {
				b.typed("", program.Attr{}, b.numbers(exact, shapes(s[0], s[1], s[2])...), types(d)...).exact = exact
				if exact {
					break
				}
			}
		}
		b.typed("NaN and Inf stay where they are", program.Attr{}, func(r *source) []operand {
			in := b.numbers(true, shapes(2, 70, 37)...)(r)
			matrix := in[slices.Index([]bool{true, false}, transposed)]
			for i := range matrix.data.([]float32) {
				matrix.data.([]float32)[i] = float32(1 + i%3)
			}
			vectors := in[slices.Index([]bool{false, true}, transposed)]
			for i := range vectors.data.([]float32) {
				vectors.data.([]float32)[i] = float32(1 + i%4)
			}
			matrix.set(float32(math.Inf(-1)), 0).set(float32(math.NaN()), 70*37-1)
			return in
		}, types(d)...).exact = true
	}
	if !transposed {
		c := b.integers(program.Attr{}, shapes(0, 66, 66)...)
		b.again(c, inPlace)
		b.again(c, shifted)
	}
}

// halfCastCases are of every pair of element types with BFloat16, Uint8 or two halves, beyond what castCases has.
func halfCastCases(b *builder) {
	to := func(d compute.DType) program.Attr { return program.Attr{Options: compute.CastOptions{To: d}} }
	types := []compute.DType{compute.Float32, compute.Float16, compute.BFloat16, compute.Uint8}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	edges := []float32{nan, math.Float32frombits(0x7f800001), math.Float32frombits(0xffffffff), inf, -inf, 0, 1, -1, math.MaxFloat32, -math.MaxFloat32,
		0x1.fep127, 0x1.ffp127, 0x1.fefffep127, 0x1p-126, -0x1p-126, 0x1.8p-127, 0x1p-133, 0x1p-134, 0x1p-149,
		1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-23, 1 + 0x1p-8 - 0x1p-23, 1 + 3*0x1p-8, 257, 259, -257, 514, 518, 0.1, 65504, 65519, 65520, 0x1p-24, 0x1p-25, 3e-8,
		0.5, 0x1.fffffep-2, 1.5, 2.5, 126.5, 127.5, 254.5, 0x1.fd0002p7, 255, 255.5, 256, -0.5, -3, 77, 78, 79} // of bytes
	b.given("edges", to(compute.BFloat16), vector(edges...))
	b.given("edges", to(compute.BFloat16), vector(edges[1:]...))
	for _, from := range types {
		for _, d := range types {
			if from <= compute.Float16 && d <= compute.Float16 && from != d {
				continue // neither is BFloat16 or Uint8: castCases has them
			}
			for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 255, 1025} {
				if from == compute.Float32 {
					b.random("", to(d), []int{n})
				} else {
					b.add("", to(d), func(r *source) []operand { return []operand{r.words(from, n)} })
				}
			}
			b.typed("edges", to(d), func(*source) []operand { return []operand{vector(edges...)} }, from)
			c := b.typed("", to(d), func(r *source) []operand { return []operand{r.floats(-4, 4, 101)} }, from)
			if from == d {
				b.again(c, inPlace)
				b.again(c, shifted)
			}
		}
	}
	all, halves := make([]compute.BF16, 65536), make([]compute.F16, 65536)
	for i := range all {
		all[i], halves[i] = compute.BF16(i), compute.F16(i)
	}
	every := operand{program.Type{DType: compute.BFloat16, Shape: []int{65536}}, all}
	b.given("every bf16", to(compute.Float32), every)
	b.given("every bf16", to(compute.Float16), every)
	bytes := make([]uint8, 256)
	for i := range bytes {
		bytes[i] = uint8(i)
	}
	for _, d := range types {
		b.given("every byte", to(d), operand{program.Type{DType: compute.Uint8, Shape: []int{16, 16}}, bytes})
	}
	b.given("every half", to(compute.BFloat16), operand{program.Type{DType: compute.Float16, Shape: []int{65536}}, halves})
}
