//go:build !js

package benchmarks

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// measured is an operation of the catalogue with a shape, by the GPU's clock.
type measured struct {
	name  string
	entry *program.Entry
	attr  program.Attr
	in    []program.Type // operands
	small []program.Type // the same on the software GPU
	doc   string
	// ints is what fills Int32 operands, by number; 0 where it says nothing.
	ints map[int]func(in []program.Type) int32
	// zeros are the operands, by number, that begin as zeros; others are random.
	zeros []int
	// flops counts those of a call where they and not the bytes set the time; every variant of the kernel is measured then.
	flops func(in []program.Type) float64
	peer  string // what the peer calls it; "" if that has no such thing
}

const mega = 1 << 20

// f32s are float32 operands of these shapes.
func f32s(shapes ...[]int) (list []program.Type) {
	for _, s := range shapes {
		list = append(list, program.F32(s...))
	}
	return list
}

// memoryBound are those whose time is that of their bytes. Large ones have 256 MiB per operand, which no cache holds.
var memoryBound = func() (all []measured) {
	norm := program.Attr{Scalars: []float32{1e-5}}
	for _, size := range []struct {
		suffix, doc string
		n, rows     int
		small       int
	}{
		{"", "64M float32", 64 * mega, 64 << 10, 8 << 10},
		{"_4k", "4,096 float32", 4096, 4, 1024},
	} {
		n, cols := []int{size.n}, size.n/size.rows
		few, fewCols := []int{size.small}, size.small/4
		matrix, fewRows := []int{size.rows, cols}, []int{4, fewCols}
		sized := []measured{
			{name: "copy", entry: catalogue.Copy, in: f32s(n), small: f32s(few), peer: "copy"},
			{name: "add", entry: catalogue.Add, in: f32s(n, n), small: f32s(few, few), peer: "add"},
			{name: "gelu", entry: catalogue.GELU, in: f32s(n), small: f32s(few), peer: "gelu"},
			{name: "swiglu", entry: catalogue.SwiGLU, in: f32s(n, n), small: f32s(few, few), peer: "swiglu"},
			{name: "softmax", entry: catalogue.Softmax, in: f32s(matrix), small: f32s(fewRows), peer: "softmax", doc: ", rows of 1,024"},
			{name: "layer_norm", entry: catalogue.LayerNorm, attr: norm, in: f32s(matrix, []int{cols}, []int{cols}),
				small: f32s(fewRows, []int{fewCols}, []int{fewCols}), peer: "layer_norm", doc: ", rows of 1,024"},
			{name: "rms_norm", entry: catalogue.RMSNorm, attr: norm, in: f32s(matrix, []int{cols}), small: f32s(fewRows, []int{fewCols}),
				peer: "rms_norm", doc: ", rows of 1,024"},
			{name: "add_rms_norm", entry: catalogue.AddRMSNorm, attr: norm, in: f32s(matrix, matrix, []int{cols}),
				small: f32s(fewRows, fewRows, []int{fewCols}), doc: ", rows of 1,024"},
		}
		for _, m := range sized {
			m.name, m.doc = m.name+size.suffix, size.doc+m.doc
			all = append(all, m)
		}
	}
	whole := func(name string, e *program.Entry) measured {
		return measured{name: name, entry: e, attr: program.Attr{Options: compute.AllAxes}, in: f32s([]int{64 * mega}), small: f32s([]int{8 << 10}),
			doc: "64M float32", peer: name}
	}
	const doc = "8192 × 8192 float32"
	half := func(shape ...int) program.Type { return program.Type{DType: compute.Float16, Shape: shape} }
	all = append(all, training()...)
	return append(all,
		measured{name: "softmax_wide", entry: catalogue.Softmax, in: f32s([]int{2048, 32768}), small: f32s([]int{1, 8192}), peer: "softmax",
			doc: "64M float32, rows of 32,768"},
		whole("sum", catalogue.Sum), whole("argmax", catalogue.ArgMax),
		measured{name: "cumsum", entry: catalogue.Lookup("cumsum"), attr: program.Attr{Options: compute.CumSumOptions{}}, in: f32s([]int{64, mega}),
			small: f32s([]int{2, 4096}), peer: "cumsum", doc: "64 rows of 1M float32"},
		measured{name: "transpose", entry: catalogue.Transpose, attr: program.Attr{Options: compute.TransposeOptions{}}, in: f32s([]int{8192, 8192}),
			small: f32s([]int{100, 70}), doc: doc, peer: "transpose"},
		measured{name: "matvec", entry: catalogue.MatVec, in: f32s([]int{8192, 8192}, []int{8192}), small: f32s([]int{100, 70}, []int{70}),
			doc: doc, peer: "matvec"},
		measured{name: "matvec_half", entry: catalogue.MatVec, in: []program.Type{half(16384, 8192), program.F32(8192)},
			small: []program.Type{half(100, 70), program.F32(70)}, doc: "16384 × 8192 float16"},
		decode("decode", 8, 32768, 32, 8, 128), decode("decode_1k", 1, 1024, 32, 8, 128),
	)
}()

