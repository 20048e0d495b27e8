package pretrained

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// config is config.json, and what is derived from it.
type config struct {
	values map[string]any
	err    error

	model        string // model_type
	architecture string // of a GGUF file
	headSize     int
	experts      int
	tied         bool // the output head is the embedding
	interleaved  bool // rows of queries and keys are in another order in GGUF files
	normsBelow   bool // norms are stored less 1
	postNorms    bool // what attention and feed-forward layers add is normalised
	// RoBERTa has rows of its table of positions before that of the first token.
	firstPosition int
	numbers       map[string][]float32 // tensors of factors
}

// architectures are those of GGUF files, by the model type of folders.
var architectures = map[string]string{"llama": "llama", "mistral": "llama", "mixtral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen2_moe": "qwen2moe",
	"qwen3_moe": "qwen3moe", "gemma": "gemma", "gemma2": "gemma2", "gemma3_text": "gemma3", "phi3": "phi3", "bert": "bert", "xlm-roberta": "bert"}

func (c *config) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// has reports whether there is a value that is not null.
func (c *config) has(key string) bool { return c.values[key] != nil }

// number is a finite number.
func (c *config) number(key string) float64 {
	x, ok := c.values[key].(float64)
	if !ok {
		c.fail(fmt.Errorf("%q is %v, need a number: %w", key, c.values[key], ErrMalformed))
	}
	return x
}

// numberOr is number, with a default for a value that is not there.
func (c *config) numberOr(key string, otherwise float64) float64 {
	if !c.has(key) {
		return otherwise
	}
	return c.number(key)
}

// size is an integer of at least 1.
func (c *config) size(key string) int {
	x := c.number(key)
	if c.err == nil && !(x >= 1 && x <= math.MaxInt32 && x == math.Trunc(x)) {
		c.fail(fmt.Errorf("%q is %v, need an integer from 1 to %d: %w", key, x, math.MaxInt32, ErrMalformed))
	}
	if c.err != nil {
		return 1
	}
	return int(x)
}

func (c *config) sizeOr(key string, otherwise int) int {
	if !c.has(key) {
		return otherwise
	}
	return c.size(key)
}

func (c *config) text(key string) string {
	s, _ := c.values[key].(string)
	return s
}

func (c *config) flag(key string) bool {
	b, _ := c.values[key].(bool)
	return b
}

// part is an object within, nil if there is none.
func (c *config) part(key string) *config {
	values, ok := c.values[key].(map[string]any)
	if !ok {
		return nil
	}
	return &config{values: values}
}

// must reports values other than the only ones that are known.
func (c *config) must(key string, known ...any) {
	if v := c.values[key]; v != nil && !slices.Contains(known, v) {
		c.fail(fmt.Errorf("%q is %v, need one of %v: %w", key, v, known, compute.ErrUnsupported))
	}
}

// write sets the metadata of the network.
func (c *config) write(m *image, folder string) error {
	c.model = c.text("model_type")
	var ok bool
	if c.architecture, ok = architectures[c.model]; !ok {
		return fmt.Errorf("\"model_type\" is %q: %w", c.model, compute.ErrUnsupported)
	}
	if c.has("quantization_config") {
		return fmt.Errorf("\"quantization_config\": weights that are quantised already: %w", compute.ErrUnsupported)
	}
	set := func(key string, v any) { m.set(c.architecture+"."+key, v) }
	u32 := func(key string, n int) { set(key, uint32(n)) }
	m.set("general.architecture", c.architecture)
	m.set("general.name", filepath.Base(filepath.Clean(folder)))
	heads, width := c.size("num_attention_heads"), c.size("hidden_size")
	u32("block_count", c.size("num_hidden_layers"))
	u32("embedding_length", width)
	u32("attention.head_count", heads)
	u32("feed_forward_length", c.size("intermediate_size"))
	c.headSize = c.sizeOr("head_dim", max(1, width/heads))
	if c.architecture == "bert" {
		c.encoder(set, folder)
		return c.err
	}
	u32("attention.head_count_kv", c.sizeOr("num_key_value_heads", heads))
	u32("attention.key_length", c.headSize)
	u32("attention.value_length", c.headSize)
	set("attention.layer_norm_rms_epsilon", float32(c.number("rms_norm_eps")))
	act := c.text("hidden_act")
	if c.has("hidden_activation") {
		act = c.text("hidden_activation")
	}
	c.interleaved = c.architecture == "llama"
	c.tied = c.flag("tie_word_embeddings")
	known := []string{"silu"}
	switch c.model {
	case "gemma", "gemma2", "gemma3_text":
		c.normsBelow, c.postNorms = true, c.model != "gemma"
		known = []string{"gelu_pytorch_tanh", "gelu"} // which the first files say and do not mean
		if !c.has("tie_word_embeddings") {
			c.tied = true
		}
		c.gemma(set, heads, width)
	case "mixtral":
		c.mixture(set, "num_local_experts", "")
	case "qwen2_moe", "qwen3_moe":
		c.must("decoder_sparse_step", 1.0)
		if list, ok := c.values["mlp_only_layers"].([]any); ok && len(list) > 0 {
			c.fail(fmt.Errorf("\"mlp_only_layers\" is %v: %w", list, compute.ErrUnsupported))
		}
		c.mixture(set, "num_experts", "moe_intermediate_size")
		if c.model == "qwen2_moe" {
			u32("expert_shared_feed_forward_length", c.size("shared_expert_intermediate_size"))
		}
		set("expert_weights_norm", c.flag("norm_topk_prob"))
	}
	if !slices.Contains(known, act) {
		c.fail(fmt.Errorf("\"hidden_act\" is %q, need one of %v: %w", act, known, compute.ErrUnsupported))
	}
	context := c.size("max_position_embeddings")
	window := c.sizeOr("sliding_window", context)
	switch c.model {
	case "mistral", "mixtral": // up to the length of the window, all is seen
		context = min(context, window)
	case "qwen2", "qwen3", "qwen2_moe", "qwen3_moe":
		if c.flag("use_sliding_window") {
			context = min(context, window)
		}
	}
	u32("context_length", context)
	c.rope(set, context)
	return c.err
}

