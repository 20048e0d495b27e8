package conformance

import (
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["swiglu"] = func(b *builder) {
		// Where silu is less than the least normal number, it may count as 0.
		tiny := []float32{-87.4, -88, -104}
		values := slices.DeleteFunc(specials(b.Entry), func(v float32) bool { return slices.Contains(tiny, v) })
		broadcastCases(b, binaryShapes, values)
	}
	byName["rope"], byName["rope_backward"] = ropeCases, ropeCases
	byName["bias_activation"] = biasCases
	byName["l2_normalize"] = func(b *builder) { normCases(b, 1, 0, -1) }
	for _, name := range []string{"rms_norm_matvec", "qkv", "gate_up_swiglu"} {
		byName[name] = fusedCases
	}
	byName["gated_rms_norm"] = func(b *builder) { normCases(b, 2, 1, 1) }
	byName["add_rms_norm"] = func(b *builder) { normCases(b, 2, 1, 1) }
	byName["add_layer_norm"] = func(b *builder) { normCases(b, 2, 2, 1) }
	byName["rms_norm_backward"] = func(b *builder) { normCases(b, 1, 1, 2) }
	byName["layer_norm_backward"] = func(b *builder) { normCases(b, 1, 2, 3) }

	largeByName["rope"] = func(b *builder) {
		b.rope("", compute.RopeOptions{}, 1, false, 70_000, 1, 16)
		b.rope("", compute.RopeOptions{NeoX: true, Precise: true}, 1<<20, true, 300, 9, 130)
	}
	largeByName["rope_backward"] = func(b *builder) { b.rope("", compute.RopeOptions{}, 5000, true, 20_000, 3, 12) }
	largeByName["bias_activation"] = func(b *builder) {
		b.random("", program.Attr{Options: compute.BiasActivationOptions{Act: compute.ReLU}}, []int{70_000, 9}, []int{9})
		b.random("", program.Attr{Options: compute.BiasActivationOptions{}}, []int{3, 100_000}, []int{100_000})
	}
	largeByName["rms_norm_matvec"] = func(b *builder) { b.fused("", compute.Float32, false, 1, 8, 70_000) }
	largeByName["qkv"] = func(b *builder) { b.fused("", compute.Float16, true, 2, 16, 5000, 700, 3) }
	largeByName["gate_up_swiglu"] = func(b *builder) { b.fused("", compute.BFloat16, false, 1, 100_000, 3, 3) }
	largeByName["gated_rms_norm"] = func(b *builder) { largeNorms(b, 2, 1) }
	largeByName["add_rms_norm"] = func(b *builder) { largeNorms(b, 2, 1) }
	largeByName["add_layer_norm"] = func(b *builder) { largeNorms(b, 2, 2) }
	largeByName["rms_norm_backward"] = func(b *builder) { largeNorms(b, 1, 1) }
	largeByName["layer_norm_backward"] = func(b *builder) { largeNorms(b, 1, 2) }
}

// rope adds a case of positions up to a largest one, for each token of a batch or for the tokens of all.
func (b *builder) rope(note string, o compute.RopeOptions, largest int32, each bool, shape ...int) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
		lead := shape[:len(shape)-2]
		if !each {
			lead = lead[len(lead)-1:]
		}
		positions := make([]int32, program.Len(lead))
		for i := range positions {
			positions[i] = r.Int32N(2*largest+1) - largest
		}
		if len(positions) > 0 {
			positions[0] = largest
		}
		return []operand{r.domain(b.Entry, shape...), {program.Type{DType: compute.Int32, Shape: lead}, positions}}
	})
}