// decode is one new token of each sequence against a cache of float16, which bounds it: every key and value is read once.
func decode(name string, batch, keys, heads, kvHeads, d int) measured {
	at := func(batch, keys, heads, kvHeads, d int) []program.Type {
		cache := program.Type{DType: compute.Float16, Shape: []int{batch, keys, kvHeads, d}}
		return []program.Type{program.F32(batch, 1, heads, d), cache, cache, {DType: compute.Int32, Shape: []int{batch}}}
	}
	return measured{name: name, entry: catalogue.Attention, attr: program.Attr{Options: compute.AttentionOptions{}}, in: at(batch, keys, heads, kvHeads, d),
		small: at(1, 64, 4, 2, 32), doc: fmt.Sprintf("%d sequences of %d tokens in float16, %d heads on %d, %d wide", batch, keys, heads, kvHeads, d),
		ints: map[int]func([]program.Type) int32{3: func(in []program.Type) int32 { return int32(in[1].Shape[1]) }}, peer: "attention"}
}

// computeBound are those whose time is that of their arithmetic.
var computeBound = func() (all []measured) {
	product := func(name, peer, doc string, n int, d compute.DType, o compute.MatMulOptions) measured {
		square := func(n int) []program.Type {
			t := program.Type{DType: d, Shape: []int{n, n}}
			return []program.Type{t, t}
		}
		return measured{name: fmt.Sprintf("%s%d", name, n), entry: catalogue.MatMul, attr: program.Attr{Options: o}, in: square(n), small: square(n / 64),
			peer: peer, doc: fmt.Sprintf("%d × %d %s", n, n, doc),
			flops: func(in []program.Type) float64 { m := float64(in[0].Shape[0]); return 2 * m * m * m }}
	}
	for _, n := range []int{1024, 4096, 8192} {
		all = append(all,
			product("sgemm", "matmul", "float32", n, compute.Float32, compute.MatMulOptions{}),
			product("hgemm", "matmul", "float16", n, compute.Float16, compute.MatMulOptions{Result: compute.Float16}),
			product("bf16gemm", "matmul", "bfloat16", n, compute.BFloat16, compute.MatMulOptions{Result: compute.BFloat16}))
	}
	all = append(all,
		product("sgemm_tensor", "matmul", "float32 on tensor cores, as accurate", 4096, compute.Float32,
			compute.MatMulOptions{Precision: compute.FP32Tensor}),
		product("tf32gemm", "matmul_tf32", "float32 as TF32", 4096, compute.Float32, compute.MatMulOptions{Precision: compute.TF32}))
	for _, c := range []struct {
		name      string
		batch, n  int
		d         int
		causal    bool
		peer, doc string
	}{
		{"attention", 4, 4096, 128, false, "attention", ""}, {"attention_causal", 4, 4096, 128, true, "attention_causal", ", causal"},
		{"attention_64", 4, 4096, 64, false, "attention", ""}, {"attention_16k", 1, 16384, 128, true, "attention_causal", ", causal"},
	} {
		at := func(batch, n, heads, d int) []program.Type {
			t := program.Type{DType: compute.BFloat16, Shape: []int{batch, n, heads, d}}
			return []program.Type{t, t, t}
		}
		all = append(all, measured{name: c.name, entry: catalogue.Attention, attr: program.Attr{Options: compute.AttentionOptions{Causal: c.causal}},
			in: at(c.batch, c.n, 16, c.d), small: at(1, 70, 2, c.d), peer: c.peer,
			doc: fmt.Sprintf("%d × %d tokens of bfloat16, 16 heads %d wide%s", c.batch, c.n, c.d, c.doc),
			flops: func(in []program.Type) float64 {
				s := in[0].Shape
				f := 4 * float64(s[0]) * float64(s[1]) * float64(s[1]) * float64(s[2]) * float64(s[3])
				if c.causal {
					f /= 2
				}
				return f
			}})
	}
	return append(all, attentionBackward())
}()
