package pretrained

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/safetensors"
)

// names are those that GGUF files give, by those of folders; # is the number of a layer and of an expert.
var names = map[string]string{
	"embed_tokens.weight": "token_embd.weight",
	"norm.weight":         "output_norm.weight",
	"lm_head.weight":      "output.weight",

	"layers.#.input_layernorm.weight":          "attn_norm.weight",
	"layers.#.self_attn.q_proj.weight":         "attn_q.weight",
	"layers.#.self_attn.k_proj.weight":         "attn_k.weight",
	"layers.#.self_attn.v_proj.weight":         "attn_v.weight",
	"layers.#.self_attn.q_proj.bias":           "attn_q.bias",
	"layers.#.self_attn.k_proj.bias":           "attn_k.bias",
	"layers.#.self_attn.v_proj.bias":           "attn_v.bias",
	"layers.#.self_attn.o_proj.weight":         "attn_output.weight",
	"layers.#.self_attn.qkv_proj.weight":       "attn_qkv.weight",
	"layers.#.self_attn.q_norm.weight":         "attn_q_norm.weight",
	"layers.#.self_attn.k_norm.weight":         "attn_k_norm.weight",
	"layers.#.post_attention_layernorm.weight": "ffn_norm.weight", // but in Gemma 2 and 3
	"layers.#.mlp.gate_proj.weight":            "ffn_gate.weight",
	"layers.#.mlp.up_proj.weight":              "ffn_up.weight",
	"layers.#.mlp.down_proj.weight":            "ffn_down.weight",
	"layers.#.mlp.gate_up_proj.weight":         "ffn_up.weight",

	"layers.#.pre_feedforward_layernorm.weight":  "ffn_norm.weight",
	"layers.#.post_feedforward_layernorm.weight": "post_ffw_norm.weight",

	"layers.#.block_sparse_moe.gate.weight":             "ffn_gate_inp.weight",
	"layers.#.block_sparse_moe.experts.#.w1.weight":     "ffn_gate_exps.weight",
	"layers.#.block_sparse_moe.experts.#.w3.weight":     "ffn_up_exps.weight",
	"layers.#.block_sparse_moe.experts.#.w2.weight":     "ffn_down_exps.weight",
	"layers.#.mlp.gate.weight":                          "ffn_gate_inp.weight",
	"layers.#.mlp.experts.#.gate_proj.weight":           "ffn_gate_exps.weight",
	"layers.#.mlp.experts.#.up_proj.weight":             "ffn_up_exps.weight",
	"layers.#.mlp.experts.#.down_proj.weight":           "ffn_down_exps.weight",
	"layers.#.mlp.shared_expert_gate.weight":            "ffn_gate_inp_shexp.weight",
	"layers.#.mlp.shared_expert.gate_proj.weight":       "ffn_gate_shexp.weight",
	"layers.#.mlp.shared_expert.up_proj.weight":         "ffn_up_shexp.weight",
	"layers.#.mlp.shared_expert.down_proj.weight":       "ffn_down_shexp.weight",
	"embeddings.word_embeddings.weight":                 "token_embd.weight",
	"embeddings.position_embeddings.weight":             "position_embd.weight",
	"embeddings.token_type_embeddings.weight":           "token_types.weight",
	"embeddings.LayerNorm.weight":                       "token_embd_norm.weight",
	"embeddings.LayerNorm.bias":                         "token_embd_norm.bias",
	"encoder.layer.#.attention.self.query.weight":       "attn_q.weight",
	"encoder.layer.#.attention.self.query.bias":         "attn_q.bias",
	"encoder.layer.#.attention.self.key.weight":         "attn_k.weight",
	"encoder.layer.#.attention.self.key.bias":           "attn_k.bias",
	"encoder.layer.#.attention.self.value.weight":       "attn_v.weight",
	"encoder.layer.#.attention.self.value.bias":         "attn_v.bias",
	"encoder.layer.#.attention.output.dense.weight":     "attn_output.weight",
	"encoder.layer.#.attention.output.dense.bias":       "attn_output.bias",
	"encoder.layer.#.attention.output.LayerNorm.weight": "attn_output_norm.weight",
	"encoder.layer.#.attention.output.LayerNorm.bias":   "attn_output_norm.bias",
	"encoder.layer.#.intermediate.dense.weight":         "ffn_up.weight",
	"encoder.layer.#.intermediate.dense.bias":           "ffn_up.bias",
	"encoder.layer.#.output.dense.weight":               "ffn_down.weight",
	"encoder.layer.#.output.dense.bias":                 "ffn_down.bias",
	"encoder.layer.#.output.LayerNorm.weight":           "layer_output_norm.weight",
	"encoder.layer.#.output.LayerNorm.bias":             "layer_output_norm.bias",
}

