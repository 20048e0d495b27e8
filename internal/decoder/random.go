package decoder

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/tokenizer"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Random is a model with weights at random: it says nothing, but computes what one of its sizes computes.
type Random struct {
	Architecture string // one of those that [Read] knows
	Tokenizer    string // "llama" (SentencePiece), "t5" (Unigram), "gpt2" (byte-level BPE) or "bert" (WordPiece)
	Blocks       int
	Width        int // a multiple of Heads, and of the block length of the formats
	Hidden       int
	Heads        int
	KVHeads      int
	HeadSize     int // 0 is Width/Heads
	Context      int
	Stretch      float32 // times that positions are stretched (linear scaling), if not 0
	Tied         bool    // the output head is the embedding
	Factors      bool    // of the frequencies of the rotary embedding, as Llama 3 has them; for phi3 short and long ones
	Yarn         float32 // times that a quarter of the context was stretched by YaRN, if not 0
	Window       int     // sliding window of architectures that have one
	Rotated      int     // leading elements of heads that are rotated, if not all
	Experts      int     // of a feed-forward layer, if not 0
	UsedExperts  int     // that a token takes
	ExpertHidden int     // of an expert; 0 is Hidden
	SharedHidden int     // of an expert that all tokens take, for qwen2moe
	ChatTemplate string
	End          int            // token that ends texts, if not 0; otherwise the tokenizer's
	Metadata     map[string]any // more of it
	Seed         uint64
	// Format is that of a matrix; without it all are Float32. Vectors are.
	Format func(tensor string) quant.Type
}

// Mixed is how most models are quantised that go by the name of Q4_K_M.
func Mixed(tensor string) quant.Type {
	for _, precise := range []string{"attn_v", "ffn_down", "output.weight", "token_embd"} {
		if strings.Contains(tensor, precise) && !strings.Contains(tensor, "attn_output") {
			return quant.Q6_K
		}
	}
	return quant.Q4_K
}

// Write writes the model as a GGUF file. Errors wrap [compute.ErrArgument] and those of quant and gguf.
func (r Random) Write(out io.Writer) error {
	_, ok := architectureOf(r.Architecture)
	least := min(r.Blocks, r.Width, r.Hidden, r.Heads, r.KVHeads, r.Context)
	if !ok || least < 1 || r.HeadSize < 0 || r.HeadSize == 0 && r.Width%r.Heads != 0 || !(r.Stretch >= 0) {
		return fmt.Errorf("decoder: random model %+v: %w", r, compute.ErrArgument)
	}
	wide := r.HeadSize > 0
	if !wide {
		r.HeadSize = r.Width / r.Heads
	}
	w := &randomWriter{Writer: gguf.NewWriter(out), Random: r}
	w.metadata()
	if wide {
		w.set(w.Architecture+".attention.key_length", uint32(w.HeadSize))
		w.set(w.Architecture+".attention.value_length", uint32(w.HeadSize))
		if w.Rotated == 0 {
			w.set(w.Architecture+".rope.dimension_count", uint32(w.HeadSize))
		}
	}
	if w.Rotated > 0 {
		w.set(w.Architecture+".rope.dimension_count", uint32(w.Rotated))
	}
	if w.Yarn > 0 {
		w.set(w.Architecture+".rope.scaling.type", "yarn")
		w.set(w.Architecture+".rope.scaling.factor", w.Yarn)
		w.set(w.Architecture+".rope.scaling.original_context_length", uint32(w.Context/4))
	}
	if w.Window > 0 {
		w.set(w.Architecture+".attention.sliding_window", uint32(w.Window))
	}
	if w.Architecture == "gemma2" {
		w.set("gemma2.attn_logit_softcapping", float32(5))
		w.set("gemma2.final_logit_softcapping", float32(3))
	}
	if w.Architecture == "phi3" && w.Factors {
		w.set("phi3.rope.scaling.original_context_length", uint32(w.Context/2))
		w.set("phi3.rope.scaling.attn_factor", float32(1.25))
	}
	if w.Stretch > 0 {
		w.set(w.Architecture+".rope.scaling.type", "linear")
		w.set(w.Architecture+".rope.scaling.factor", w.Stretch)
	}
	if w.Experts > 0 {
		if w.ExpertHidden == 0 {
			w.ExpertHidden = w.Hidden
		}
		w.set(w.Architecture+".expert_count", uint32(w.Experts))
		w.set(w.Architecture+".expert_used_count", uint32(w.UsedExperts))
		w.set(w.Architecture+".expert_feed_forward_length", uint32(w.ExpertHidden))
		if w.SharedHidden > 0 {
			w.set(w.Architecture+".expert_shared_feed_forward_length", uint32(w.SharedHidden))
		}
	}
	tokens := tokenizer.WriteSmall(func(key string, value any) {
		if key == "tokenizer.ggml.eos_token_id" && w.End != 0 {
			value = uint32(w.End)
		}
		w.set(key, value)
	}, w.Tokenizer)
	if w.ChatTemplate != "" {
		w.set("tokenizer.chat_template", w.ChatTemplate)
	}
	for _, key := range slices.Sorted(maps.Keys(w.Metadata)) {
		w.set(key, w.Metadata[key])
	}
	w.tensors(tokens, w.declare)
	w.tensors(tokens, w.fill)
	if w.err == nil {
		w.err = w.Close()
	}
	if w.err != nil {
		return fmt.Errorf("decoder: random model: %w", w.err)
	}
	return nil
}

