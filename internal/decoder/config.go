package decoder

import (
	"errors"
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Config is the sizes of a model.
type Config struct {
	Architecture string // one of those that architectureOf knows
	Name         string // general.name, may be empty
	Blocks       int
	Width        int // of the residual stream
	Hidden       int // of a feed-forward layer
	Heads        int // of queries
	KVHeads      int // of keys and values, each of which serves Heads/KVHeads of queries
	HeadSize     int
	Vocabulary   int
	Context      int // positions that the model was trained on
	Epsilon      float32
	Rope         compute.RopeOptions
	RopeScale    float32 // by which rotated elements of queries and keys are multiplied; 0 is 1
	Original     int     // context before it was stretched, up to which the short factors of a file hold

	Window     int                 // positions that a query sees in blocks with a sliding window; 0 for none
	Period     int                 // of so many blocks with windows, the last has none
	WindowRope compute.RopeOptions // of blocks with a window
	ScoreScale float32             // of attention; 0 is 1/√HeadSize
	ScoreCap   float32             // soft cap of the scores of attention, 0 for none
	LogitCap   float32             // soft cap of logits, 0 for none
	EmbedScale float32             // of embeddings; 0 is 1
	GELU       bool                // instead of SiLU
	Encoder    bool                // tokens see those after them, too, and none comes next
	ExpertConfig
	first       int       // token of the rows that the embedding and the head have, of a model in parts
	known       int       // of these rows
	ropeFactors []float32 // by which frequencies are divided, computed from metadata; nil for none
}

// windowed reports blocks with a sliding window.
func (c *Config) windowed(block int) bool { return c.Window > 0 && block%c.Period < c.Period-1 }

// architecture is what networks differ in.
type architecture struct {
	neox      bool // elements of a pair are half a head apart; converters to GGUF reorder those of Llama so that they are neighbours
	biases    bool // queries, keys and values have biases; other architectures may have them
	headNorms bool // each head of queries and keys is normalised
	postNorms bool // what attention and feed-forward layers add is normalised
	fused     bool // queries, keys and values are one matrix, gate and up another
	gemma     bool // embeddings are scaled, GELU
	encoder   bool // BERT: positions have embeddings, norms come after what is added
	window    int  // sliding window by default
	period    int  // see Config, by default

	mixture    uint8 // whether feed-forward layers are mixtures of experts
	shared     bool  // of these, one takes all tokens
	expertNorm bool  // see ExpertConfig, by default
}

// Whether feed-forward layers are mixtures of experts.
const (
	neverMixed uint8 = iota
	maybeMixed
	alwaysMixed
)

func architectureOf(name string) (architecture, bool) {
	switch name {
	case "llama":
		return architecture{mixture: maybeMixed, expertNorm: true}, true
	case "qwen2":
		return architecture{neox: true, biases: true}, true
	case "qwen3":
		return architecture{neox: true, headNorms: true}, true
	case "qwen2moe":
		return architecture{neox: true, biases: true, mixture: alwaysMixed, shared: true}, true
	case "qwen3moe":
		return architecture{neox: true, headNorms: true, mixture: alwaysMixed, expertNorm: true}, true
	case "gemma":
		return architecture{neox: true, gemma: true}, true
	case "gemma2":
		return architecture{neox: true, gemma: true, postNorms: true, window: 4096, period: 2}, true
	case "gemma3":
		return architecture{neox: true, gemma: true, postNorms: true, headNorms: true, period: 6}, true
	case "phi3":
		return architecture{neox: true, fused: true}, true
	case "bert":
		return architecture{encoder: true}, true
	}
	return architecture{}, false
}

const architectureNames = "llama, qwen2, qwen3, qwen2moe, qwen3moe, gemma, gemma2, gemma3, phi3 or bert"

// metadata reads the keys of an architecture and keeps the first error.
type metadata struct {
	*gguf.File
	prefix string
	err    error
}

func (m *metadata) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// has reports whether there is a key.
func (m *metadata) has(key string) bool {
	_, ok := m.Value(m.prefix + key)
	return ok
}

// size is a number of at least 1.
func (m *metadata) size(key string) int {
	n, err := m.Int(m.prefix + key)
	switch {
	case err != nil:
		m.fail(err)
	case n < 1 || n > math.MaxInt32:
		m.fail(fmt.Errorf("metadata %q is %d, must be from 1 to %d: %w", m.prefix+key, n, math.MaxInt32, compute.ErrArgument))
	}
	return n
}

// sizeOr is size, with a default for a key that is not there.
func (m *metadata) sizeOr(key string, otherwise int) int {
	if !m.has(key) {
		return otherwise
	}
	return m.size(key)
}

// positive is a finite number above 0.
func (m *metadata) positive(key string) float32 {
	x, err := m.Float(m.prefix + key)
	switch {
	case err != nil:
		m.fail(err)
	case !(x > 0 && x <= math.MaxFloat32):
		m.fail(fmt.Errorf("metadata %q is %v, must be above 0 and finite: %w", m.prefix+key, x, compute.ErrArgument))
	}
	return float32(x)
}

// positiveOr is positive, with a default for a key that is not there or 0.
func (m *metadata) positiveOr(key string, otherwise float32) float32 {
	if !m.has(key) {
		return otherwise
	}
	if x, err := m.Float(m.prefix + key); err == nil && x == 0 {
		return otherwise
	}
	return m.positive(key)
}

// divides reports a number that is not a multiple of another.
func (m *metadata) divides(by string, part int, of string, whole int) {
	if m.err == nil && whole%part != 0 {
		m.fail(fmt.Errorf("metadata %q is %d, no multiple of %q, %d: %w", m.prefix+of, whole, m.prefix+by, part, compute.ErrShape))
	}
}

// readConfig reads all sizes but that of the vocabulary.
func readConfig(f *gguf.File) (Config, error) {
	architecture, err := gguf.Value[string](f, "general.architecture")
	if err != nil {
		return Config{}, err
	}
	known, ok := architectureOf(architecture)
	if !ok {
		return Config{}, fmt.Errorf("architecture %q, need %s: %w", architecture, architectureNames, compute.ErrUnsupported)
	}
	m := &metadata{File: f, prefix: architecture + "."}
	c := Config{Architecture: architecture,
		Blocks: m.size("block_count"), Width: m.size("embedding_length"), Hidden: m.size("feed_forward_length"),
		Heads: m.size("attention.head_count"), Context: m.size("context_length"), Encoder: known.encoder}
	if c.Encoder {
		c.Epsilon = m.positive("attention.layer_norm_epsilon")
	} else {
		c.Epsilon = m.positive("attention.layer_norm_rms_epsilon")
	}
	if c.Name, err = gguf.Value[string](f, "general.name"); err != nil && !errors.Is(err, gguf.ErrMissing) {
		m.fail(err)
	}
	c.KVHeads = m.sizeOr("attention.head_count_kv", c.Heads)
	m.divides("attention.head_count_kv", c.KVHeads, "attention.head_count", c.Heads)
	if !m.has("attention.key_length") {
		m.divides("attention.head_count", c.Heads, "embedding_length", c.Width)
		c.HeadSize = c.Width / max(c.Heads, 1)
	} else {
		c.HeadSize = m.size("attention.key_length")
	}
	if v := m.sizeOr("attention.value_length", c.HeadSize); v != c.HeadSize {
		m.fail(fmt.Errorf("metadata %q is %d, but heads of keys have %d elements: %w", m.prefix+"attention.value_length", v, c.HeadSize,
			compute.ErrUnsupported))
	}
	m.experts(&c, known)
	c.Rope = compute.RopeOptions{NeoX: known.neox, Dims: m.sizeOr("rope.dimension_count", c.HeadSize), Base: 10000, Precise: true}
	if m.has("rope.freq_base") {
		c.Rope.Base = m.positive("rope.freq_base")
	}
	m.ropeScaling(&c)
	m.windows(&c, known)
	if c.GELU = known.gemma; known.gemma {
		c.EmbedScale = float32(math.Sqrt(float64(c.Width)))
	}
	// The largest models of two families were trained with scores that are scaled by the width.
	if m.err == nil && (architecture == "gemma2" && c.Blocks == 46 || architecture == "gemma3" && c.Blocks == 62) {
		c.ScoreScale = float32(1 / math.Sqrt(float64(c.Width/c.Heads)))
	}
	c.ScoreCap, c.LogitCap = m.positiveOr("attn_logit_softcapping", 0), m.positiveOr("final_logit_softcapping", 0)
	if m.err == nil && (c.Rope.Dims%2 != 0 || c.Rope.Dims > c.HeadSize) {
		m.fail(fmt.Errorf("metadata %q is %d, must be even and at most %d, the size of a head: %w",
			m.prefix+"rope.dimension_count", c.Rope.Dims, c.HeadSize, compute.ErrShape))
	}
	return c, m.err
}

// windows reads which blocks have a sliding window.
func (m *metadata) windows(c *Config, a architecture) {
	if a.period == 0 {
		return // metadata of other architectures may name a window that their networks do not have
	}
	c.Window, c.Period = a.window, a.period
	if m.has("attention.sliding_window") {
		if n, err := m.Int(m.prefix + "attention.sliding_window"); err != nil || n != 0 {
			c.Window = m.size("attention.sliding_window")
		} else {
			c.Window = 0
		}
	}
	c.Period = m.sizeOr("attention.sliding_window_pattern", c.Period)
	if c.Window == 0 {
		c.Period = 0
		return
	}
	c.WindowRope = c.Rope
	if c.Architecture == "gemma3" { // whose windows were not stretched
		c.WindowRope.Base, c.WindowRope.Scale = 10000, 0
	}
	c.WindowRope.Base = m.positiveOr("rope.freq_base_swa", c.WindowRope.Base)
}

// ropeScaling is about models that were stretched to longer contexts.
func (m *metadata) ropeScaling(c *Config) {
	kind := "none"
	switch {
	case m.has("rope.scaling.type"):
		var err error
		if kind, err = gguf.Value[string](m.File, m.prefix+"rope.scaling.type"); err != nil {
			m.fail(err)
		}
	case m.has("rope.scale_linear"): // of old files
		c.Rope.Scale = 1 / m.positive("rope.scale_linear")
	}
	c.Original = m.sizeOr("rope.scaling.original_context_length", c.Context)
	c.RopeScale = m.positiveOr("rope.scaling.attn_factor", 0)
	switch kind {
	case "none", "longrope": // whose factors are tensors
	case "linear":
		c.Rope.Scale = 1 / m.positive("rope.scaling.factor")
	case "yarn":
		m.yarn(c)
	default:
		m.fail(fmt.Errorf("metadata %q is %q, need none, linear, yarn or longrope: %w", m.prefix+"rope.scaling.type", kind, compute.ErrUnsupported))
	}
}

// yarn stretches low frequencies only (Peng and others, "YaRN", 2023): those that turn less than some times in the original context.
func (m *metadata) yarn(c *Config) {
	factor := float64(m.positive("rope.scaling.factor"))
	fast, slow := m.positiveOr("rope.scaling.yarn_beta_fast", 32), m.positiveOr("rope.scaling.yarn_beta_slow", 1)
	for _, key := range []string{"yarn_log_multiplier", "yarn_ext_factor", "yarn_attn_factor"} {
		if m.has("rope.scaling." + key) {
			m.fail(fmt.Errorf("metadata %q: %w", m.prefix+"rope.scaling."+key, compute.ErrUnsupported))
		}
	}
	if m.err != nil {
		return
	}
	dims := float64(c.Rope.Dims)
	pair := func(turns float32) float64 { // that turns so many times
		return dims * math.Log(float64(c.Original)/(2*math.Pi*float64(turns))) / (2 * math.Log(float64(c.Rope.Base)))
	}
	low, high := max(0, math.Floor(pair(fast))), min(dims-1, math.Ceil(pair(slow)))
	for i := range c.Rope.Dims / 2 {
		kept := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
		c.ropeFactors = append(c.ropeFactors, float32(1/(kept+(1-kept)/factor)))
	}
	scale := float64(1)
	if c.RopeScale > 0 {
		scale = float64(c.RopeScale)
	}
	if factor > 1 {
		scale *= 1 + 0.1*math.Log(factor)
	}
	c.RopeScale = float32(scale)
}
