package conformance

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

func init() {
	byName["dequantize"] = dequantizeCases
	byName["quant_matmul_row_major"] = quantMatmulCases
	byName["quant_matmul_col_major"] = quantColumnCases
	byName["quant_rms_norm_matvec"] = quantFusedCases
	byName["quant_gate_up_swiglu"] = quantFusedCases
	byName["quant_qkv"] = quantQKVCases

	largeByName["dequantize"] = func(b *builder) {
		b.dequantize("", compute.DequantizeOptions{Format: compute.Q8_0}, 300, 65_536, nil)
		b.dequantize("", compute.DequantizeOptions{Format: compute.Q6_K, Result: compute.Float16}, 66_000, 256, []int{70_000})
	}
	largeByName["quant_matmul_row_major"] = func(b *builder) {
		b.quantised("", q8(compute.Q4_K, true), 1, 256, 70_000)
		b.quantised("", q8(compute.Q8_0, false), 70_000, 32, 3)
		b.quantised("", q8(compute.Q6_K, false), 3, 70_144, 5)
	}
	largeByName["quant_matmul_col_major"] = func(b *builder) {
		b.quantised("", q8(compute.Q4_0, false), 2, 3, 70_016)
		b.quantised("", q8(compute.Q5_K, false), 1, 9000, 256)
	}
	largeByName["quant_rms_norm_matvec"] = func(b *builder) { b.quantised("", q8(compute.Q4_K, true), 1, 256, 70_000) }
	largeByName["quant_gate_up_swiglu"] = func(b *builder) { b.quantised("", q8(compute.Q4_0, false), 1, 32, 70_000, 70_000) }
	largeByName["quant_qkv"] = func(b *builder) {
		b.quantised("", compute.QuantQKVOptions{Q: compute.Q8_0, K: compute.Q4_0, V: compute.Q5_1}, 2, 32, 70_000, 700, 3)
	}
}

// blockFormats have, for each format of weights, where the halves of a block's scale and minimum are, and how large they are
// where values are about 1.
var blockFormats = []struct {
	compute.BlockFormat
	scale, minimum int
	d, m           float64
}{
	{compute.Q4_0, quant.Q4_0Scale, -1, 1. / 8, 0},
	{compute.Q4_1, quant.Q4_1Scale, quant.Q4_1Min, 1. / 8, 1},
	{compute.Q5_0, quant.Q5_0Scale, -1, 1. / 16, 0},
	{compute.Q5_1, quant.Q5_1Scale, quant.Q5_1Min, 1. / 16, 1},
	{compute.Q8_0, quant.Q8_0Scale, -1, 1. / 127, 0},
	{compute.Q2_K, quant.Q2_KScale, quant.Q2_KMin, 1. / 15 / 3, 1. / 15},
	{compute.Q3_K, quant.Q3_KScale, -1, 1. / 32 / 4, 0},
	{compute.Q4_K, quant.Q4_KScale, quant.Q4_KMin, 1. / 63 / 15, 1. / 63},
	{compute.Q5_K, quant.Q5_KScale, quant.Q5_KMin, 1. / 63 / 31, 1. / 63},
	{compute.Q6_K, quant.Q6_KScale, -1, 1. / 128 / 32, 0},
}

// packed returns weights of arbitrary bits, but for scales that make values about 1, or small: some scales of theirs are then
// subnormal halves.
func (r *source) packed(f compute.BlockFormat, rows, cols int) operand {
	t := quant.Type(f)
	m := &quant.Matrix{Type: t, Rows: rows, Cols: cols, Data: make([]byte, rows*cols/t.BlockLen()*t.BlockSize())}
	for i := range m.Data {
		m.Data[i] = byte(r.Uint32())
	}
	for _, b := range blockFormats {
		for at := 0; b.BlockFormat == f && at < len(m.Data); at += t.BlockSize() {
			size := 1 - 0.9*r.Float64()
			if r.IntN(8) == 0 {
				size *= 1. / 64
			}
			if r.IntN(8) == 0 {
				size = -size
			}
			binary.LittleEndian.PutUint16(m.Data[at+b.scale:], float16.Fromfloat32(float32(size*b.d)).Bits())
			if b.minimum >= 0 {
				binary.LittleEndian.PutUint16(m.Data[at+b.minimum:], float16.Fromfloat32(float32(size*b.m*r.Float64())).Bits())
			}
		}
	}
	p, err := quant.Pack(m)
	if err != nil {
		panic(err)
	}
	return operand{program.Type{DType: compute.Uint32, Shape: p.Shape()}, p.Words}
}

