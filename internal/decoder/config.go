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
	Architecture string // "llama" or "qwen2"
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
}

// architectures are those that are read, with how the two elements of a pair lie in the heads of queries and keys: converters
// to GGUF reorder those of Llama so that they are neighbours.
var architectures = map[string]struct{ neox bool }{"llama": {false}, "qwen2": {true}}

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
	known, ok := architectures[architecture]
	if !ok {
		return Config{}, fmt.Errorf("architecture %q, need llama or qwen2: %w", architecture, compute.ErrUnsupported)
	}
	m := &metadata{File: f, prefix: architecture + "."}
	c := Config{Architecture: architecture,
		Blocks: m.size("block_count"), Width: m.size("embedding_length"), Hidden: m.size("feed_forward_length"),
		Heads: m.size("attention.head_count"), Context: m.size("context_length"),
		Epsilon: m.positive("attention.layer_norm_rms_epsilon")}
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
	if m.has("expert_count") {
		if n, err := f.Int(m.prefix + "expert_count"); err != nil || n > 0 {
			m.fail(fmt.Errorf("metadata %q: mixtures of experts: %w", m.prefix+"expert_count", compute.ErrUnsupported))
		}
	}
	c.Rope = compute.RopeOptions{NeoX: known.neox, Dims: m.sizeOr("rope.dimension_count", c.HeadSize), Base: 10000, Precise: true}
	if m.has("rope.freq_base") {
		c.Rope.Base = m.positive("rope.freq_base")
	}
	m.ropeScaling(&c)
	if m.err == nil && (c.Rope.Dims%2 != 0 || c.Rope.Dims > c.HeadSize) {
		m.fail(fmt.Errorf("metadata %q is %d, must be even and at most %d, the size of a head: %w",
			m.prefix+"rope.dimension_count", c.Rope.Dims, c.HeadSize, compute.ErrShape))
	}
	return c, m.err
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
	switch kind {
	case "none":
	case "linear":
		c.Rope.Scale = 1 / m.positive("rope.scaling.factor")
	default:
		m.fail(fmt.Errorf("metadata %q is %q, need none or linear: %w", m.prefix+"rope.scaling.type", kind, compute.ErrUnsupported))
	}
}
