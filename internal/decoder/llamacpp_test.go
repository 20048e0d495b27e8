//go:build !js

package decoder

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

var writeModels = flag.String("models", "", "folder to write the models to that testdata/llamacpp.py gives to llama.cpp")

// llamaCppModels have between them what files of the architectures differ in.
var llamaCppModels = map[string]Random{
	"llama": {Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 8, KVHeads: 2, Context: 64,
		Factors: true, Seed: 1},
	"llama-wide": {Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 4, HeadSize: 24,
		Context: 64, Stretch: 4, Tied: true, Seed: 2},
	"llama-mixed": {Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 256, Hidden: 512, Heads: 8, KVHeads: 2, Context: 64,
		Seed: 3, Format: Mixed},
	"qwen2": {Architecture: "qwen2", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Seed: 4},
	"qwen2-mixed": {Architecture: "qwen2", Tokenizer: "gpt2", Blocks: 2, Width: 128, Hidden: 256, Heads: 4, KVHeads: 2, Context: 64,
		Tied: true, Seed: 5, Format: func(name string) quant.Type {
			switch {
			case strings.Contains(name, "attn_q"):
				return quant.Q5_0
			case strings.Contains(name, "attn_k"):
				return quant.F16
			case strings.Contains(name, "ffn_up"):
				return quant.Q4_1
			}
			return quant.Q8_0
		}},
	"qwen3": {Architecture: "qwen3", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 24, Context: 64, Yarn: 4,
		Seed: 6},
	"gemma": {Architecture: "gemma", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 2, KVHeads: 1, HeadSize: 64, Context: 64, Tied: true,
		Seed: 7},
	"gemma2": {Architecture: "gemma2", Tokenizer: "llama", Blocks: 3, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 32, Context: 64, Tied: true,
		Window: 7, Seed: 8},
	"gemma3": {Architecture: "gemma3", Tokenizer: "llama", Blocks: 7, Width: 64, Hidden: 96, Heads: 4, KVHeads: 1, HeadSize: 32, Context: 64, Tied: true,
		Window: 7, Stretch: 8, Seed: 9},
	"mixtral": {Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Experts: 6, UsedExperts: 2,
		Seed: 11},
	"mixtral-mixed": {Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 256, Hidden: 512, Heads: 8, KVHeads: 2, Context: 64, Experts: 4,
		UsedExperts: 2, Seed: 12, Format: Mixed},
	"qwen2moe": {Architecture: "qwen2moe", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Experts: 7, UsedExperts: 3,
		ExpertHidden: 32, SharedHidden: 96, Seed: 13},
	"qwen3moe": {Architecture: "qwen3moe", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 24, Context: 64, Experts: 12,
		UsedExperts: 4, ExpertHidden: 40, Seed: 14},
	"phi3": {Architecture: "phi3", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Factors: true, Rotated: 12,
		Seed: 10},
}

// TestLlamaCppLogits compares with the logits that llama.cpp's CPU code has, of weights as they are and of weights and
// activations in 8 bits.
func TestLlamaCppLogits(t *testing.T) {
	if *writeModels != "" {
		for name, m := range llamaCppModels {
			f, err := os.Create(filepath.Join(*writeModels, name+".gguf"))
			require.NoError(t, err)
			require.NoError(t, m.Write(f))
			require.NoError(t, f.Close())
		}
		return
	}
	golden, err := gguf.Open(filepath.Join("testdata", "logits.gguf"))
	require.NoError(t, err)
	defer golden.Close()
	tokens, err := gguf.Values[int32](golden, "tokens")
	require.NoError(t, err)
	rows, err := gguf.Values[int32](golden, "rows")
	require.NoError(t, err)
	dev := device(t, "cpu")
	for name, model := range llamaCppModels {
		w := loaded(t, opened(t, model), dev, LoadOptions{})
		for _, c := range []struct {
			of       string
			q8       bool
			cache    quant.Type
			accuracy float64
		}{{name, false, quant.F32, 2e-5}, {name, false, quant.F16, 5e-3}, {name + ".q8", true, quant.F32, 0.15}} {
			want, err := golden.Tensor(c.of)
			if model.Format == nil && c.q8 {
				require.ErrorIs(t, err, gguf.ErrMissing)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, []int{len(rows), w.Vocabulary}, want.Shape())
			logits := make([]float32, want.Len())
			require.NoError(t, want.Dequantize(logits))
			s, err := w.NewSession(t.Context(), SessionOptions{Chunk: 7, Exact: !c.q8, Cache: c.cache})
			require.NoError(t, err)
			defer s.Close()
			for i, row := range rows {
				got, err := s.Feed(t.Context(), tokens[s.Position():row+1]...)
				require.NoError(t, err)
				row := make([]float64, w.Vocabulary)
				for j := range row {
					row[j] = float64(logits[i*w.Vocabulary+j])
				}
				off := deviation(row, got.Logits)
				if model.Architecture[0] == 'g' { // llama.cpp looks GELU up in a table of float16
					c.accuracy = max(c.accuracy, 5e-3)
				}
				t.Logf("%s, keys and values in %v, after %d tokens: %.1e", c.of, c.cache, s.Position(), off)
				require.LessOrEqual(t, off, c.accuracy)
			}
		}
	}
}
