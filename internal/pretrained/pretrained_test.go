//go:build !js

package pretrained_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/internal/pretrained"
	"github.com/wavelane/wavelane/internal/tokenizer"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
	"github.com/wavelane/wavelane/quant/safetensors"
)

type dict = map[string]any

// sample is a model as a GGUF file and what config.json says of it.
type sample struct {
	decoder.Random
	config dict
}

func halves(name string) quant.Type {
	if strings.Contains(name, "ffn") {
		return quant.F16
	}
	return quant.BF16
}

// samples are models of all types of folders.
var samples = map[string]sample{
	"llama": {decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 24, Context: 64,
		Stretch: 4, Tied: true, Seed: 1}, dict{"rope_scaling": dict{"type": "linear", "factor": 4.0}}},
	"mistral": {decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Seed: 2,
		Format: halves}, dict{"sliding_window": nil}},
	"mixtral": {decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Experts: 4,
		UsedExperts: 2, Seed: 3}, dict{"num_local_experts": 4, "num_experts_per_tok": 2}},
	"qwen2": {decoder.Random{Architecture: "qwen2", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Seed: 4,
		Format: halves}, dict{"use_sliding_window": false, "sliding_window": 8}},
	"qwen3": {decoder.Random{Architecture: "qwen3", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 24, Context: 64,
		Yarn: 4, Seed: 5}, dict{"rope_parameters": dict{"rope_theta": 50000.0, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}}},
	"qwen2_moe": {decoder.Random{Architecture: "qwen2moe", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Experts: 6,
		UsedExperts: 3, ExpertHidden: 32, SharedHidden: 48, Seed: 6}, dict{"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 32,
		"shared_expert_intermediate_size": 48, "norm_topk_prob": false, "decoder_sparse_step": 1, "mlp_only_layers": []int{}}},
	"qwen3_moe": {decoder.Random{Architecture: "qwen3moe", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 24, Context: 64,
		Experts: 5, UsedExperts: 2, ExpertHidden: 40, Seed: 7, Format: halves}, dict{"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 40,
		"norm_topk_prob": true}},
	"gemma": {decoder.Random{Architecture: "gemma", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 2, KVHeads: 1, HeadSize: 64, Context: 64,
		Tied: true, Seed: 8}, dict{"hidden_act": "gelu"}},
	"gemma2": {decoder.Random{Architecture: "gemma2", Tokenizer: "llama", Blocks: 3, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 32, Context: 64,
		Tied: true, Window: 7, Seed: 9}, dict{"hidden_activation": "gelu_pytorch_tanh", "sliding_window": 7, "query_pre_attn_scalar": 32,
		"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}},
	"gemma3_text": {decoder.Random{Architecture: "gemma3", Tokenizer: "llama", Blocks: 7, Width: 64, Hidden: 96, Heads: 4, KVHeads: 1, HeadSize: 32, Context: 64,
		Tied: true, Window: 7, Stretch: 8, Seed: 10}, dict{"hidden_activation": "gelu_pytorch_tanh", "sliding_window": 7, "query_pre_attn_scalar": 32,
		"rope_local_base_freq": 10000.0, "rope_scaling": dict{"rope_type": "linear", "factor": 8.0}}},
	"phi3": {decoder.Random{Architecture: "phi3", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Rotated: 12, Seed: 11},
		dict{"partial_rotary_factor": 0.75, "sliding_window": 5}},
	"bert": {decoder.Random{Architecture: "bert", Tokenizer: "bert", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 4, Context: 64, Seed: 12},
		dict{"hidden_act": "gelu", "position_embedding_type": "absolute"}},
	"xlm-roberta": {decoder.Random{Architecture: "bert", Tokenizer: "t5", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 4, Context: 64, Seed: 13},
		dict{"hidden_act": "gelu", "position_embedding_type": "absolute", "max_position_embeddings": 66, "pad_token_id": 1}},
}

// written is a model as a file and as a folder.
func written(t testing.TB, kind string, s sample, files int) (*gguf.File, string) {
	var b bytes.Buffer
	require.NoError(t, s.Write(&b))
	f, err := gguf.New(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	dir := t.TempDir()
	save(t, dir, "config.json", s.describe(kind))
	save(t, dir, "tokenizer.json", tokenizerOf(t, f))
	save(t, dir, "tokenizer_config.json", dict{"bos_token": dict{"content": pieceOf(t, f, "bos")}, "eos_token": pieceOf(t, f, "eos"),
		"add_bos_token": s.Tokenizer == "llama", "chat_template": "{{ messages }}"})
	if s.Architecture == "bert" {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o777))
		save(t, dir, "1_Pooling/config.json", dict{"pooling_mode_mean_tokens": true})
	}
	parts := make([][]stored, files)
	for i, x := range stores(t, kind, f, s) {
		parts[i%files] = append(parts[i%files], x)
	}
	index := map[string]string{}
	for i, list := range parts {
		name := "model.safetensors"
		if files > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, files)
		}
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, name), func(w *safetensors.Writer) error {
			for _, x := range list {
				index[x.name] = name
				if err := w.AddTensor(x.name, x.dtype, x.shape...); err != nil {
					return err
				}
			}
			for _, x := range list {
				if _, err := w.Write(x.data); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if files > 1 {
		save(t, dir, "model.safetensors.index.json", dict{"weight_map": index})
	}
	return f, dir
}

func save(t testing.TB, dir, name string, v any) {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o666))
}

