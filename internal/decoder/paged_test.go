//go:build !js

package decoder

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder/decodertest"
	"github.com/wavelane/wavelane/quant/gguf"
)

// script is the tokens of a sequence, and the logits after each of them by float64.
type script struct {
	tokens []int32
	logits [][]float64
	on     *Sequence
}

func newScript(t *testing.T, f *gguf.File, random *rand.Rand, n int) *script {
	r := decodertest.New(t, f)
	r.SetContext(n + 1)
	s := &script{}
	for range n {
		s.tokens = append(s.tokens, random.Int32N(int32(r.Vocabulary())))
		s.logits = append(s.logits, r.Step(s.tokens[len(s.tokens)-1]))
	}
	return s
}

// TestPaged continues sequences in steps of any composition, and compares what each device computes with float64.
func TestPaged(t *testing.T) {
	seed := seed(t)
	for name, model := range models(seed) {
		f := opened(t, model)
		for _, kind := range kinds {
			if kind != "cpu" && name != "llama" && name != "gemma2" { // whose attention is like that of the others
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 3))
				w := loaded(t, f, device(t, kind), LoadOptions{})
				length, steps := 39, 60
				if kind != "cpu" {
					length, steps = 19, 8
				}
				// There are pages for two of four sequences.
				p, err := w.NewPaged(t.Context(), PagedOptions{SessionOptions{Context: length + 1, Chunk: 5, Exact: true}, 3, 2 * (length + 1)})
				require.NoError(t, err)
				defer p.Close()
				scripts := []*script{newScript(t, f, random, length), newScript(t, f, random, length), newScript(t, f, random, length)}
				for _, s := range scripts {
					s.on = p.Begin(s.tokens)
				}
				for range steps {
					take(t, p, scripts, random)
				}
			})
		}
	}
}

// take is a step of some of the scripts. Where pages run out a sequence ends and begins again.
func take(t *testing.T, p *Paged, scripts []*script, random *rand.Rand) {
	var feeds []Feed
	var of []*script
	chunks, rows := 0, 0
	for _, s := range scripts {
		at := s.on.Position()
		n := min(1, len(s.tokens)-at)
		if chunks == 0 && random.IntN(2) == 0 {
			n = min(1+random.IntN(p.options.Chunk), len(s.tokens)-at)
		}
		if random.IntN(4) == 0 && len(feeds) > 0 {
			continue // sits out
		}
		f := Feed{s.on, s.tokens[at:][:n], false}
		if random.IntN(3) == 0 && rows < 2 && at+3 <= len(s.tokens) { // some of a draft, of which the end may be wrong
			f.Each, f.Tokens = true, slices.Clone(s.tokens[at:][:1+random.IntN(3)])
			if right := 1 + random.IntN(3); right < len(f.Tokens) {
				f.Tokens[right] = (f.Tokens[right] + 1) % int32(p.weights.Vocabulary)
			}
		}
		if n == 0 || !p.Reserve(s.on, len(f.Tokens)) {
			p.End(s.on)
			s.on = p.Begin(s.tokens)
			continue
		}
		if f.Each || n == 1 {
			rows += len(f.Tokens)
		} else {
			chunks++
		}
		feeds, of = append(feeds, f), append(of, s)
	}
	if len(feeds) == 0 {
		return
	}
	next, err := p.Step(t.Context(), Output{}, feeds...)
	require.NoError(t, err)
	for i, s := range of {
		if f := feeds[i]; f.Each {
			require.Len(t, next[i], len(f.Tokens))
			at := s.on.Position() - len(f.Tokens)
			p.Keep(s.on, append(slices.Clone(s.tokens), 0))
			next[i] = next[i][:s.on.Position()-at]
		}
		for j, n := range next[i] {
			at := s.on.Position() - len(next[i]) + j
			require.LessOrEqual(t, deviation(s.logits[at], n.Logits), 2e-5, "after %d tokens, feed %d of %d", at+1, i, len(feeds))
		}
	}
}

