package decoder

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Model is what a file says of a model: sizes, and where each weight is. It has no data, and may be used from many goroutines.
type Model struct {
	Config
	tensors *network[*tensor]
}

// network is the tensors of a model, in whatever form.
type network[T any] struct {
	Embedding T // [vocabulary, width]
	Encoder   encoder[T]
	Factors   T // by which frequencies of the rotary embedding are divided; may be missing
	Long      T // factors for contexts longer than the original one; may be missing
	Turn      T // by which the elements of heads are multiplied after they were rotated; may be missing
	Norm      T // before the output head
	Head      T // that of the embedding where the file has no other
	Blocks    []block[T]
}

// block is the tensors of a layer.
type block[T any] struct {
	AttentionNorm       T
	Q, K, V             T
	QBias, KBias, VBias T // all or none
	QNorm, KNorm        T // of a head; may be missing
	Output              T
	PostAttention       T // norm of what attention adds; may be missing
	FeedForwardNorm     T
	Gate, Up, Down      T
	Experts             experts[T] // instead of these
	PostFeedForward     T          // norm of what the layer adds; may be missing
	Biases              encoderBiases[T]
}

// Read looks at a file: metadata, and names and shapes of tensors. The file must stay open until weights are loaded. Errors
// wrap gguf.ErrMissing and [compute.ErrShape], or [compute.ErrUnsupported] for what the file has and is not known here; they
// name the metadata or the tensor.
func Read(f *gguf.File) (*Model, error) {
	c, err := readConfig(f)
	if err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	if len(f.Tensors()) == 0 {
		return nil, fmt.Errorf("decoder: the file has no tensors, as those of vocabularies alone: %w", gguf.ErrMissing)
	}
	r := &reader{file: f, used: map[string]bool{}}
	known, _ := architectureOf(c.Architecture)
	t := &network[*tensor]{}
	if t.Embedding = r.any("token_embd.weight"); r.err == nil {
		t.Embedding.table = true
		c.Vocabulary = t.Embedding.rows()
		r.check(t.Embedding, c.Vocabulary, c.Width)
	}
	if c.Encoder {
		return r.encoder(c, t)
	}
	r.rope(&c, t)
	t.Norm = r.tensor("output_norm.weight", c.Width)
	if t.Head = r.optional("output.weight", c.Vocabulary, c.Width); t.Head == nil {
		t.Head = t.Embedding
	}
	for i := 0; i < c.Blocks && r.err == nil; i++ {
		t.Blocks = append(t.Blocks, r.block(&c, known, fmt.Sprintf("blk.%d.", i)))
	}
	r.unused()
	if r.err != nil {
		return nil, fmt.Errorf("decoder: %w", r.err)
	}
	return &Model{c, t}, nil
}