func q8(f compute.BlockFormat, on bool) compute.QuantOptions {
	return compute.QuantOptions{Format: f, Q8: on}
}

// quantised adds a case of a product of x, m × k, with weights of given numbers of rows, or of columns if they are
// column-major.
func (b *builder) quantised(note string, options any, m, k int, n ...int) *testCase {
	return b.add(note, attrs(b.Entry, options)[0], func(r *source) []operand {
		x := []int{m, k}
		if m == 1 {
			x = x[1:]
		} else if m == 6 {
			x = []int{2, 3, k}
		}
		in := []operand{r.domain(b.Entry, x...)}
		if b.Name == "quant_rms_norm_matvec" {
			in = append(in, r.floats(-2, 2, k))
		}
		formats := formatsOf(options)
		for i, n := range n {
			if b.Name == "quant_matmul_col_major" {
				in = append(in, r.packed(formats[i], k, n))
			} else {
				in = append(in, r.packed(formats[i], n, k))
			}
		}
		return in
	})
}

// formatsOf are the formats of the weights.
func formatsOf(options any) [3]compute.BlockFormat {
	if o, ok := options.(compute.QuantOptions); ok {
		return [3]compute.BlockFormat{o.Format, o.Format}
	}
	return catalogue.QKVFormats(program.Attr{Options: options})
}

// biased adds biases of these lengths.
func (c *testCase) biased(n ...int) {
	inputs := c.inputs
	c.inputs = func(r *source) []operand {
		in := inputs(r)
		for _, n := range n {
			in = append(in, r.floats(-1, 1, n))
		}
		return in
	}
}

// aligned gives the values of x the signs that most of the weights have that they are multiplied by. Rows of x differ by powers of
// two. So do, in every second one, 32, 64 and 128 neighbours and both halves, which shows mistakes in scales; where they are of the same
// magnitude, mistakes in single values are more than what Q8 may change.
func (c *testCase) aligned(k int) {
	inputs, formats := c.inputs, formatsOf(c.attr.Options)
	c.inputs = func(r *source) []operand {
		in := inputs(r)
		rest, sums := in[1:], make([]float64, k) // of the signs
		if c.entry == catalogue.QuantRMSNormMatVec {
			for i, v := range rest[0].data.([]float32) {
				rest[0].data.([]float32)[i] = float32(math.Abs(float64(v)))
			}
			rest = rest[1:]
		}
		for i := 0; i < len(rest) && rest[i].DType == compute.Uint32; i++ {
			w := rest[i]
			p := &quant.Packed{Type: quant.Type(formats[i]), Rows: w.Shape[0], Cols: k, Words: w.data.([]uint32)}
			values := make([]float32, p.Rows*k)
			m, err := p.Unpack()
			if err == nil {
				err = m.Dequantize(values)
			}
			if err != nil {
				panic(err)
			}
			for i, v := range values {
				sums[i%k] += math.Copysign(1, float64(v))
			}
		}
		x := in[0].data.([]float32)
		for i, v := range x {
			row, column := i/k, i%k
			power := row % 3
			if (row+k/512)%2 == 1 {
				power += column/32%2 + column/64%2 + column/128%3 + 2*column/k
			}
			x[i] = float32(math.Copysign(math.Ldexp(1+math.Abs(float64(v)), -power), sums[column]))
		}
		return in
	}
}

func (b *builder) dequantize(note string, o compute.DequantizeOptions, n, k int, rows []int) *testCase {
	return b.add(note, program.Attr{Options: o}, func(r *source) []operand {
		in := []operand{r.packed(o.Format, n, k)}
		if rows == nil {
			return in
		}
		which := make([]int32, program.Len(rows))
		for i := range which {
			which[i] = r.Int32N(int32(n))
		}
		return append(in, operand{program.Type{DType: compute.Int32, Shape: rows}, which})
	})
}