func ropeCases(b *builder) {
	type o = compute.RopeOptions
	for _, neox := range []bool{false, true} {
		for _, precise := range []bool{false, true} {
			with := func(x o) o {
				x.NeoX, x.Precise = neox, precise
				return x
			}
			b.rope("", with(o{}), 5, false, 1, 1, 2)
			b.rope("", with(o{}), 300, false, 7, 3, 64)
			b.rope("partial", with(o{Dims: 8}), 50, true, 2, 3, 2, 20)
			b.rope("partial, odd", with(o{Dims: 6, Base: 500, Scale: 0.25}), 1000, false, 2, 2, 3, 2, 9)
			b.rope("nothing turns", with(o{Dims: 0}), 9, false, 3, 2, 0)
			c := b.rope("factors", with(o{Dims: 16, Base: 500_000}), 8000, false, 5, 2, 24)
			inputs := c.inputs
			c.inputs = func(r *source) []operand { return append(inputs(r), r.floats(0.5, 32, 8)) }
			c = b.rope("factors of all sizes", with(o{}), 100, false, 2, 1, 16)
			few := c.inputs
			c.inputs = func(r *source) []operand {
				inf, nan := float32(math.Inf(1)), float32(math.NaN())
				return append(few(r), vector(1, 1e-3, 3e4, -2, inf, nan, 1e9, 0.7))
			}
		}
	}
	b.rope("long", o{Precise: true}, 1<<20, false, 5, 1, 128)
	b.rope("long", o{Precise: true, NeoX: true, Base: 1e6, Scale: 8}, math.MaxInt32/2, false, 4, 1, 96)
	b.rope("base 1", o{Precise: true, Base: 1}, 1<<20, false, 4, 1, 6)
	b.rope("many heads", o{NeoX: true}, 100, false, 3, 65, 8)
	b.rope("no token", o{}, 1, false, 0, 2, 4)
	b.rope("no batch", o{}, 1, true, 0, 2, 2, 4)
	b.add("NaN and Inf stay in their pairs", program.Attr{Options: o{}}, func(r *source) []operand {
		x := r.domain(b.Entry, 2, 2, 8).set(float32(math.NaN()), 3).set(float32(math.Inf(1)), 17)
		return []operand{x, {program.Type{DType: compute.Int32, Shape: []int{2}}, []int32{1, 2}}}
	})
	c := b.rope("", o{Dims: 12}, 40, false, 5, 3, 16)
	b.again(c, inPlace)
	b.again(c, shifted)
	b.again(b.rope("", o{NeoX: true}, 40, false, 5, 3, 6), inPlace)
}