// describe is config.json.
func (s sample) describe(kind string) dict {
	c := dict{"model_type": kind, "num_hidden_layers": s.Blocks, "hidden_size": s.Width, "intermediate_size": s.Hidden, "num_attention_heads": s.Heads,
		"num_key_value_heads": s.KVHeads, "max_position_embeddings": s.Context, "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-5, "rope_theta": 50000.0,
		"hidden_act": "silu", "tie_word_embeddings": s.Tied, "head_dim": nil}
	if s.HeadSize > 0 {
		c["head_dim"] = s.HeadSize
	}
	for key, v := range s.config {
		c[key] = v
	}
	return c
}

// stored is a tensor of a folder.
type stored struct {
	name, dtype string
	shape       []int
	data        []byte
}

// stores are the tensors of a file as a folder has them.
func stores(t testing.TB, kind string, f *gguf.File, s sample) (all []stored) {
	gemma, headSize := strings.HasPrefix(kind, "gemma"), s.HeadSize
	if headSize == 0 {
		headSize = s.Width / s.Heads
	}
	for _, x := range f.Tensors() {
		data, err := x.Bytes()
		require.NoError(t, err)
		shape := x.Shape()
		layer, rest := -1, x.Name()
		if strings.HasPrefix(rest, "blk.") {
			_, err := fmt.Sscanf(rest, "blk.%d.%s", &layer, &rest)
			require.NoError(t, err)
		}
		base, end := rest[:strings.LastIndex(rest, ".")], rest[strings.LastIndex(rest, "."):]
		if gemma && strings.HasSuffix(base, "norm") {
			values := make([]float32, x.Len())
			require.NoError(t, x.Dequantize(values))
			for i := range values {
				values[i]--
			}
			data, err = encode(values)
			require.NoError(t, err)
		}
		if s.Architecture == "llama" && (base == "attn_q" || base == "attn_k") {
			row := len(data) / shape[0]
			other := make([]byte, len(data))
			for r := range shape[0] { // element 2j + i of a head is there number i·size/2 + j
				head, at := r/headSize*headSize, r%headSize
				copy(other[(head+at%2*headSize/2+at/2)*row:][:row], data[r*row:])
			}
			data = other
		}
		if kind == "xlm-roberta" && base == "position_embd" { // after those that no token has
			shape = []int{shape[0] + 2, shape[1]}
			data = append(bytes.Repeat([]byte{0xff}, 2*len(data)/x.Rows()), data...)
		}
		name, experts := folderName(kind, base)
		if layer >= 0 && s.Architecture == "bert" {
			name = fmt.Sprintf("encoder.layer.%d.%s", layer, name)
		} else if layer >= 0 {
			name = fmt.Sprintf("model.layers.%d.%s", layer, name)
		}
		dtype := x.Type().String()
		if experts {
			n := len(data) / shape[0]
			for e := range shape[0] {
				all = append(all, stored{strings.Replace(name, "#", fmt.Sprint(e), 1) + end, dtype, shape[1:], data[e*n : (e+1)*n]})
			}
			continue
		}
		if base == "ffn_gate_inp_shexp" {
			shape = []int{1, shape[0]}
		}
		all = append(all, stored{name + end, dtype, shape, data})
	}
	if kind == "llama" { // as some folders have it
		all = append(all, stored{"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", []int{1}, make([]byte, 4)})
	}
	return all
}

func encode(x []float32) ([]byte, error) {
	b := make([]byte, 4*len(x))
	return b, quant.Quantize(b, quant.F32, x)
}