func (c *config) mixture(set func(string, any), count, hidden string) {
	c.experts = c.size(count)
	set("expert_count", uint32(c.experts))
	set("expert_used_count", uint32(c.size("num_experts_per_tok")))
	if hidden != "" {
		set("expert_feed_forward_length", uint32(c.size(hidden)))
	}
}

// gemma is what Gemma has besides.
func (c *config) gemma(set func(string, any), heads, width int) {
	if c.model == "gemma" {
		return
	}
	if x := c.numberOr("attn_logit_softcapping", 0); x != 0 {
		set("attn_logit_softcapping", float32(x))
	}
	if x := c.numberOr("final_logit_softcapping", 0); x != 0 {
		set("final_logit_softcapping", float32(x))
	}
	// The largest models have scores that are scaled by the width, which readers of GGUF files know by the number of layers.
	scale, want, layers := c.numberOr("query_pre_attn_scalar", float64(c.headSize)), float64(c.headSize), c.size("num_hidden_layers")
	if c.model == "gemma2" && layers == 46 || c.model == "gemma3_text" && layers == 62 {
		want = float64(width / heads)
	}
	if scale != want {
		c.fail(fmt.Errorf("\"query_pre_attn_scalar\" is %v, need %v: %w", scale, want, compute.ErrUnsupported))
	}
	set("attention.sliding_window", uint32(c.sizeOr("sliding_window", 4096)))
	period := 2
	if c.model == "gemma3_text" {
		period = c.sizeOr("sliding_window_pattern", 6)
		set("attention.sliding_window_pattern", uint32(period))
		set("rope.freq_base_swa", float32(c.numberOr("rope_local_base_freq", 10000)))
	}
	list, _ := c.values["layer_types"].([]any)
	for i, v := range list {
		want := "sliding_attention"
		if (i+1)%period == 0 {
			want = "full_attention"
		}
		if v != want {
			c.fail(fmt.Errorf("\"layer_types\" has %v as number %d, need %s: %w", v, i, want, compute.ErrUnsupported))
		}
	}
}

// encoder is the metadata of BERT.
func (c *config) encoder(set func(string, any), folder string) {
	set("attention.layer_norm_epsilon", float32(c.number("layer_norm_eps")))
	set("attention.head_count_kv", uint32(c.size("num_attention_heads")))
	context := c.size("max_position_embeddings")
	if c.model == "xlm-roberta" {
		c.firstPosition = int(c.numberOr("pad_token_id", 1)) + 1
		if c.firstPosition < 1 || c.firstPosition >= context {
			c.fail(fmt.Errorf("\"pad_token_id\" is %d, and there are %d positions: %w", c.firstPosition-1, context, ErrMalformed))
		}
		context -= c.firstPosition
	}
	set("context_length", uint32(max(context, 1)))
	set("attention.causal", false)
	c.must("hidden_act", "gelu")
	c.must("position_embedding_type", "absolute")
	c.must("is_decoder", false)
	var pooling map[string]any
	if err := optionalJSON(folder, filepath.Join("1_Pooling", "config.json"), &pooling); err != nil {
		c.fail(err)
	}
	for i, key := range []string{"mean_tokens", "cls_token", "lasttoken"} {
		if pooling["pooling_mode_"+key] == true {
			set("pooling_type", uint32(i+1))
			return
		}
	}
}