func biasCases(b *builder) {
	for i, act := range append(activations, compute.NoActivation) {
		a := program.Attr{Options: compute.BiasActivationOptions{Act: act}}
		b.random("", a, []int{3, 2 + i}, []int{2 + i})
		b.random("", a, []int{2, 33, 16}, []int{16})
	}
	relu := program.Attr{Options: compute.BiasActivationOptions{Act: compute.ReLU}}
	for _, s := range [][]int{{1}, {5}, {0}, {0, 4}, {3, 0}, {1, 1025}, {257, 1}, {2, 4096}} {
		b.random("", relu, s, s[len(s)-1:])
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	b.given("special values", relu, f32s([]int{2, 5}, nan, inf, -inf, -1, 1, inf, 0, -inf, 2, nan), vector(1, -inf, inf, 0.5, nan))
	b.random("one value for both", relu, []int{9}, []int{9}).same = true
	c := b.random("", relu, []int{7, 12}, []int{12})
	b.again(c, inPlace)
	b.again(c, shifted)
}

// norm adds a case with numbers of matrices and vectors; an operand of number last, if there is one, is a matrix again.
func (b *builder) norm(note string, a program.Attr, matrices, vectors int, change func(in []operand), shape ...int) *testCase {
	return b.add(note, a, func(r *source) (in []operand) {
		for i := range b.Inputs {
			s := shape
			if i >= matrices && i < matrices+vectors {
				s = shape[len(shape)-1:]
			}
			in = append(in, r.domain(b.Entry, s...))
		}
		if change != nil {
			change(in)
		}
		return in
	})
}

// normCases are of entries over rows with matrices, then vectors. Special values stand in x and, if there is such an operand,
// in matrix second.
func normCases(b *builder, matrices, vectors, second int) {
	all := attrs(b.Entry, nil)
	for i, s := range [][]int{{1}, {7}, {64}, {3, 5}, {2, 33, 4}, {5, 128}, {65, 3}, {3, 130}, {2, 1025}, {1, 4100}, {9, 2, 8}, {0, 4}, {4, 0},
		{2, 20_001}, {1, 100_000}} {
		b.norm("", all[i%len(all)], matrices, vectors, nil, s...)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, n := range []int{5, 64} {
		for _, v := range []float32{nan, inf, -inf} {
			b.norm("x not finite", all[0], matrices, vectors, func(in []operand) { in[0].set(v, n+2) }, 3, n)
			if second >= 0 && (v != v || b.Name != "layer_norm_backward") { // infinities meet there: who wins is left open
				b.norm("not finite", all[0], matrices, vectors, func(in []operand) { in[second].set(v, n+1) }, 3, n)
			}
		}
		b.norm("a row of zeros", all[0], matrices, vectors, func(in []operand) { clear(in[0].data.([]float32)[n : 2*n]) }, 3, n)
	}
	c := b.norm("", all[0], matrices, vectors, nil, 5, 129)
	b.again(c, inPlace)
	b.again(c, shifted)
}

func largeNorms(b *builder, matrices, vectors int) {
	a := attrs(b.Entry, nil)[0]
	b.norm("", a, matrices, vectors, nil, 66_000, 5)
	b.norm("", a, matrices, vectors, nil, 3, 300_000)
}

// fused adds a case of a fused matmul: x of m × k, and weights with the given numbers of rows.
func (b *builder) fused(note string, d compute.DType, biases bool, m, k int, rows ...int) *testCase {
	return b.add(note, attrs(b.Entry, b.Options)[0], func(r *source) []operand {
		x := []int{m, k}
		if m == 1 && k%2 == 1 {
			x = x[1:]
		}
		in := []operand{r.domain(b.Entry, x...)}
		if b.Name == "rms_norm_matvec" {
			in = append(in, r.floats(-2, 2, k))
		}
		for _, n := range rows {
			w := r.domain(b.Entry, n, k)
			in = append(in, operand{program.Type{DType: d, Shape: []int{n, k}}, rounded(w.data.([]float32), d)})
		}
		for _, n := range rows {
			if biases {
				in = append(in, r.floats(-1, 1, n))
			}
		}
		return in
	})
}

// rounded rounds to an element type.
func rounded(x []float32, d compute.DType) any {
	switch d {
	case compute.Float16:
		h := make([]compute.F16, len(x))
		for i, v := range x {
			h[i] = compute.F16(float16.Fromfloat32(v).Bits())
		}
		return h
	case compute.BFloat16:
		h := make([]compute.BF16, len(x))
		for i, v := range x {
			h[i] = compute.BF16(math.Float32bits(v) >> 16)
		}
		return h
	}
	return x
}

func fusedCases(b *builder) {
	rows := func(n int) []int {
		switch b.Name {
		case "qkv":
			return []int{n, max(n/2, 1), n / 3}
		case "gate_up_swiglu":
			return []int{n, n}
		}
		return []int{n}
	}
	for _, d := range []compute.DType{compute.Float32, compute.Float16, compute.BFloat16} {
		for i, s := range [][3]int{{1, 1, 1}, {1, 64, 33}, {8, 72, 20}, {3, 21, 7}, {11, 40, 9}} {
			b.fused("", d, b.Name == "qkv" && i%2 == 1, s[0], s[1], rows(s[2])...)
		}
	}
	b.fused("deep", compute.Float32, false, 1, 4100, rows(3)...)
	b.fused("deep", compute.Float16, false, 2, 2064, rows(5)...)
	b.fused("no depth", compute.Float32, b.Name == "qkv", 2, 0, rows(3)...)
	b.fused("no rows", compute.Float32, false, 0, 4, rows(3)...)
	b.fused("no weights", compute.Float32, false, 2, 4, rows(0)...)
	c := b.fused("NaN and Inf", compute.Float32, false, 3, 8, rows(5)...)
	inputs := c.inputs
	c.inputs = func(r *source) []operand {
		in := inputs(r)
		in[0].set(float32(math.NaN()), 9)
		in[len(in)-1].set(float32(math.Inf(1)), 1)
		return in
	}
	c = b.fused("", compute.Float32, false, 4, 12, rows(12)...)
	b.again(c, inPlace)
	b.again(c, shifted)
}
