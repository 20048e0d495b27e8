//go:build !js

package pretrained_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/internal/pretrained"
	"github.com/wavelane/wavelane/internal/tokenizer"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
	"github.com/wavelane/wavelane/quant/safetensors"
)

// TestOpenErrors changes a file of a folder.
func TestOpenErrors(t *testing.T) {
	change := func(with dict) func(dict) {
		return func(c dict) { maps.Copy(c, with) }
	}
	model := func(with dict) func(dict) {
		return func(c dict) { maps.Copy(c["model"].(dict), with) }
	}
	for _, c := range []struct {
		kind, file string
		edit       func(c dict)
		want       error
		says       string
	}{
		{"llama", "config.json", change(dict{"model_type": "toaster"}), compute.ErrUnsupported, "toaster"},
		{"llama", "config.json", change(dict{"hidden_size": "wide"}), pretrained.ErrMalformed, "hidden_size"},
		{"llama", "config.json", change(dict{"hidden_size": 1e30}), pretrained.ErrMalformed, "hidden_size"},
		{"llama", "config.json", change(dict{"num_attention_heads": 0}), pretrained.ErrMalformed, "num_attention_heads"},
		{"llama", "config.json", change(dict{"num_attention_heads": nil}), pretrained.ErrMalformed, "num_attention_heads"},
		{"llama", "config.json", change(dict{"head_dim": 10}), compute.ErrShape, "self_attn"},
		{"llama", "config.json", change(dict{"hidden_act": "relu"}), compute.ErrUnsupported, "relu"},
		{"llama", "config.json", change(dict{"quantization_config": dict{"bits": 4}}), compute.ErrUnsupported, "quantization_config"},
		{"llama", "config.json", change(dict{"rope_scaling": dict{"type": "dynamic", "factor": 2}}), compute.ErrUnsupported, "dynamic"},
		{"llama", "config.json", change(dict{"rope_scaling": dict{"type": "linear"}}), pretrained.ErrMalformed, "factor"},
		{"llama", "config.json", change(dict{"rope_scaling": dict{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1,
			"original_max_position_embeddings": 16}}), pretrained.ErrMalformed, "factors"},
		{"qwen3", "config.json", change(dict{"rope_parameters": dict{"full_attention": dict{}}}), compute.ErrUnsupported, "rope_parameters"},
		{"phi3", "config.json", change(dict{"rope_scaling": dict{"type": "longrope", "short_factor": []int{1}, "long_factor": []int{1}}}), compute.ErrShape,
			"short_factor"},
		{"gemma2", "config.json", change(dict{"query_pre_attn_scalar": 99}), compute.ErrUnsupported, "query_pre_attn_scalar"},
		{"gemma2", "config.json", change(dict{"layer_types": []string{"full_attention"}}), compute.ErrUnsupported, "layer_types"},
		{"mixtral", "config.json", change(dict{"num_local_experts": 5}), compute.ErrShape, "5 experts"},
		{"mixtral", "config.json", change(dict{"num_local_experts": 2}), compute.ErrShape, "expert 2 of 2"},
		{"qwen2_moe", "config.json", change(dict{"mlp_only_layers": []int{1}}), compute.ErrUnsupported, "mlp_only_layers"},
		{"qwen2_moe", "config.json", change(dict{"decoder_sparse_step": 2}), compute.ErrUnsupported, "decoder_sparse_step"},
		{"bert", "config.json", change(dict{"position_embedding_type": "relative_key"}), compute.ErrUnsupported, "relative_key"},
		{"llama", "tokenizer.json", model(dict{"type": "WordLevel"}), compute.ErrUnsupported, "WordLevel"},
		{"llama", "tokenizer.json", model(dict{"type": "Unigram"}), pretrained.ErrMalformed, "vocab"},
		{"xlm-roberta", "config.json", change(dict{"pad_token_id": 65}), pretrained.ErrMalformed, "pad_token_id"},
		{"xlm-roberta", "config.json", change(dict{"pad_token_id": -7}), pretrained.ErrMalformed, "pad_token_id"},
		{"xlm-roberta", "tokenizer.json", model(dict{"unk_id": 1 << 40}), pretrained.ErrMalformed, "unk_id"},
		{"xlm-roberta", "tokenizer.json", model(dict{"unk_id": nil}), pretrained.ErrMalformed, "unk_id"},
		{"xlm-roberta", "tokenizer.json", model(dict{"vocab": [][]any{{"a", 0}, {"a", 1}}}), pretrained.ErrMalformed, "two numbers"},
		{"xlm-roberta", "tokenizer.json", model(dict{"vocab": [][]any{{1, "a"}}}), pretrained.ErrMalformed, "vocab"},
		{"xlm-roberta", "tokenizer.json", change(dict{"normalizer": dict{"type": "Lowercase"}}), compute.ErrUnsupported, "Lowercase"},
		{"xlm-roberta", "tokenizer.json", change(dict{"normalizer": dict{"type": "Precompiled", "precompiled_charsmap": "?"}}), pretrained.ErrMalformed, "base64"},
		{"xlm-roberta", "tokenizer.json", change(dict{"pre_tokenizer": dict{"type": "Digits"}}), compute.ErrUnsupported, "Digits"},
		{"xlm-roberta", "tokenizer.json", change(dict{"post_processor": dict{"type": "TemplateProcessing", "single": []dict{{"SpecialToken": dict{"id": "[X]"}}}}}),
			pretrained.ErrMalformed, "[X]"},
		{"llama", "tokenizer.json", model(dict{"vocab": dict{"a": 1 << 40}}), pretrained.ErrMalformed, "number"},
		{"llama", "tokenizer.json", model(dict{"vocab": dict{"a": -1}}), pretrained.ErrMalformed, "-1"},
		{"llama", "tokenizer.json", model(dict{"vocab": []int{1}}), pretrained.ErrMalformed, "vocab"},
		{"llama", "tokenizer.json", model(dict{"merges": []string{"ab"}}), pretrained.ErrMalformed, "merge 0"},
		{"llama", "tokenizer.json", model(dict{"merges": 5}), pretrained.ErrMalformed, "merges"},
		{"llama", "tokenizer.json", change(dict{"normalizer": dict{"type": "Lowercase"}}), compute.ErrUnsupported, "Lowercase"},
		{"llama", "tokenizer.json", change(dict{"added_tokens": []dict{{"id": 5, "content": "five"}}}), pretrained.ErrMalformed, "five"},
		{"qwen2", "tokenizer.json", model(dict{"ignore_merges": true}), compute.ErrUnsupported, "cut"},
		{"qwen2", "tokenizer.json", change(dict{"pre_tokenizer": dict{"type": "Whitespace"}}), compute.ErrUnsupported, "Whitespace"},
		{"qwen2", "tokenizer.json", change(dict{"pre_tokenizer": dict{"type": "Split", "behavior": "Isolated", "pattern": dict{"Regex": "a+"}}}),
			compute.ErrUnsupported, "a+"},
		{"bert", "tokenizer.json", change(dict{"normalizer": dict{"type": "BertNormalizer", "lowercase": false}}), compute.ErrUnsupported, "lower case"},
		{"bert", "tokenizer.json", model(dict{"unk_token": "[NOTHING]"}), pretrained.ErrMalformed, "[NOTHING]"},
		{"llama", "generation_config.json", change(dict{"eos_token_id": []int{1 << 40}}), pretrained.ErrMalformed, "eos_token_id"},
		{"llama", "generation_config.json", change(dict{"eos_token_id": []int{4, 5, 6, 7}}), compute.ErrUnsupported, "tokens"},
		{"llama", "model.safetensors.index.json", change(dict{"weight_map": dict{"a": "../model.safetensors"}}), pretrained.ErrMalformed, "../model.safetensors"},
		{"llama", "model.safetensors.index.json", change(dict{"weight_map": dict{}}), pretrained.ErrMalformed, "names no files"},
		{"llama", "model.safetensors.index.json", change(dict{"weight_map": dict{"a": "other.safetensors"}}), fs.ErrNotExist, "other.safetensors"},
	} {
		t.Run(c.kind+"/"+c.says, func(t *testing.T) {
			_, dir := written(t, c.kind, samples[c.kind], 2)
			v := dict{}
			if b, err := os.ReadFile(filepath.Join(dir, c.file)); err == nil {
				require.NoError(t, json.Unmarshal(b, &v))
			}
			c.edit(v)
			save(t, dir, c.file, v)
			f, err := pretrained.Open(dir, pretrained.Options{})
			if err == nil { // what the network finds
				defer f.Close()
				_, err = decoder.Read(f.File)
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestOpenTensors has tensors that do not belong to the model.
func TestOpenTensors(t *testing.T) {
	for _, c := range []struct {
		name, dtype string
		shape       []int
		want        error
	}{
		{"model.layers.0.self_attn.o_proj.bias", "F32", []int{64}, compute.ErrUnsupported},
		{"model.vision_tower.weight", "F32", []int{64}, compute.ErrUnsupported},
		{"model.norm.weight", "F64", []int{64}, compute.ErrUnsupported},
		{"model.norm.weight", "F32", []int{}, compute.ErrShape},
		{"model.layers.99999999999999999999.input_layernorm.weight", "F32", []int{64}, compute.ErrUnsupported},
		{"model.layers.0.self_attn.q_proj.weight", "F32", []int{7, 64}, compute.ErrShape},
		{"model.layers.0.mlp.experts.0.up_proj.weight", "F32", []int{7, 64}, compute.ErrShape},
	} {
		_, dir := written(t, "llama", samples["llama"], 1)
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), func(w *safetensors.Writer) error {
			if err := w.AddTensor(c.name, c.dtype, c.shape...); err != nil {
				return err
			}
			n := map[string]int{"F32": 4, "F64": 8}[c.dtype]
			for _, s := range c.shape {
				n *= s
			}
			_, err := w.Write(make([]byte, n))
			return err
		}))
		_, err := pretrained.Open(dir, pretrained.Options{})
		require.ErrorIs(t, err, c.want, c.name)
		require.ErrorContains(t, err, c.name)
	}
	_, err := pretrained.Open(t.TempDir(), pretrained.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, dir := written(t, "llama", samples["llama"], 1)
	_, err = pretrained.Open(dir, pretrained.Options{Format: quant.I8})
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	_, err = pretrained.Open(dir, pretrained.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestFactors compares the factors of Llama 3.1 with those that its paper's code gives for a few frequencies.
func TestFactors(t *testing.T) {
	s := samples["llama"]
	s.config = dict{"rope_theta": 500000.0, "head_dim": 128, "rope_scaling": dict{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
		"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}
	s.HeadSize, s.Stretch = 128, 0
	_, dir := written(t, "llama", s, 1)
	f, err := pretrained.Open(dir, pretrained.Options{})
	require.NoError(t, err)
	defer f.Close()
	x, err := f.Tensor("rope_freqs.weight")
	require.NoError(t, err)
	got := make([]float32, 64)
	require.NoError(t, x.Dequantize(got))
	require.EqualValues(t, 1, got[0])
	require.EqualValues(t, 1, got[28])
	// Number 32 turns once in 2π·√500000 = 4442.9 positions: (8192/4442.9 − 1)/3 = 0.28129 of it is not stretched.
	require.InDelta(t, 1/((1-0.281285)/8+0.281285), got[32], 1e-3)
	require.EqualValues(t, 8, got[36])
	require.EqualValues(t, 8, got[63])
	_, err = decoder.Read(f.File)
	require.NoError(t, err)
}

// FuzzOpen changes what the files in JSON say: errors, and no more memory than the files have, or a model.
func FuzzOpen(f *testing.F) {
	kinds := []string{"llama", "qwen2", "mixtral", "bert", "xlm-roberta"}
	dirs := make([]string, len(kinds))
	for i, kind := range kinds {
		_, dir := written(f, kind, samples[kind], 1)
		var all [2][]byte
		for j, name := range []string{"config.json", "tokenizer.json"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(f, err)
			all[j] = b
		}
		f.Add(i, all[0], all[1], []byte(`{"eos_token_id": [1, 2]}`))
		dirs[i] = dir
	}
	f.Fuzz(func(t *testing.T, kind int, config, tokens, generation []byte) {
		kind = int(uint(kind) % uint(len(kinds)))
		for name, b := range map[string][]byte{"config.json": config, "tokenizer.json": tokens, "generation_config.json": generation} {
			require.NoError(t, os.WriteFile(filepath.Join(dirs[kind], name), b, 0o666))
		}
		m, err := pretrained.Open(dirs[kind], pretrained.Options{Format: quant.Q8_0})
		if err != nil {
			return
		}
		defer m.Close()
		readAll(t, m.File)
	})
}

// readAll uses what there is of a model.
func readAll(t *testing.T, f *gguf.File) {
	for _, x := range f.Tensors() {
		_, err := x.Bytes()
		require.NoError(t, err, x.Name())
	}
	if text, err := tokenizer.New(f); err == nil {
		text.Decode(text.Encode(fmt.Sprint(texts)))
	}
	_, _ = decoder.Read(f)
}
