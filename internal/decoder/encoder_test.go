//go:build !js

package decoder

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder/decodertest"
	"github.com/wavelane/wavelane/quant/gguf"
)

// smallBert has heads that share keys, which BERT's do not, and a mixture of formats.
var smallBert = Random{Architecture: "bert", Tokenizer: "bert", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 40, Format: narrow}

// TestEncoder compares the states of texts of many lengths with float64.
func TestEncoder(t *testing.T) {
	seed := seed(t)
	model := smallBert
	model.Seed = seed
	f := opened(t, model)
	random := rand.New(rand.NewPCG(seed, 4))
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := loaded(t, f, device(t, kind), LoadOptions{})
			s, err := w.NewSession(t.Context(), SessionOptions{Exact: true, Output: Output{States: true}})
			require.NoError(t, err)
			defer s.Close()
			require.Equal(t, 40, s.Chunk())
			r := decodertest.New(t, f)
			lengths := []int{1, 2, 7, 8, 9, 33, 40, 5}
			if kind != "cpu" {
				lengths = []int{1, 7, 5}
			}
			for _, n := range lengths {
				tokens := make([]int32, n)
				for i := range tokens {
					tokens[i] = random.Int32N(int32(w.Vocabulary))
				}
				s.Reset()
				next, err := s.Feed(t.Context(), tokens...)
				require.NoError(t, err)
				require.Len(t, next.States, n*w.Width)
				for p, want := range r.Encode(tokens) {
					require.LessOrEqual(t, deviation(want, next.States[p*w.Width:][:w.Width]), 2e-5, "token %d of %d", p, n)
				}
			}
			_, err = s.Feed(t.Context(), 1)
			require.ErrorIs(t, err, compute.ErrUnsupported, "after a text")
			s.Reset()
			_, err = s.FeedFor(t.Context(), Output{TopK: 1}, 1)
			require.ErrorIs(t, err, compute.ErrUnsupported)
			_, err = s.FeedEach(t.Context(), Output{TopK: 1}, 1)
			require.ErrorIs(t, err, compute.ErrUnsupported)
			_, err = s.Feed(t.Context(), make([]int32, 41)...)
			require.ErrorIs(t, err, compute.ErrTooLarge)
			_, err = w.NewPaged(t.Context(), PagedOptions{})
			require.ErrorIs(t, err, compute.ErrUnsupported)
		})
	}
}

func TestReadEncoder(t *testing.T) {
	m, err := Read(changed(t, smallBert, change{tensors: map[string][]int{"position_embd.weight": {30, 64}, "token_types.weight": nil}}))
	require.NoError(t, err)
	require.True(t, m.Encoder)
	require.Equal(t, 30, m.Context, "as many as there are positions")
	_, err = m.shard(0, 2)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	for _, c := range []struct {
		err error
		change
	}{
		{gguf.ErrMissing, change{tensors: map[string][]int{"position_embd.weight": nil}}},
		{gguf.ErrMissing, change{tensors: map[string][]int{"blk.1.ffn_up.bias": nil}}},
		{gguf.ErrMissing, change{metadata: map[string]any{"bert.attention.layer_norm_epsilon": nil}}},
		{compute.ErrShape, change{tensors: map[string][]int{"token_types.weight": {2, 32}}}},
		{compute.ErrShape, change{tensors: map[string][]int{"position_embd.weight": {64}}}},
		{compute.ErrUnsupported, change{tensors: map[string][]int{"blk.0.ffn_gate.weight": {96, 64}}}},
	} {
		_, err := Read(changed(t, smallBert, c.change))
		require.ErrorIs(t, err, c.err)
	}
}
