//go:build !js

package llm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

// TestQuantisedCache compares probabilities with those of a cache of Float32, and a scheduler's texts with a session's.
func TestQuantisedCache(t *testing.T) {
	r := small(testseed.Of(t))
	r.Width, r.Heads, r.KVHeads, r.HeadSize = 96, 3, 1, 32
	m := read(t, written(t, r))
	tokens := m.Tokenize("the thing and the other thing of the")
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			n, tokens := 24, tokens
			switch kind {
			case "gpu":
				n = 8
			case "cuda": // whose software GPU takes long
				n, tokens = 3, tokens[:4]
			}
			w := loaded(t, m, device(t, kind))
			opts := []llm.SessionOption{llm.WithContext(48), llm.WithChunk(5), llm.WithExact()}
			wide, packed := session(t, w, append(opts, llm.WithCache(quant.F32))...), session(t, w, append(opts, llm.WithCache(quant.Q8_0))...)
			require.Equal(t, int64(2*2*(48+4)*(32+4+12)), packed.CacheBytes(), "of 2 blocks, keys of 32 bytes, a scale and what aligns rows")
			want, err := wide.LogProbs(t.Context(), tokens)
			require.NoError(t, err)
			got, err := packed.LogProbs(t.Context(), tokens)
			require.NoError(t, err)
			require.InDeltaSlice(t, want, got, 0.02)
			require.NotEqual(t, want, got)

			x := alone(t, packed, tokens, llm.WithMaxTokens(n), llm.WithIgnoreEnd())
			for i := range x.ties { // other rows of a step round sums otherwise, and then a number to another byte
				x.ties[i] = x.want[i].Top[0].LogProb-x.want[i].Top[1].LogProb < 0.02
			}
			many := scheduler(t, w, llm.WithContext(48), llm.WithChunk(5), llm.WithExact(), llm.WithCache(quant.Q8_0), llm.WithSequences(2))
			x.checkIDs(t, many.GenerateTokens(t.Context(), tokens, llm.WithMaxTokens(n), llm.WithIgnoreEnd()))
		})
	}
	w := loaded(t, m, device(t, "cpu"))
	for _, format := range []quant.Type{quant.Q4_0, quant.BF16, 5, 999} {
		_, err := w.NewSession(t.Context(), llm.WithCache(format))
		require.ErrorIs(t, err, compute.ErrUnsupported)
	}
	w = loaded(t, read(t, written(t, small(1))), device(t, "cpu"))
	_, err := w.NewSession(t.Context(), llm.WithCache(quant.Q8_0))
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "heads of 16 elements")
	_, err = w.NewScheduler(t.Context(), llm.WithCache(quant.Q8_0))
	require.ErrorIs(t, err, compute.ErrUnsupported)
}