// folderName is how folders call a tensor.
func folderName(kind, base string) (name string, experts bool) {
	if kind == "bert" || kind == "xlm-roberta" {
		return map[string]string{"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings",
			"token_types": "embeddings.token_type_embeddings", "token_embd_norm": "embeddings.LayerNorm", "attn_q": "attention.self.query",
			"attn_k": "attention.self.key", "attn_v": "attention.self.value", "attn_output": "attention.output.dense",
			"attn_output_norm": "attention.output.LayerNorm", "ffn_up": "intermediate.dense", "ffn_down": "output.dense",
			"layer_output_norm": "output.LayerNorm"}[base], false
	}
	switch name, ok := map[string]string{"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head", "attn_norm": "input_layernorm",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
		"attn_qkv": "self_attn.qkv_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_down": "mlp.down_proj",
		"ffn_gate": "mlp.gate_proj", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}[base]; {
	case ok:
		return name, false
	case base == "ffn_norm" && (kind == "gemma2" || kind == "gemma3_text"):
		return "pre_feedforward_layernorm", false
	case base == "ffn_norm":
		return "post_attention_layernorm", false
	case base == "ffn_up" && kind == "phi3":
		return "mlp.gate_up_proj", false
	case base == "ffn_up":
		return "mlp.up_proj", false
	case base == "ffn_gate_inp" && kind == "mixtral":
		return "block_sparse_moe.gate", false
	case base == "ffn_gate_inp":
		return "mlp.gate", false
	case base == "ffn_gate_inp_shexp":
		return "mlp.shared_expert_gate", false
	}
	part := strings.Split(base, "_")[1]
	switch {
	case strings.HasSuffix(base, "shexp"):
		return "mlp.shared_expert." + part + "_proj", false
	case kind == "mixtral":
		return "block_sparse_moe.experts.#." + map[string]string{"gate": "w1", "up": "w3", "down": "w2"}[part], true
	}
	return "mlp.experts.#." + part + "_proj", true
}

func pieceOf(t testing.TB, f *gguf.File, key string) string {
	id, err := f.Int("tokenizer.ggml." + key + "_token_id")
	if err != nil {
		return ""
	}
	tokens, err := gguf.Values[string](f, "tokenizer.ggml.tokens")
	require.NoError(t, err)
	return tokens[id]
}