// randomWriter keeps the first error.
type randomWriter struct {
	*gguf.Writer
	Random
	err error
}

func (w *randomWriter) set(key string, value any) {
	if w.err == nil {
		w.err = w.Set(key, value)
	}
}

func (w *randomWriter) metadata() {
	w.set("general.architecture", w.Architecture)
	w.set("general.name", "random weights")
	for _, m := range []struct {
		key   string
		value any
	}{{"block_count", uint32(w.Blocks)}, {"context_length", uint32(w.Context)}, {"embedding_length", uint32(w.Width)},
		{"feed_forward_length", uint32(w.Hidden)}, {"attention.head_count", uint32(w.Heads)},
		{"attention.head_count_kv", uint32(w.KVHeads)},
		{"attention.layer_norm_rms_epsilon", float32(1e-5)}, {"rope.freq_base", float32(50000)}} {
		if w.Architecture == "bert" {
			switch m.key {
			case "rope.freq_base":
				continue
			case "attention.layer_norm_rms_epsilon":
				m.key = "attention.layer_norm_epsilon"
			}
		}
		w.set(w.Architecture+"."+m.key, m.value)
	}
	if w.Architecture == "bert" {
		w.set("bert.attention.causal", false)
		w.set("bert.pooling_type", uint32(1)) // the mean
	}
}

// tensors calls f for all of them, with shapes as the file has them.
func (w *randomWriter) tensors(tokens int, f func(name string, shape ...int)) {
	known, _ := architectureOf(w.Architecture)
	q, kv := w.HeadSize*w.Heads, w.HeadSize*w.KVHeads
	f("token_embd.weight", w.Width, tokens)
	if known.encoder {
		w.encoder(f)
		return
	}
	pairs := w.HeadSize / 2
	if w.Rotated > 0 {
		pairs = w.Rotated / 2
	}
	switch {
	case w.Factors && w.Architecture == "phi3":
		f("rope_factors_short.weight", pairs)
		f("rope_factors_long.weight", pairs)
	case w.Factors:
		f("rope_freqs.weight", pairs)
	}
	f("output_norm.weight", w.Width)
	if !w.Tied {
		f("output.weight", w.Width, tokens)
	}
	for i := range w.Blocks {
		at := fmt.Sprintf("blk.%d.", i)
		f(at+"attn_norm.weight", w.Width)
		if known.fused {
			f(at+"attn_qkv.weight", w.Width, q+2*kv)
		} else {
			f(at+"attn_q.weight", w.Width, q)
			f(at+"attn_k.weight", w.Width, kv)
			f(at+"attn_v.weight", w.Width, kv)
		}
		if known.biases {
			f(at+"attn_q.bias", q)
			f(at+"attn_k.bias", kv)
			f(at+"attn_v.bias", kv)
		}
		if known.headNorms {
			f(at+"attn_q_norm.weight", w.HeadSize)
			f(at+"attn_k_norm.weight", w.HeadSize)
		}
		f(at+"attn_output.weight", q, w.Width)
		if known.postNorms {
			f(at+"post_attention_norm.weight", w.Width)
			f(at+"post_ffw_norm.weight", w.Width)
		}
		f(at+"ffn_norm.weight", w.Width)
		if w.Experts > 0 {
			w.experts(at, f)
			continue
		}
		if known.fused {
			f(at+"ffn_up.weight", w.Width, 2*w.Hidden)
		} else {
			f(at+"ffn_gate.weight", w.Width, w.Hidden)
			f(at+"ffn_up.weight", w.Width, w.Hidden)
		}
		f(at+"ffn_down.weight", w.Hidden, w.Width)
	}
}

