//go:build !js

package llm_test

import (
	"bytes"
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/internal/decoder/decodertest"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// pooled is what float64 makes of a text.
func pooled(t *testing.T, f *gguf.File, tokens []int32, p llm.Pooling) []float64 {
	r := decodertest.New(t, f)
	var states [][]float64
	if architecture, _ := gguf.Value[string](f, "general.architecture"); architecture == "bert" {
		states = r.Encode(tokens)
	} else {
		for _, token := range tokens {
			r.Step(token)
			states = append(states, r.State)
		}
	}
	sum := make([]float64, len(states[0]))
	for i, state := range states {
		if p == llm.PoolMean || p == llm.PoolFirst && i == 0 || p == llm.PoolLast && i == len(tokens)-1 {
			for k, x := range state {
				sum[k] += x
			}
		}
	}
	length := 0.0
	for _, x := range sum {
		length += x * x
	}
	for k := range sum {
		sum[k] /= math.Sqrt(length)
	}
	return sum
}

func embedder(t testing.TB, w *llm.Weights, opts ...llm.EmbedderOption) *llm.Embedder {
	e, err := w.NewEmbedder(t.Context(), append([]llm.EmbedderOption{llm.WithExact(), llm.WithCache(quant.F32), llm.WithChunk(4)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// encoder is a small BERT.
func encoder(seed uint64) decoder.Random {
	return decoder.Random{Architecture: "bert", Tokenizer: "bert", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 4, Context: 128, Seed: seed}
}

// TestEmbeddings compares vectors with float64, on every device.
func TestEmbeddings(t *testing.T) {
	for _, model := range []decoder.Random{small(testseed.Of(t)), encoder(testseed.Of(t))} {
		t.Run(model.Architecture, func(t *testing.T) { testEmbeddings(t, model) })
	}
}

func testEmbeddings(t *testing.T, model decoder.Random) {
	file := written(t, model)
	f, err := gguf.New(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	m := read(t, file)
	texts := []string{"the thing and the other thing", "a", "in"}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := loaded(t, m, device(t, kind))
			for _, p := range []llm.Pooling{llm.PoolMean, llm.PoolFirst, llm.PoolLast} {
				e := embedder(t, w, llm.WithPooling(p))
				vectors, err := e.Embed(t.Context(), texts...)
				require.NoError(t, err)
				require.Len(t, vectors, len(texts))
				for i, v := range vectors {
					want := pooled(t, f, m.Tokenize(texts[i]), p)
					require.Len(t, v, e.Width())
					for k := range v {
						require.InDelta(t, want[k], v[k], 1e-5, "%v of %q, element %d", p, texts[i], k)
					}
				}
			}
		})
	}
}

// TestEncoder has a model that makes embeddings alone.
func TestEncoder(t *testing.T) {
	m := read(t, written(t, encoder(testseed.Of(t))))
	require.Equal(t, "the thing and", m.Detokenize(m.Tokenize("Thé  thing and")))
	require.True(t, m.Info().Encoder)
	w := loaded(t, m, device(t, "cpu"))
	_, err := w.NewSession(t.Context())
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = w.NewScheduler(t.Context())
	require.ErrorIs(t, err, compute.ErrUnsupported)
	e := embedder(t, w)
	require.Equal(t, llm.PoolMean, e.Pooling())
	require.Equal(t, m.Tokenize("the"), e.Tokenize("the"), "with both tokens around it")
	for _, n := range []int{1, 127, 128} {
		_, err = e.EmbedTokens(t.Context(), make([]int32, n))
		require.NoError(t, err)
	}
	_, err = e.EmbedTokens(t.Context(), make([]int32, 129))
	require.ErrorIs(t, err, compute.ErrTooLarge)

	r := encoder(1)
	r.Metadata = map[string]any{"tokenizer.ggml.add_eos_token": true, "tokenizer.ggml.eos_token_id": uint32(3)}
	w = loaded(t, read(t, written(t, r)), device(t, "cpu"))
	require.Equal(t, m.Tokenize("the"), embedder(t, w).Tokenize("the"), "not twice")

	r = encoder(1)
	r.Tokenizer, r.Metadata = "t5", map[string]any{"tokenizer.ggml.add_eos_token": true} // as XLM-RoBERTa has it
	e = embedder(t, loaded(t, read(t, written(t, r)), device(t, "cpu")))
	tokens := e.Tokenize("the thing")
	require.EqualValues(t, 1, tokens[0])
	require.EqualValues(t, 2, tokens[len(tokens)-1])
	require.NotContains(t, tokens[1:len(tokens)-1], int32(2))
	_, err = e.Embed(t.Context(), "the thing")
	require.NoError(t, err)
}

// TestPooling reads how states are pooled from files.
func TestPooling(t *testing.T) {
	dev := device(t, "cpu")
	with := func(metadata map[string]any) *llm.Weights {
		r := small(1)
		r.Metadata = metadata
		return loaded(t, read(t, written(t, r)), dev)
	}
	for value, want := range map[uint32]llm.Pooling{0: llm.PoolMean, 1: llm.PoolMean, 2: llm.PoolFirst, 3: llm.PoolLast} {
		w := with(map[string]any{"llama.pooling_type": value})
		require.Equal(t, want, embedder(t, w).Pooling())
		require.Equal(t, llm.PoolFirst, embedder(t, w, llm.WithPooling(llm.PoolFirst)).Pooling())
	}
	_, err := with(map[string]any{"llama.pooling_type": uint32(4)}).NewEmbedder(t.Context()) // which ranks
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = with(map[string]any{"llama.attention.causal": false}).NewEmbedder(t.Context())
	require.ErrorIs(t, err, compute.ErrUnsupported)

	w := with(map[string]any{"tokenizer.ggml.add_eos_token": true})
	e := embedder(t, w)
	tokens := w.Model().Tokenize("the")
	require.Equal(t, append(tokens, 2), e.Tokenize("the"))
	vectors, err := e.Embed(t.Context(), "the")
	require.NoError(t, err)
	same, err := e.EmbedTokens(t.Context(), append(tokens, 2))
	require.NoError(t, err)
	require.Equal(t, same, vectors)

	for _, p := range []llm.Pooling{-1, 0, 4} {
		_, err = w.NewEmbedder(t.Context(), llm.WithPooling(p))
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err = w.NewEmbedder(t.Context(), nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = w.NewEmbedder(t.Context(), llm.WithContext(129))
	require.ErrorIs(t, err, compute.ErrTooLarge)
	_, err = e.EmbedTokens(t.Context(), nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = e.EmbedTokens(t.Context(), []int32{320})
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = e.EmbedTokens(t.Context(), make([]int32, 129))
	require.ErrorIs(t, err, compute.ErrTooLarge)
	require.Equal(t, 128, e.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Embed(ctx, "the")
	require.ErrorIs(t, err, context.Canceled)

	// Many at once get what one gets alone.
	var all sync.WaitGroup
	for _, text := range []string{"the", "thing", "and", "of"} {
		alone, err := e.Embed(t.Context(), text)
		require.NoError(t, err)
		for range 4 {
			all.Go(func() {
				got, err := e.Embed(t.Context(), text)
				if err != nil || !slices.Equal(alone[0], got[0]) {
					t.Errorf("%q: %v, %v", text, got, err)
				}
			})
		}
	}
	all.Wait()
}