// tokenizerOf is tokenizer.json for the vocabulary of a file.
func tokenizerOf(t testing.TB, f *gguf.File) dict {
	tokens, err := gguf.Values[string](f, "tokenizer.ggml.tokens")
	require.NoError(t, err)
	kinds, err := gguf.Values[int32](f, "tokenizer.ggml.token_type")
	require.NoError(t, err)
	kind, err := gguf.Value[string](f, "tokenizer.ggml.model")
	require.NoError(t, err)
	vocabulary, added := map[string]int{}, []dict{}
	for i, s := range tokens {
		if kind == "bert" && kinds[i] == 1 {
			if rest, ok := strings.CutPrefix(s, "▁"); ok {
				s = rest
			} else {
				s = "##" + s
			}
		}
		vocabulary[s] = i
		if kinds[i] == 3 || kinds[i] == 2 && kind != "bert" {
			added = append(added, dict{"id": i, "content": s, "special": true})
		}
	}
	model := dict{"type": "BPE", "vocab": vocabulary}
	all := dict{"added_tokens": added, "model": model}
	switch kind {
	case "t5":
		scores, err := gguf.Values[float32](f, "tokenizer.ggml.scores")
		require.NoError(t, err)
		list := make([][]any, len(tokens))
		for i, s := range tokens {
			list[i] = []any{s, scores[i]}
		}
		model["type"], model["unk_id"], model["byte_fallback"], model["vocab"] = "Unigram", 0, true, list
		all["normalizer"] = dict{"type": "Sequence", "normalizers": []dict{{"type": "Precompiled", "precompiled_charsmap": nil},
			{"type": "Strip", "strip_left": false, "strip_right": true}, {"type": "Replace", "pattern": dict{"Regex": " {2,}"}, "content": "▁"}}}
		all["pre_tokenizer"] = dict{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
		all["post_processor"] = dict{"type": "TemplateProcessing", "single": []dict{{"SpecialToken": dict{"id": "<s>"}}, {"Sequence": dict{"id": "A"}},
			{"SpecialToken": dict{"id": "</s>"}}}}
	case "bert":
		model["type"], model["unk_token"], model["continuing_subword_prefix"] = "WordPiece", "[UNK]", "##"
		all["normalizer"], all["pre_tokenizer"] = dict{"type": "BertNormalizer", "lowercase": true}, dict{"type": "BertPreTokenizer"}
	case "llama":
		model["byte_fallback"], model["unk_token"] = true, "<unk>"
		merges := []string{}
		for i, s := range tokens {
			for at := range s {
				left, right := s[:at], s[at:]
				if _, ok := vocabulary[left]; ok && kinds[i] == 1 && at > 0 {
					if _, ok := vocabulary[right]; ok {
						merges = append(merges, left+" "+right)
					}
				}
			}
		}
		model["merges"] = merges
		all["normalizer"] = dict{"type": "Sequence", "normalizers": []dict{{"type": "Prepend", "prepend": "▁"},
			{"type": "Replace", "pattern": dict{"String": " "}, "content": "▁"}}}
		all["post_processor"] = dict{"type": "TemplateProcessing", "single": []dict{{"SpecialToken": dict{"id": "<s>"}}, {"Sequence": dict{"id": "A"}}}}
	default:
		merges, err := gguf.Values[string](f, "tokenizer.ggml.merges")
		require.NoError(t, err)
		pairs := [][]string{}
		for _, m := range merges {
			pairs = append(pairs, strings.Split(m, " "))
		}
		model["merges"] = pairs
		all["normalizer"] = dict{"type": "NFC"}
		all["pre_tokenizer"] = dict{"type": "Sequence", "pretokenizers": []dict{{"type": "Split", "behavior": "Isolated", "pattern": dict{
			"Regex": `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`}},
			{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}}}
	}
	return all
}

var texts = []string{"", "the reaction of the other", " The  end\n\nis near: 1234!", "at on<|im_end|>the", "naïve ▁ 漢字\x00\xff"}

// TestOpen compares models from folders with the same from files: logits, tokens and metadata.
func TestOpen(t *testing.T) {
	dev, err := wavelane.Open(t.Context(), wavelane.WithDevice("cpu"))
	require.NoError(t, err)
	defer dev.Close()
	for kind, s := range samples {
		t.Run(kind, func(t *testing.T) {
			file, dir := written(t, kind, s, 1+len(kind)%3)
			f, err := pretrained.Open(dir, pretrained.Options{})
			require.NoError(t, err)
			defer f.Close()
			require.Equal(t, logits(t, file, dev), logits(t, f.File, dev))
			want, err := tokenizer.New(file)
			require.NoError(t, err)
			got, err := tokenizer.New(f.File)
			require.NoError(t, err)
			for _, text := range texts {
				tokens := want.Encode(text)
				require.Equal(t, tokens, got.Encode(text), "%q", text)
				require.Equal(t, want.Decode(tokens), got.Decode(tokens))
			}
			require.Equal(t, want.Wraps(), got.Wraps())
			require.Equal(t, []string{want.BOS(), want.EOS()}, []string{got.BOS(), got.EOS()})
			template, err := gguf.Value[string](f.File, "tokenizer.chat_template")
			require.NoError(t, err)
			require.Equal(t, "{{ messages }}", template)
			require.NoError(t, f.Close())
			_, err = f.Tensors()[0].Bytes()
			require.Error(t, err)
		})
	}
}

// logits are those of a model after a few tokens, or the states of an encoder.
func logits(t *testing.T, f *gguf.File, dev decoder.Device) []float32 {
	m, err := decoder.Read(f)
	require.NoError(t, err)
	w, err := m.Load(t.Context(), dev, decoder.LoadOptions{})
	require.NoError(t, err)
	defer w.Close()
	o := decoder.SessionOptions{Exact: true, Output: decoder.Output{States: m.Encoder}}
	s, err := w.NewSession(t.Context(), o)
	require.NoError(t, err)
	defer s.Close()
	n, err := s.Feed(t.Context(), 5, 1, 27, 30, 8, 8, 15, 31, 2)
	require.NoError(t, err)
	return slices.Concat(n.Logits, n.States)
}

// TestOpenQuantised compares matrices that are quantised when they are read with those that are quantised beforehand.
func TestOpenQuantised(t *testing.T) {
	for _, kind := range []string{"llama", "mistral", "mixtral"} {
		s := samples[kind]
		_, dir := written(t, kind, s, 2)
		plain, err := pretrained.Open(dir, pretrained.Options{})
		require.NoError(t, err)
		defer plain.Close()
		f, err := pretrained.Open(dir, pretrained.Options{Format: quant.Q4_1})
		require.NoError(t, err)
		defer f.Close()
		blocks := 0
		for i, x := range f.Tensors() {
			from := plain.Tensors()[i]
			got, err := x.Bytes()
			require.NoError(t, err)
			if x.Type() == from.Type() {
				want, err := from.Bytes()
				require.NoError(t, err)
				require.Equal(t, want, got, x.Name())
				continue
			}
			blocks++
			require.Equal(t, quant.Q4_1, x.Type())
			values := make([]float32, from.Len())
			require.NoError(t, from.Dequantize(values))
			m, err := quant.QuantizeMatrix(quant.Q4_1, x.Rows(), x.Cols(), values, quant.Options{})
			require.NoError(t, err)
			require.Equal(t, m.Data, got, x.Name())
			for _, part := range [][2]int{{0, 1}, {7, 100}, {len(got) - 3, 3}, {len(got) / 3, len(got) / 2}} { // of rows
				b := make([]byte, part[1])
				_, err := x.Reader().ReadAt(b, int64(part[0]))
				require.NoError(t, err)
				require.Equal(t, got[part[0]:][:part[1]], b)
			}
		}
		require.Greater(t, blocks, 10)
	}
}