// without are tensors that the networks do without: constants, and heads of encoders for other tasks.
var without = regexp.MustCompile(`rotary_emb\.inv_freq$|^((bert|roberta)\.)?(embeddings\.position_ids$|pooler\.)|^cls\.`)

// number is that of a layer or an expert in a name.
var number = regexp.MustCompile(`\.(0|[1-9][0-9]{0,5})\.`)

// weights writes the tensors of a folder to an image.
type weights struct {
	config *config
	*image
	format quant.Type
	from   map[string]*safetensors.Tensor
	stacks map[string][]*safetensors.Tensor // of experts, by the name in the image
	order  []string                         // of these names
}

// write declares all tensors, in the order of their names in the folder.
func (w *weights) write() error {
	for _, name := range slices.Sorted(maps.Keys(w.from)) {
		if err := w.add(name); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	for _, to := range w.order {
		if err := w.stack(to); err != nil {
			return fmt.Errorf("tensors for %q: %w", to, err)
		}
	}
	w.factors()
	return w.err
}

// add declares a tensor, or notes one of an expert.
func (w *weights) add(name string) error {
	t := w.from[name]
	if without.MatchString(name) || name == "lm_head.weight" && w.config.tied {
		return nil
	}
	plain := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "model."), "bert."), "roberta.")
	var numbers []int
	pattern := number.ReplaceAllStringFunc(plain, func(s string) string {
		n, _ := strconv.Atoi(s[1 : len(s)-1])
		numbers = append(numbers, n)
		return ".#."
	})
	to, ok := names[pattern]
	if !ok {
		return fmt.Errorf("is not part of a known architecture: %w", compute.ErrUnsupported)
	}
	if w.config.postNorms && pattern == "layers.#.post_attention_layernorm.weight" {
		to = "post_attention_norm.weight"
	}
	typ, ok := t.Type()
	if !ok || typ != quant.F32 && typ != quant.F16 && typ != quant.BF16 {
		return fmt.Errorf("elements of type %s, need F32, F16 or BF16: %w", t.DType(), compute.ErrUnsupported)
	}
	if len(numbers) > 0 {
		to = fmt.Sprintf("blk.%d.%s", numbers[0], to)
	}
	if len(numbers) < 2 {
		w.one(to, t)
		return w.err
	}
	all := w.stacks[to]
	if all == nil {
		w.order = append(w.order, to)
	}
	if numbers[1] >= w.config.experts {
		return fmt.Errorf("expert %d of %d: %w", numbers[1], w.config.experts, compute.ErrShape)
	}
	for len(all) <= numbers[1] {
		all = append(all, nil)
	}
	all[numbers[1]] = t
	w.stacks[to] = all
	return nil
}

// one declares a tensor that is one in the folder, too.
func (w *weights) one(to string, t *safetensors.Tensor) {
	typ, _ := t.Type()
	shape := t.Shape()
	if strings.HasSuffix(to, "ffn_gate_inp_shexp.weight") && len(shape) == 2 && shape[0] == 1 {
		shape = shape[1:]
	}
	if len(shape) == 0 {
		w.fail(fmt.Errorf("has no axes: %w", compute.ErrShape))
		return
	}
	var turned func(row int) int
	if w.config.interleaved && (strings.Contains(to, "attn_q.") || strings.Contains(to, "attn_k.")) {
		turned = w.interleave
		if shape[0]%w.config.headSize != 0 {
			w.fail(fmt.Errorf("shape %v for heads of %d: %w", shape, w.config.headSize, compute.ErrShape))
			return
		}
	}
	if first := w.config.firstPosition; first > 0 && to == "position_embd.weight" && len(shape) == 2 {
		if shape[0] <= first {
			w.fail(fmt.Errorf("shape %v, and positions begin at %d: %w", shape, first, compute.ErrShape))
			return
		}
		shape = []int{shape[0] - first, shape[1]}
		turned = func(row int) int { return row + first }
	}
	if len(shape) == 1 {
		add := float32(0)
		if w.config.normsBelow && strings.HasSuffix(to, "norm.weight") {
			add = 1
		}
		w.tensor(to, quant.F32, func(dst []byte, _, _ int) error {
			x := make([]float32, t.Len())
			if err := t.Float32s(x); err != nil {
				return err
			}
			for i := range x {
				from := i
				if turned != nil {
					from = turned(i)
				}
				binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x[from]+add))
			}
			return nil
		}, shape[0])
		return
	}
	w.matrix(to, typ, func(dst []byte, row, n int) error {
		b, err := t.Bytes()
		if err != nil {
			return err
		}
		size := len(b) / max(t.Len()/shape[len(shape)-1], 1)
		if turned == nil {
			copy(dst, b[row*size:(row+n)*size])
			return nil
		}
		for i := range n {
			copy(dst[i*size:][:size], b[turned(row+i)*size:])
		}
		return nil
	}, shape...)
}

