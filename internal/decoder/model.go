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
	tensors *network[*gguf.Tensor]
}

// network is the tensors of a model, in whatever form.
type network[T any] struct {
	Embedding T // [vocabulary, width]
	Factors   T // of the frequencies of the rotary embedding; may be missing
	Norm      T // before the output head
	Head      T // that of the embedding where the file has no other
	Blocks    []block[T]
}

// block is the tensors of a layer.
type block[T any] struct {
	AttentionNorm       T
	Q, K, V             T
	QBias, KBias, VBias T // all or none
	Output              T
	FeedForwardNorm     T
	Gate, Up, Down      T
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
	t := &network[*gguf.Tensor]{}
	if t.Embedding = r.any("token_embd.weight"); r.err == nil {
		c.Vocabulary = t.Embedding.Rows()
		r.check(t.Embedding, c.Vocabulary, c.Width)
	}
	t.Factors = r.optional("rope_freqs.weight", c.Rope.Dims/2)
	t.Norm = r.tensor("output_norm.weight", c.Width)
	if t.Head = r.optional("output.weight", c.Vocabulary, c.Width); t.Head == nil {
		t.Head = t.Embedding
	}
	q, kv := c.Heads*c.HeadSize, c.KVHeads*c.HeadSize
	for i := 0; i < c.Blocks && r.err == nil; i++ {
		b, at := block[*gguf.Tensor]{}, fmt.Sprintf("blk.%d.", i)
		b.AttentionNorm = r.tensor(at+"attn_norm.weight", c.Width)
		b.Q = r.tensor(at+"attn_q.weight", q, c.Width)
		b.K, b.V = r.tensor(at+"attn_k.weight", kv, c.Width), r.tensor(at+"attn_v.weight", kv, c.Width)
		bias := r.optional
		if b.QBias = r.optional(at+"attn_q.bias", q); b.QBias != nil {
			bias = r.tensor
		}
		b.KBias, b.VBias = bias(at+"attn_k.bias", kv), bias(at+"attn_v.bias", kv)
		if r.err == nil && b.QBias == nil && (b.KBias != nil || b.VBias != nil || c.Architecture == "qwen2") {
			r.tensor(at+"attn_q.bias", q) // which is missing
		}
		b.Output = r.tensor(at+"attn_output.weight", c.Width, q)
		b.FeedForwardNorm = r.tensor(at+"ffn_norm.weight", c.Width)
		b.Gate, b.Up = r.tensor(at+"ffn_gate.weight", c.Hidden, c.Width), r.tensor(at+"ffn_up.weight", c.Hidden, c.Width)
		b.Down = r.tensor(at+"ffn_down.weight", c.Width, c.Hidden)
		t.Blocks = append(t.Blocks, b)
	}
	r.unused()
	if r.err != nil {
		return nil, fmt.Errorf("decoder: %w", r.err)
	}
	return &Model{c, t}, nil
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

func (r *reader) any(name string) *gguf.Tensor {
	r.used[name] = true
	t, err := r.file.Tensor(name)
	if err != nil {
		r.fail(err)
		return nil
	}
	if !t.Type().Convertible() {
		r.fail(fmt.Errorf("tensor %s has the type %v: %w", name, t.Type(), compute.ErrUnsupported))
	}
	return t
}

// tensor is one with a shape as it is on devices: rows first.
func (r *reader) tensor(name string, shape ...int) *gguf.Tensor {
	t := r.any(name)
	if t != nil {
		r.check(t, shape...)
	}
	return t
}

// optional is tensor, nil if there is none.
func (r *reader) optional(name string, shape ...int) *gguf.Tensor {
	if _, err := r.file.Tensor(name); errors.Is(err, gguf.ErrMissing) {
		return nil
	}
	return r.tensor(name, shape...)
}

func (r *reader) check(t *gguf.Tensor, shape ...int) {
	if got := t.Shape(); !slices.Equal(got, shape) {
		r.fail(fmt.Errorf("tensor %s has the shape %v, need %v: %w", t.Name(), got, shape, compute.ErrShape))
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
