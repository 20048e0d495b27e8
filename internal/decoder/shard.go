package decoder

import (
	"fmt"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// The network of a model whose weights are spread over the members of a group (Shoeybi and others, "Megatron-LM", 2019). Each has some of
// the heads and some of the hidden elements: rows of the matrices that make these, columns of those that they go into. What comes of the
// columns is part of a sum, which an all-reduce completes: two for each block. Each has some of the vocabulary, too.

// shard returns the part of the model of one of several members. Its heads and hidden elements are those of the part; the vocabulary is whole.
func (m *Model) shard(rank, size int) (*Model, error) {
	s := &shard{rank, size}
	if m.Encoder {
		return nil, fmt.Errorf("%s in parts: %w", m.Architecture, compute.ErrUnsupported)
	}
	if m.Experts > 0 {
		return nil, fmt.Errorf("a mixture of %d experts in parts: %w", m.Experts, compute.ErrUnsupported)
	}
	if m.Hidden < size || m.Vocabulary < size {
		return nil, fmt.Errorf("%d hidden elements and %d tokens for %d members: %w", m.Hidden, m.Vocabulary, size, compute.ErrShape)
	}
	heads, keys, err := s.heads(&m.Config)
	if err != nil {
		return nil, err
	}
	hidden := s.hidden(m.Hidden)
	part := &Model{m.Config, &network[*tensor]{}}
	part.Heads, part.KVHeads, part.Hidden = heads.n, keys.n, hidden.n
	*part.tensors = *m.tensors
	vocabulary := s.cut(m.Vocabulary)
	part.first, part.known = vocabulary.from, vocabulary.n
	part.tensors.Embedding = vocabulary.rows(m.tensors.Embedding)
	if part.tensors.Head = part.tensors.Embedding; m.tensors.Head != m.tensors.Embedding {
		part.tensors.Head = vocabulary.rows(m.tensors.Head)
	}
	part.tensors.Blocks = nil
	q, kv := heads.times(m.HeadSize), keys.times(m.HeadSize)
	for _, b := range m.tensors.Blocks {
		b.Q, b.K, b.V = q.rows(b.Q), kv.rows(b.K), kv.rows(b.V)
		b.QBias, b.KBias, b.VBias = q.columns(b.QBias), kv.columns(b.KBias), kv.columns(b.VBias)
		b.Output = q.columns(b.Output)
		b.Gate, b.Up, b.Down = hidden.rows(b.Gate), hidden.rows(b.Up), hidden.columns(b.Down)
		part.tensors.Blocks = append(part.tensors.Blocks, b)
	}
	return part, nil
}

// shard is one of several parts.
type shard struct{ rank, size int }

// span is some of the elements of a dimension.
type span struct{ from, n int }

func (s *shard) cut(n int) span {
	from := s.rank * n / s.size
	return span{from, (s.rank+1)*n/s.size - from}
}

func (s span) times(n int) span { return span{s.from * n, s.n * n} }

func (s span) rows(t *tensor) *tensor { return t.part(s.from, s.n) }

func (s span) columns(t *tensor) *tensor { return t.columns(s.from, s.n) }

// heads are those of queries and of keys. Where there are more members than heads of keys, several have the same.
func (s *shard) heads(c *Config) (queries, keys span, err error) {
	share := c.Heads / c.KVHeads // queries of a head of keys
	if c.KVHeads >= s.size {
		keys = s.cut(c.KVHeads)
		return keys.times(share), keys, nil
	}
	same := s.size / c.KVHeads // members with the same head of keys
	if s.size%c.KVHeads != 0 || share%same != 0 {
		return span{}, span{}, fmt.Errorf("%d heads of queries on %d of keys cannot be divided among %d members: %w", c.Heads, c.KVHeads, s.size, compute.ErrShape)
	}
	return s.cut(c.Heads), span{s.rank / same, 1}, nil
}

// hidden cuts at multiples of 32 where there are enough: blocks of most formats and of activations begin there.
func (s *shard) hidden(n int) span {
	const unit = 32
	if n%unit != 0 || n < 8*unit*s.size { // where that would make parts unlike
		return s.cut(n)
	}
	return s.cut(n / unit).times(unit)
}

// of returns the part of the model that this member of a group has, and the group, which is nil if it has one member.
func (m *Model) of(g batch.Group) (*Model, batch.Group, error) {
	if g == nil {
		return m, nil, nil
	}
	members := program.MembersOf(g)
	if members == nil {
		return nil, nil, fmt.Errorf("nil group: %w", compute.ErrArgument)
	}
	if members.Size() == 1 {
		return m, nil, nil
	}
	part, err := m.shard(members.Rank(), members.Size())
	return part, g, err
}

// sum adds what all members have.
func (g *graph) sum(x batch.Value) batch.Value {
	if g.group == nil {
		return x
	}
	return g.add(g.Batch, x)
}

// lookup says which rows of its part of the embedding a member takes for tokens: those of others it multiplies with 0.
type lookup struct {
	tokens      []int32
	first, rows int32
	ids         []int32
	mask        []float32
}

// set is called before each run, with tokens set.
func (l *lookup) set() {
	if l == nil {
		return
	}
	for i, t := range l.tokens {
		l.ids[i], l.mask[i] = 0, 0
		if id := t - l.first; id >= 0 && id < l.rows {
			l.ids[i], l.mask[i] = id, 1
		}
	}
}

// embed gives the rows of tokens.
func (g *graph) embed(tokens []int32) batch.Value {
	if g.group == nil {
		return g.rows(g.on.Embedding, g.Upload(tokens))
	}
	n := len(tokens)
	g.lookup = &lookup{tokens, int32(g.model.first), int32(g.model.known), make([]int32, n), make([]float32, n)}
	x := g.Mul(g.rows(g.on.Embedding, g.Upload(g.lookup.ids)), g.Upload(g.lookup.mask, n, 1))
	return g.sum(x)
}

// whole gives the logits of all tokens, of which each member has some: the others' are 0 in its part of the sum.
func (g *graph) whole(logits batch.Value) batch.Value {
	if g.group == nil {
		return logits
	}
	m := &g.model
	return g.sum(g.Pad(logits, compute.PadOptions{Before: []int{0, m.first}, After: []int{0, m.Vocabulary - m.first - m.known}}))
}