// interleave is the row of a folder's matrix that a row of the image's is: there elements that are rotated together are half a head apart, here
// neighbours.
func (w *weights) interleave(row int) int {
	head, at := row/w.config.headSize, row%w.config.headSize
	return head*w.config.headSize + at%2*(w.config.headSize/2) + at/2
}

// stack declares the matrices of experts as one tensor.
func (w *weights) stack(to string) error {
	all := w.stacks[to]
	if len(all) != w.config.experts || slices.Contains(all, nil) {
		return fmt.Errorf("there are not all of %d experts: %w", w.config.experts, compute.ErrShape)
	}
	typ, _ := all[0].Type()
	shape := all[0].Shape()
	for _, t := range all[1:] {
		if other, _ := t.Type(); other != typ || !slices.Equal(t.Shape(), shape) {
			return fmt.Errorf("experts with %v and %v of %v: %w", shape, t.Shape(), t.DType(), compute.ErrShape)
		}
	}
	if len(shape) != 2 || shape[0] == 0 {
		return fmt.Errorf("experts with %v: %w", shape, compute.ErrShape)
	}
	w.matrix(to, typ, func(dst []byte, row, n int) error {
		for n > 0 {
			b, err := all[row/shape[0]].Bytes()
			if err != nil {
				return err
			}
			size, at := len(b)/shape[0], row%shape[0]
			part := min(n, shape[0]-at)
			copy(dst, b[at*size:(at+part)*size])
			dst, row, n = dst[part*size:], row+part, n-part
		}
		return nil
	}, len(all), shape[0], shape[1])
	return w.err
}

// matrix declares a matrix whose rows are of a type, or what they become.
func (w *weights) matrix(to string, typ quant.Type, fill func(dst []byte, row, n int) error, shape ...int) {
	cols := shape[len(shape)-1]
	keep := w.format == quant.F32 || cols%w.format.BlockLen() != 0 || strings.Contains(to, "ffn_gate_inp") || strings.Contains(to, "position_embd") ||
		strings.Contains(to, "token_types")
	if keep {
		w.tensor(to, typ, fill, shape...)
		return
	}
	w.tensor(to, w.format, func(dst []byte, row, n int) error {
		size, err := typ.RowSize(cols)
		if err != nil {
			return err
		}
		const most = 256 // rows at a time
		each := len(dst) / n
		for n > 0 {
			part := min(n, most)
			raw, x := make([]byte, part*size), make([]float32, part*cols)
			if err := fill(raw, row, part); err != nil {
				return err
			}
			if err := quant.Dequantize(x, typ, raw); err != nil {
				return err
			}
			m, err := quant.QuantizeMatrix(w.format, part, cols, x, quant.Options{Workers: runtime.GOMAXPROCS(0)})
			if err != nil {
				return fmt.Errorf("%s: %w", to, err)
			}
			dst, row, n = dst[copy(dst, m.Data[:part*each]):], row+part, n-part
		}
		return nil
	}, shape...)
}

// factors declares the tensors that config.json has the numbers of.
func (w *weights) factors() {
	for _, name := range slices.Sorted(maps.Keys(w.config.numbers)) {
		x := w.config.numbers[name]
		w.tensor(name, quant.F32, func(dst []byte, _, _ int) error {
			for i, v := range x {
				binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
			}
			return nil
		}, len(x))
	}
}

func (m *image) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}