// TestPagedOutputs has the device choose the tokens.
func TestPagedOutputs(t *testing.T) {
	f := opened(t, smallLlama)
	for _, kind := range kinds {
		w := loaded(t, f, device(t, kind), LoadOptions{})
		p, err := w.NewPaged(t.Context(), PagedOptions{SessionOptions{Context: 20, Chunk: 4, Exact: true, Output: Output{TopK: 1}}, 2, 40})
		require.NoError(t, err)
		a, b := p.Begin(nil), p.Begin(nil)
		require.True(t, p.Reserve(a, 3) && p.Reserve(b, 1))
		feeds := []Feed{{a, []int32{5, 6, 7}, false}, {b, []int32{8}, false}}
		best, err := p.Step(t.Context(), Output{TopK: 1}, feeds...)
		require.NoError(t, err)
		got := [][]int32{slices.Clone(best[0][0].Indices), slices.Clone(best[1][0].Indices)}
		p.End(a)
		p.End(b)
		require.True(t, p.Reserve(a, 3) && p.Reserve(b, 1))
		top, err := p.Step(t.Context(), Output{TopK: 4}, feeds...)
		require.NoError(t, err)
		for i, n := range top {
			require.Len(t, n[0].Indices, 4)
			require.IsNonIncreasing(t, n[0].Logits)
			require.Equal(t, n[0].Indices[:1], got[i], "%s, feed %d", kind, i)
		}
		require.NoError(t, p.Close())
	}
}

func TestPagedErrors(t *testing.T) {
	w := loaded(t, opened(t, smallLlama), device(t, "cpu"), LoadOptions{})
	for _, o := range []PagedOptions{{SessionOptions{Context: -1}, 0, 0}, {SessionOptions{}, -1, 0}, {SessionOptions{Context: 20}, 2, 19}} {
		_, err := w.NewPaged(t.Context(), o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	p, err := w.NewPaged(t.Context(), PagedOptions{SessionOptions{Context: 20, Chunk: 4}, 2, 40})
	require.NoError(t, err)
	s, other := p.Begin(nil), p.Begin(nil)
	require.True(t, p.Reserve(s, 20))
	for _, feeds := range [][]Feed{nil, {{s, nil, false}}, {{s, nil, true}}, {{s, make([]int32, 5), false}}, {{s, make([]int32, 5), true}},
		{{s, []int32{1, 2}, false}, {s, []int32{1, 2}, false}}, {{s, []int32{-1}, false}}, {{other, []int32{1}, false}},
		{{s, []int32{1}, false}, {s, []int32{1}, false}, {s, []int32{1, 2, 3}, true}}} {
		_, err := p.Step(t.Context(), Output{}, feeds...)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Step(cancelled, Output{}, Feed{s, []int32{1}, false})
	require.ErrorIs(t, err, context.Canceled)
	for range 5 {
		_, err = p.Step(t.Context(), Output{}, Feed{s, make([]int32, 4), false})
		require.NoError(t, err)
	}
	_, err = p.Step(t.Context(), Output{}, Feed{s, []int32{1}, false})
	require.ErrorIs(t, err, compute.ErrArgument, "the context is full")
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err = p.Step(t.Context(), Output{}, Feed{s, []int32{1}, false})
	require.ErrorIs(t, err, compute.ErrClosed)
}

// TestPages follows what is shared and what is forgotten first.
func TestPages(t *testing.T) {
	p := newPages(4)
	a, b := content{0, [pageSize]int32{1}}, content{0, [pageSize]int32{2}}
	one := p.take()
	first := p.full(one, a)
	after := content{first, [pageSize]int32{3}}
	two := p.take()
	p.full(two, after)
	twin := p.take() // computed beside the first
	require.Equal(t, first, p.full(twin, a))
	found, ok := p.find(a)
	require.True(t, ok)
	require.Equal(t, one, found)
	_, ok = p.find(b)
	require.False(t, ok)
	p.release([]int32{twin})
	p.release([]int32{one, two})
	require.Equal(t, 3, p.free.Len(), "one is still found")
	p.release([]int32{one})
	require.Equal(t, 4, p.free.Len())
	require.Equal(t, twin, p.take(), "which nobody would find")
	last := p.take()
	require.NotContains(t, []int32{one, two}, last, "which was never used")
	require.Equal(t, two, p.take(), "the end of what was forgotten")
	_, ok = p.find(after)
	require.False(t, ok)
	found, ok = p.find(a)
	require.True(t, ok)
	require.Equal(t, one, found)
	require.Zero(t, p.free.Len())
}