func dequantizeCases(b *builder) {
	type o = compute.DequantizeOptions
	for i, f := range blockFormats {
		block := quant.Type(f.BlockFormat).BlockLen()
		b.dequantize("", o{Format: f.BlockFormat}, 1, block, nil)
		b.dequantize("", o{Format: f.BlockFormat}, 5, block*(3+i%3), nil)
		b.dequantize("", o{Format: f.BlockFormat, Result: compute.Float16}, 3, block*(1+i%4), nil)
		b.dequantize("", o{Format: f.BlockFormat}, 7, block*2, []int{2, 3})
		b.dequantize("", o{Format: f.BlockFormat, Result: compute.Float16}, 2, block*3, []int{5})
		c := b.dequantize("rows outside", o{Format: f.BlockFormat}, 3, 2*block, []int{6})
		inside := c.inputs
		c.inputs = func(r *source) []operand {
			in := inside(r)
			copy(in[1].data.([]int32), []int32{-1, 3, math.MaxInt32, math.MinInt32})
			return in
		}
	}
	b.dequantize("no rows", o{Format: compute.Q4_0}, 0, 0, nil)
	b.dequantize("empty rows", o{Format: compute.Q6_K}, 3, 0, nil)
	b.dequantize("none chosen", o{Format: compute.Q6_K}, 3, 256, []int{0})
	b.dequantize("one chosen", o{Format: compute.Q4_K}, 3, 512, []int{})
	c := b.dequantize("Inf and NaN scales", o{Format: compute.Q8_0}, 2, 64, nil)
	finite := c.inputs
	c.inputs = func(r *source) []operand {
		in := finite(r)
		in[0].data.([]uint32)[16] = 0x7e01_7c00 // the scales of the first row, after 64 bytes of quants
		for i := range 16 {                     // no Inf · 0
			in[0].data.([]uint32)[i] |= 0x01010101
		}
		return in
	}
}

func quantMatmulCases(b *builder) {
	for i, f := range blockFormats {
		block := quant.Type(f.BlockFormat).BlockLen()
		wide := 1024 / block
		for _, q := range []bool{false, true} {
			o := q8(f.BlockFormat, q)
			b.quantised("", o, 1, block, 1)
			b.quantised("", o, 1, block*(2+i%4), 5)
			b.quantised("", o, 1, block*wide, 70+i)
			b.quantised("", o, 2+i%7, block*3, 9)
			b.quantised("", o, 6, block*2, 4)
			b.quantised("", o, 9+i, block*(1+i%3), 17)
			b.quantised("", o, 66, block*2, 34)
		}
		b.quantised("rows that few threads share", q8(f.BlockFormat, i%2 == 0), 1+i%2, 512+block%256, 301)
	}
	for _, q := range []bool{false, true} {
		b.quantised("", q8(compute.Q4_K, q), 8, 512, 33)
		b.quantised("", q8(compute.Q8_0, q), 129, 96, 130)
		b.quantised("long rows", q8(compute.Q4_0, q), 1, 32*300, 3)
		b.quantised("no rows of x", q8(compute.Q4_0, q), 0, 32, 3)
		b.quantised("no weights", q8(compute.Q4_0, q), 2, 32, 0)
		b.quantised("K = 0", q8(compute.Q4_K, q), 3, 0, 4)
		for _, f := range []compute.BlockFormat{compute.Q4_0, compute.Q6_K} {
			for _, m := range []int{1, 3, 40} {
				c := b.quantised("zeros, Inf and NaN stay in their rows", q8(f, q), m, 512, 5)
				inputs := c.inputs
				c.inputs = func(r *source) []operand {
					in := inputs(r)
					clear(in[0].data.([]float32)[:512])
					if m > 2 {
						in[0].set(float32(math.NaN()), 512+77).set(float32(math.Inf(-1)), 2*512+300)
					}
					return in
				}
			}
		}
		c := b.quantised("outliers", q8(compute.Q4_K, q), 2, 1024, 20)
		inputs := c.inputs
		c.inputs = func(r *source) []operand {
			return append([]operand{inputs(r)[0].set(60, 5).set(-45, 1500)}, inputs(r)[1:]...)
		}
		c = b.quantised("", q8(compute.Q5_K, q), 2, 256, 256)
		b.again(c, inPlace)
		b.again(c, shifted)
	}
}

