package decoder

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// Encoders are transformers whose tokens see all others (Devlin and others, "BERT", 2019). A session of one has a whole text at a time and
// no caches: only [Session.Feed] with Output.States, after [Session.Reset].

// encoder is what an encoder's network has besides, missing in others.
type encoder[T any] struct {
	Positions T // [context, width], added to the embeddings
	Types     T // [types, width], of which the first is added, too; may be missing
	Norm      T // of the sum
	Bias      T // of this norm
}

// encoderBiases are those of an encoder's layer, missing in others.
type encoderBiases[T any] struct {
	Output, AttentionNorm, Up, Down, FeedForwardNorm T
}

// encoder reads the tensors of an encoder.
func (r *reader) encoder(c Config, t *network[*tensor]) (*Model, error) {
	e := &t.Encoder
	matrix := func(name string) *tensor {
		x := r.any(name)
		if r.err == nil {
			x.table = true
			r.check(x, x.rows(), c.Width)
		}
		return x
	}
	if e.Positions = matrix("position_embd.weight"); r.err == nil {
		c.Context = min(c.Context, e.Positions.rows())
	}
	if r.has("token_types.weight") {
		e.Types = matrix("token_types.weight")
	}
	e.Norm, e.Bias = r.tensor("token_embd_norm.weight", c.Width), r.tensor("token_embd_norm.bias", c.Width)
	for i := 0; i < c.Blocks && r.err == nil; i++ {
		at := fmt.Sprintf("blk.%d.", i)
		both := func(name string, weight, bias **tensor, shape ...int) {
			*weight, *bias = r.tensor(at+name+".weight", shape...), r.tensor(at+name+".bias", shape[0])
		}
		var b block[*tensor]
		q, kv := c.Heads*c.HeadSize, c.KVHeads*c.HeadSize
		both("attn_q", &b.Q, &b.QBias, q, c.Width)
		both("attn_k", &b.K, &b.KBias, kv, c.Width)
		both("attn_v", &b.V, &b.VBias, kv, c.Width)
		both("attn_output", &b.Output, &b.Biases.Output, c.Width, q)
		both("attn_output_norm", &b.AttentionNorm, &b.Biases.AttentionNorm, c.Width)
		both("ffn_up", &b.Up, &b.Biases.Up, c.Hidden, c.Width)
		both("ffn_down", &b.Down, &b.Biases.Down, c.Width, c.Hidden)
		both("layer_output_norm", &b.FeedForwardNorm, &b.Biases.FeedForwardNorm, c.Width)
		t.Blocks = append(t.Blocks, b)
	}
	if r.unused(); r.err != nil {
		return nil, fmt.Errorf("decoder: %w", r.err)
	}
	return &Model{c, t}, nil
}

// convertEncoder is what convert does for an encoder's own tensors.
func convertEncoder(e encoder[*tensor], to func(t *tensor) weight) encoder[weight] {
	return encoder[weight]{to(e.Positions), to(e.Types), to(e.Norm), to(e.Bias)}
}

func convertBiases(b encoderBiases[*tensor], to func(t *tensor) weight) encoderBiases[weight] {
	return encoderBiases[weight]{to(b.Output), to(b.AttentionNorm), to(b.Up), to(b.Down), to(b.FeedForwardNorm)}
}

// recordEncoder is the network for a text, of which in.length says how many of the tokens are of it.
func (g *graph) recordEncoder(in *inputs) results {
	positions, length := g.Upload(in.positions), g.Upload(in.length)
	e := &g.on.Encoder
	g.part(-1, "embedding")
	x := g.Add(g.embed(in.tokens), g.rows(e.Positions, positions))
	if !e.Types.missing() {
		x = g.Add(x, g.rows(e.Types, g.Upload([]int32{0})))
	}
	x = g.LayerNorm(x, g.Import(e.Norm.tensor), g.Import(e.Bias.tensor), g.model.Epsilon)
	added := func(x, branch batch.Value, norm, bias weight) batch.Value {
		_, x = g.AddLayerNorm(x, branch, g.Import(norm.tensor), g.Import(bias.tensor), g.model.Epsilon)
		return x
	}
	for i := range g.on.Blocks {
		b := &g.on.Blocks[i]
		g.part(i, "query, key, value")
		q, k, v := g.qkv(x, b)
		g.part(i, "attention")
		y := g.AttentionWithLengths(g.heads(q, g.model.Heads), g.heads(k, g.model.KVHeads), g.heads(v, g.model.KVHeads), length, compute.AttentionOptions{})
		y = g.Reshape(y, g.n, g.model.Heads*g.model.HeadSize)
		g.part(i, "attention output")
		x = added(x, g.biased(g.linear(y, b.Output), b.Biases.Output), b.AttentionNorm, b.Biases.AttentionNorm)
		g.part(i, "up")
		hidden := g.GELUErf(g.biased(g.linear(x, b.Up), b.Biases.Up))
		g.part(i, "down")
		x = added(x, g.biased(g.linear(hidden, b.Down), b.Biases.Down), b.FeedForwardNorm, b.Biases.FeedForwardNorm)
	}
	g.part(-1, "states")
	return results{states: g.Read(x)}
}

// encode is FeedFor of an encoder's session: a whole text.
func (s *Session) encode(ctx context.Context, o Output, tokens []int32) (*Next, error) {
	if !o.States || s.position > 0 {
		return nil, fmt.Errorf("decoder: %s has states of whole texts alone: %w", s.weights.Architecture, compute.ErrUnsupported)
	}
	p, err := s.run(ctx, planKey{sizeClass(len(tokens), s.options.Context), o}, tokens)
	if err != nil {
		return nil, err
	}
	next := p.out.next(1)[0]
	next.States = next.States[:len(tokens)*s.weights.Width]
	return next, nil
}
