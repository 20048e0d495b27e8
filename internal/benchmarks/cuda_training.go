//go:build !js

package benchmarks

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// training are the memory-bound operations of training beyond those of inference.
func training() []measured {
	norm := program.Attr{Scalars: []float32{1e-5}}
	loss := program.Attr{Options: compute.CrossEntropyOptions{}}
	n, few := []int{64 * mega}, []int{8 << 10}
	rows, fewRows := []int{64 << 10, 1024}, []int{5, 1024}
	cols := []int{1024}
	middle := map[int]func([]program.Type) int32{1: func(in []program.Type) int32 { return int32(in[0].Shape[1] / 2) }}
	logits := func(rows, classes int) []program.Type {
		return []program.Type{program.F32(rows, classes), {DType: compute.Int32, Shape: []int{rows}}, program.F32(rows)}
	}
	const large, vocabulary = "64M float32, rows of 1,024", "2,048 rows of 32,768 classes"
	return []measured{
		{name: "adam", entry: catalogue.Adam, attr: program.Attr{Options: compute.AdamOptions{LR: 1e-3, Step: 1}}, in: f32s(n, n, n, n),
			small: f32s(few, few, few, few), zeros: []int{1, 2}, peer: "adam", doc: "64M parameters"},
		{name: "cross_entropy", entry: catalogue.CrossEntropy, attr: loss, in: logits(2048, 32768)[:2], small: logits(3, 5000)[:2], ints: middle,
			peer: "cross_entropy", doc: vocabulary},
		{name: "cross_entropy_backward", entry: catalogue.CrossEntropyBackward, attr: loss, in: logits(2048, 32768), small: logits(3, 5000),
			ints: middle, peer: "cross_entropy_backward", doc: vocabulary},
		{name: "softmax_backward", entry: catalogue.SoftmaxBackward, in: f32s(rows, rows), small: f32s(fewRows, fewRows), peer: "softmax_backward",
			doc: large},
		{name: "layer_norm_backward", entry: catalogue.LayerNormBackward, attr: norm, in: f32s(rows, cols, cols, rows),
			small: f32s(fewRows, cols, cols, fewRows), peer: "layer_norm_backward", doc: large},
		{name: "rms_norm_backward", entry: catalogue.RMSNormBackward, attr: norm, in: f32s(rows, cols, rows), small: f32s(fewRows, cols, fewRows),
			peer: "rms_norm_backward", doc: large},
	}
}

// attentionBackward is bound by its arithmetic.
func attentionBackward() measured {
	gradients := func(batch, n, heads, d int) []program.Type {
		x := []int{batch, n, heads, d}
		return f32s(x, x, x, x, []int{batch, heads, n}, x)
	}
	return measured{name: "attention_backward", entry: catalogue.AttentionBackward,
		attr: program.Attr{Options: compute.AttentionOptions{Causal: true}}, in: gradients(1, 4096, 16, 128), small: gradients(1, 70, 2, 64),
		peer: "attention_causal_backward", doc: "4096 tokens of float32, 16 heads 128 wide, causal",
		flops: func(in []program.Type) float64 { // five products, of which the mask leaves half
			s := in[0].Shape
			return 5 * float64(s[0]) * float64(s[1]) * float64(s[1]) * float64(s[2]) * float64(s[3])
		}}
}
