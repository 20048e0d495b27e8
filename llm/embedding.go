package llm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Pooling says how the states of a text's tokens become one vector.
type Pooling int

// The numbers are those of metadata.
const (
	PoolMean  Pooling = 1 + iota // the mean of all
	PoolFirst                    // that of the first token
	PoolLast                     // that of the last token, which has seen all others
)

// String returns the name in lower case, such as "mean".
func (p Pooling) String() string {
	switch p {
	case PoolMean:
		return "mean"
	case PoolFirst:
		return "first"
	case PoolLast:
		return "last"
	}
	return fmt.Sprintf("Pooling(%d)", int(p))
}

// EmbedderOption is an option of [Weights.NewEmbedder]: those of sessions, and [WithPooling].
type EmbedderOption interface {
	embedder(*embedderOptions) error
}

type embedderOptions struct {
	sessionOptions
	pooling Pooling
}

func (f SessionOption) embedder(o *embedderOptions) error { return f.set(&o.sessionOptions) }

type poolingOption Pooling

func (p poolingOption) embedder(o *embedderOptions) error {
	if Pooling(p) < PoolMean || Pooling(p) > PoolLast {
		return fmt.Errorf("llm: %v: %w", Pooling(p), compute.ErrArgument)
	}
	o.pooling = Pooling(p)
	return nil
}

// WithPooling sets how the states of a text's tokens become one vector: by default as the file says, or their mean if it says nothing.
func WithPooling(p Pooling) EmbedderOption { return poolingOption(p) }

// Embedder makes vectors of texts: the states after the last norm, pooled, and scaled to length 1. Texts of similar meaning have vectors of
// similar direction if the model was trained for that. Any number of goroutines may call its methods; texts are computed one after the other.
type Embedder struct {
	weights *Weights
	engine  *decoder.Session
	context int
	chunk   int
	pooling Pooling
	end     []int32       // that is put after texts
	turn    chan struct{} // has room for who computes
}

// NewEmbedder makes an embedder, and compiles the network for its device. Errors are those of [Weights.NewSession], and
// [compute.ErrUnsupported] for a decoder whose queries see what comes after them, or a pooling that is not known. The network of an
// encoder, such as BERT, is compiled for powers of 2 of tokens when they are first wanted; a chunk is a whole text.
func (w *Weights) NewEmbedder(ctx context.Context, opts ...EmbedderOption) (*Embedder, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	o := embedderOptions{sessionOptions: newSessionOptions(decoder.Output{States: true})}
	for _, f := range opts {
		if f == nil {
			return nil, fmt.Errorf("llm: nil option: %w", compute.ErrArgument)
		}
		if err := f.embedder(&o); err != nil {
			return nil, err
		}
	}
	if err := o.check(w.model); err != nil {
		return nil, err
	}
	e := &Embedder{weights: w, pooling: o.pooling, turn: make(chan struct{}, 1)}
	if err := e.read(w.model); err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	var err error
	if e.engine, err = w.engine.NewSession(ctx, o.SessionOptions); err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	e.context, e.chunk = e.engine.Room(), e.engine.Chunk()
	return e, nil
}

// read reads what a file says of embeddings.
func (e *Embedder) read(m *Model) error {
	f, architecture := m.file, m.engine.Architecture
	causal, err := gguf.Value[bool](f, architecture+".attention.causal")
	if err == nil && !causal && !m.engine.Encoder {
		return fmt.Errorf("metadata %q is false: %w", architecture+".attention.causal", compute.ErrUnsupported)
	}
	if err != nil && !errors.Is(err, gguf.ErrMissing) {
		return err
	}
	key := architecture + ".pooling_type"
	p, err := f.Int(key)
	switch {
	case err != nil && !errors.Is(err, gguf.ErrMissing):
		return err
	case e.pooling != 0:
	case err != nil || p == 0: // which is none
		e.pooling = PoolMean
	case p < int(PoolMean) || p > int(PoolLast):
		return fmt.Errorf("metadata %q is %d, need %d to %d: %w", key, p, PoolMean, PoolLast, compute.ErrUnsupported)
	default:
		e.pooling = Pooling(p)
	}
	if ends, err := gguf.Value[bool](f, "tokenizer.ggml.add_eos_token"); err == nil && ends && !m.text.Wraps() {
		if id, err := f.Int("tokenizer.ggml.eos_token_id"); err == nil {
			e.end = []int32{int32(id)}
		}
	}
	return nil
}

// Close frees what the embedder has on its device. It is idempotent. Calls under way must have ended.
func (e *Embedder) Close() error { return e.engine.Close() }

// Pooling is how the states of a text's tokens become one vector.
func (e *Embedder) Pooling() Pooling { return e.pooling }

// Context is how many tokens a text may have.
func (e *Embedder) Context() int { return e.context }

// Width is the length of the vectors.
func (e *Embedder) Width() int { return e.weights.model.engine.Width }

// Tokenize is [Model.Tokenize], with the token after it that ends a text if the file wants one.
func (e *Embedder) Tokenize(text string) []int32 {
	return append(e.weights.model.Tokenize(text), e.end...)
}

// Embed returns a vector of each text. Errors wrap [compute.ErrTooLarge] for texts longer than the context, [compute.ErrArgument] for
// those without tokens, and those of the device.
func (e *Embedder) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	all := make([][]int32, len(texts))
	for i, text := range texts {
		all[i] = e.Tokenize(text)
	}
	return e.EmbedTokens(ctx, all...)
}

// EmbedTokens is [Embedder.Embed] for texts of tokens, to which nothing is added.
func (e *Embedder) EmbedTokens(ctx context.Context, texts ...[]int32) ([][]float32, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("llm: %w", ctx.Err())
	}
	for i, tokens := range texts {
		if err := checkPrompt(tokens, e.context); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
	}
	vectors := make([][]float32, len(texts))
	for i, tokens := range texts {
		var err error
		if vectors[i], err = e.embed(ctx, tokens); err != nil {
			return nil, fmt.Errorf("llm: text %d: %w", i, err)
		}
	}
	return vectors, nil
}

func (e *Embedder) embed(ctx context.Context, tokens []int32) ([]float32, error) {
	width := e.Width()
	sums := make([]float64, width)
	e.engine.Reset()
	for first := range slices.Chunk(tokens, e.chunk) {
		at := e.engine.Position()
		next, err := e.engine.Feed(ctx, first...)
		if err != nil {
			return nil, err
		}
		for row := range slices.Chunk(next.States, width) {
			if e.pooling == PoolMean || e.pooling == PoolFirst && at == 0 || e.pooling == PoolLast && at == len(tokens)-1 {
				for i, x := range row {
					sums[i] += float64(x)
				}
			}
			at++
		}
	}
	return unit(sums), nil
}

// unit has the direction of x and length 1, unless x has none.
func unit(x []float64) []float32 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	length := math.Sqrt(sum)
	if length == 0 {
		length = 1
	}
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v / length)
	}
	return y
}