func quantColumnCases(b *builder) {
	for i, f := range blockFormats {
		block := quant.Type(f.BlockFormat).BlockLen()
		o := q8(f.BlockFormat, false)
		b.quantised("", o, 1, 1, block)
		b.quantised("", o, 1, 37+i, block*(1+i%3))
		b.quantised("", o, 2+i%7, 5, block*2)
		b.quantised("", o, 6, 12, block)
		b.quantised("", o, 33, 18, block)
	}
	b.quantised("", q8(compute.Q8_0, false), 65, 130, 96)
	b.quantised("", q8(compute.Q4_0, false), 1, 3000, 64)
	b.quantised("no rows of x", q8(compute.Q4_0, false), 0, 32, 32)
	b.quantised("K = 0", q8(compute.Q4_0, false), 2, 0, 0)
	c := b.quantised("", q8(compute.Q4_0, false), 3, 96, 96)
	b.again(c, inPlace)
	b.again(c, shifted)
}

// quantFusedCases are those of a norm and a product, and of gate and up.
func quantFusedCases(b *builder) {
	two := func(n int) []int {
		if b.Name == "quant_gate_up_swiglu" {
			return []int{n, n}
		}
		return []int{n}
	}
	for i, f := range blockFormats {
		block := quant.Type(f.BlockFormat).BlockLen()
		for _, q := range []bool{false, true} {
			o := q8(f.BlockFormat, q)
			b.quantised("", o, 1, block*(1+i%3), two(7)...)
			b.quantised("", o, 2+i%7, block*2, two(5)...)
			b.quantised("", o, 12, block, two(18)...)
		}
	}
	b.quantised("rows that few threads share", q8(compute.Q4_1, true), 1, 576, two(301)...)
	b.quantised("rows that some threads share", q8(compute.Q5_0, false), 1, 1056, two(150)...)
	b.quantised("", q8(compute.Q4_K, true), 1, 2048, two(10)...)
	b.quantised("", q8(compute.Q6_K, false), 6, 768, two(33)...)
	b.quantised("no rows of x", q8(compute.Q4_0, true), 0, 32, two(3)...)
	b.quantised("K = 0", q8(compute.Q4_0, false), 2, 0, two(3)...)
}

func quantQKVCases(b *builder) {
	o := func(q, k, v compute.BlockFormat, eight bool) compute.QuantQKVOptions {
		return compute.QuantQKVOptions{Q: q, K: k, V: v, Q8: eight}
	}
	for i, f := range blockFormats {
		last := blockFormats[(i+3)%len(blockFormats)].BlockFormat
		for _, q := range []bool{false, true} {
			c := b.quantised("", o(f.BlockFormat, f.BlockFormat, last, q), 1+i%9, 256*(1+i%2), 12, 5, 4)
			if i%2 == 0 {
				c.biased(12, 5, 4)
			}
		}
	}
	b.quantised("", o(compute.Q4_K, compute.Q4_K, compute.Q6_K, true), 1, 1024, 64, 16, 16)
	b.quantised("rows that few threads share", o(compute.Q4_1, compute.Q4_1, compute.Q8_0, true), 1, 576, 250, 9, 81)
	b.quantised("", o(compute.Q4_K, compute.Q5_K, compute.Q6_K, false), 11, 512, 30, 7, 7)
	b.quantised("no rows of x", o(compute.Q4_K, compute.Q5_K, compute.Q6_K, true), 0, 256, 3, 2, 1)
	b.quantised("K = 0", o(compute.Q4_K, compute.Q5_K, compute.Q6_K, false), 2, 0, 3, 2, 1)
}