// experts is tensors for a mixture of experts.
func (w *randomWriter) experts(at string, f func(name string, shape ...int)) {
	f(at+"ffn_gate_inp.weight", w.Width, w.Experts)
	f(at+"ffn_gate_exps.weight", w.Width, w.ExpertHidden, w.Experts)
	f(at+"ffn_up_exps.weight", w.Width, w.ExpertHidden, w.Experts)
	f(at+"ffn_down_exps.weight", w.ExpertHidden, w.Width, w.Experts)
	if w.SharedHidden > 0 {
		f(at+"ffn_gate_inp_shexp.weight", w.Width)
		f(at+"ffn_gate_shexp.weight", w.Width, w.SharedHidden)
		f(at+"ffn_up_shexp.weight", w.Width, w.SharedHidden)
		f(at+"ffn_down_shexp.weight", w.SharedHidden, w.Width)
	}
}

// encoder is tensors for an encoder.
func (w *randomWriter) encoder(f func(name string, shape ...int)) {
	f("position_embd.weight", w.Width, w.Context)
	f("token_types.weight", w.Width, 2)
	f("token_embd_norm.weight", w.Width)
	f("token_embd_norm.bias", w.Width)
	q, kv := w.HeadSize*w.Heads, w.HeadSize*w.KVHeads
	for i := range w.Blocks {
		for _, x := range []struct {
			name  string
			shape []int
		}{{"attn_q", []int{w.Width, q}}, {"attn_k", []int{w.Width, kv}}, {"attn_v", []int{w.Width, kv}}, {"attn_output", []int{q, w.Width}},
			{"attn_output_norm", []int{w.Width}}, {"ffn_up", []int{w.Width, w.Hidden}}, {"ffn_down", []int{w.Hidden, w.Width}}, {"layer_output_norm", []int{w.Width}}} {
			at := fmt.Sprintf("blk.%d.%s", i, x.name)
			f(at+".weight", x.shape...)
			f(at+".bias", x.shape[len(x.shape)-1])
		}
	}
}

func (w *randomWriter) format(name string, shape []int) quant.Type {
	if w.Format == nil || len(shape) < 2 || isRouter(name) {
		return quant.F32
	}
	return w.Format(name)
}

func (w *randomWriter) declare(name string, shape ...int) {
	if w.err == nil {
		dims := slices.Clone(shape)
		slices.Reverse(dims)
		w.err = w.AddTensor(name, w.format(name, shape), dims...)
	}
}

// isRouter reports what chooses experts, or how much of one is taken.
func isRouter(name string) bool { return strings.Contains(name, "ffn_gate_inp") }

// fill writes the data of a tensor: of matrices so that products are about as large as what is multiplied, of vectors about 1.
func (w *randomWriter) fill(name string, shape ...int) {
	if w.err != nil {
		return
	}
	random := rand.New(rand.NewPCG(w.Seed, 0))
	w.Seed++
	n, mean, deviation := 1, 0.0, 1/math.Sqrt(float64(shape[0]))
	for _, s := range shape {
		n *= s
	}
	switch {
	case (strings.HasPrefix(name, "token_embd.") || strings.HasPrefix(name, "position")) && !w.Tied:
		deviation = 1
	case strings.HasSuffix(name, ".bias"):
		deviation = 0.3
	case isRouter(name): // whose choices are clear: small errors seldom change them
		deviation *= 6
	case len(shape) == 1:
		mean, deviation = 1, 0.1
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(mean + deviation*random.NormFloat64())
	}
	m, err := quant.QuantizeMatrix(w.format(name, shape), n/shape[0], shape[0], x, quant.Options{Workers: runtime.GOMAXPROCS(0)})
	if err == nil {
		_, err = w.Writer.Write(m.Data)
	}
	if err != nil {
		w.err = fmt.Errorf("tensor %s: %w", name, err)
	}
}