// block reads the tensors of a layer.
func (r *reader) block(c *Config, known architecture, at string) (b block[*tensor]) {
	q, kv := c.Heads*c.HeadSize, c.KVHeads*c.HeadSize
	b.AttentionNorm = r.tensor(at+"attn_norm.weight", c.Width)
	if known.fused && r.has(at+"attn_qkv.weight") {
		all := r.tensor(at+"attn_qkv.weight", q+2*kv, c.Width)
		b.Q, b.K, b.V = all.part(0, q), all.part(q, kv), all.part(q+kv, kv)
	} else {
		b.Q = r.tensor(at+"attn_q.weight", q, c.Width)
		b.K, b.V = r.tensor(at+"attn_k.weight", kv, c.Width), r.tensor(at+"attn_v.weight", kv, c.Width)
	}
	bias := r.optional
	if b.QBias = r.optional(at+"attn_q.bias", q); b.QBias != nil {
		bias = r.tensor
	}
	b.KBias, b.VBias = bias(at+"attn_k.bias", kv), bias(at+"attn_v.bias", kv)
	if r.err == nil && b.QBias == nil && (b.KBias != nil || b.VBias != nil || known.biases) {
		r.tensor(at+"attn_q.bias", q) // which is missing
	}
	if known.headNorms {
		b.QNorm, b.KNorm = r.tensor(at+"attn_q_norm.weight", c.HeadSize), r.tensor(at+"attn_k_norm.weight", c.HeadSize)
	}
	b.Output = r.tensor(at+"attn_output.weight", c.Width, q)
	b.FeedForwardNorm = r.tensor(at+"ffn_norm.weight", c.Width)
	if known.postNorms {
		b.PostAttention = r.tensor(at+"post_attention_norm.weight", c.Width)
		b.PostFeedForward = r.tensor(at+"post_ffw_norm.weight", c.Width)
	}
	switch {
	case c.Experts > 0:
		b.Experts = r.experts(c, at)
		return b
	case known.fused:
		both := r.tensor(at+"ffn_up.weight", 2*c.Hidden, c.Width)
		b.Gate, b.Up = both.part(0, c.Hidden), both.part(c.Hidden, c.Hidden)
	default:
		b.Gate, b.Up = r.tensor(at+"ffn_gate.weight", c.Hidden, c.Width), r.tensor(at+"ffn_up.weight", c.Hidden, c.Width)
	}
	b.Down = r.tensor(at+"ffn_down.weight", c.Width, c.Hidden)
	return b
}

// rope reads what the rotary embedding is changed by.
func (r *reader) rope(c *Config, t *network[*tensor]) {
	pairs := c.Rope.Dims / 2
	t.Factors = r.optional("rope_freqs.weight", pairs)
	if short := r.optional("rope_factors_short.weight", pairs); short != nil {
		t.Factors, t.Long = short, r.tensor("rope_factors_long.weight", pairs)
	}
	if c.ropeFactors != nil {
		if t.Factors != nil {
			r.fail(fmt.Errorf("tensor %s beside another stretching of positions: %w", t.Factors.name, compute.ErrUnsupported))
		}
		t.Factors = &tensor{name: "(factors of frequencies)", numbers: c.ropeFactors}
	}
	if c.RopeScale != 0 && c.RopeScale != 1 {
		x := make([]float32, c.HeadSize)
		for i := range x {
			if x[i] = 1; i < c.Rope.Dims {
				x[i] = c.RopeScale
			}
		}
		t.Turn = &tensor{name: "(scale of rotated elements)", numbers: x}
	}
}

// reader looks tensors up and keeps the first error.
type reader struct {
	file *gguf.File
	used map[string]bool
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) has(name string) bool {
	_, err := r.file.Tensor(name)
	return !errors.Is(err, gguf.ErrMissing)
}

func (r *reader) any(name string) *tensor {
	r.used[name] = true
	t, err := r.file.Tensor(name)
	if err != nil {
		r.fail(err)
		return nil
	}
	if !t.Type().Convertible() {
		r.fail(fmt.Errorf("tensor %s has the type %v: %w", name, t.Type(), compute.ErrUnsupported))
	}
	return &tensor{name: name, file: t}
}

// tensor is one with a shape as it is on devices: rows first.
func (r *reader) tensor(name string, shape ...int) *tensor {
	t := r.any(name)
	if t != nil {
		r.check(t, shape...)
	}
	return t
}

// optional is tensor, nil if there is none.
func (r *reader) optional(name string, shape ...int) *tensor {
	if !r.has(name) {
		return nil
	}
	return r.tensor(name, shape...)
}

func (r *reader) check(t *tensor, shape ...int) {
	if got := t.shape(); !slices.Equal(got, shape) {
		r.fail(fmt.Errorf("tensor %s has the shape %v, need %v: %w", t.name, got, shape, compute.ErrShape))
	}
}

// unused reports tensors that this network does not use: without them it would compute something else than the file means.
func (r *reader) unused() {
	for _, t := range r.file.Tensors() {
		if !r.used[t.Name()] {
			r.fail(fmt.Errorf("tensor %s is not part of the supported architecture: %w", t.Name(), compute.ErrUnsupported))
		}
	}
}
