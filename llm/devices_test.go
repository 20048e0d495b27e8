//go:build !js

package llm_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/internal/decoder/decodertest"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

const template = `{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content|trim }}{{ '\n' }}{% endfor %}assistant:`

// small is a model that is computed at once.
func small(seed uint64) decoder.Random {
	return decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 128, ChatTemplate: template,
		Seed: seed}
}

func written(t testing.TB, r decoder.Random) []byte {
	var file bytes.Buffer
	require.NoError(t, r.Write(&file))
	return file.Bytes()
}

func read(t testing.TB, file []byte) *llm.Model {
	m, err := llm.Read(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func device(t testing.TB, kind string) *wavelane.Device {
	dev, err := wavelane.Open(t.Context(), wavelane.WithDevice(kind), wavelane.WithSoftware())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func loaded(t testing.TB, m *llm.Model, dev llm.Device, opts ...llm.LoadOption) *llm.Weights {
	w, err := m.Load(t.Context(), dev, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func session(t testing.TB, w *llm.Weights, opts ...llm.SessionOption) *llm.Session {
	s, err := w.NewSession(t.Context(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestProbabilities compares tokens and their probabilities with float64, on every device.
func TestProbabilities(t *testing.T) {
	seed := testseed.Of(t)
	file := written(t, small(seed))
	f, err := gguf.New(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	m := read(t, file)
	random := rand.New(rand.NewPCG(seed, 7))
	prompt := []int32{1}
	for range 12 {
		prompt = append(prompt, random.Int32N(int32(m.Info().Vocabulary)))
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := session(t, loaded(t, m, device(t, kind)), llm.WithChunk(5), llm.WithExact(), llm.WithCache(quant.F32))
			reference := decodertest.New(t, f)
			var logits []float64
			for _, token := range prompt {
				logits = reference.Step(token)
			}
			n := 0
			for token, err := range s.GenerateTokens(t.Context(), prompt, llm.WithMaxTokens(6), llm.WithLogProbs(3), llm.WithIgnoreEnd()) {
				require.NoError(t, err)
				want := logSoftmax(logits)
				require.InDelta(t, want[token.ID], token.LogProb, 1e-4)
				require.Len(t, token.Top, 3)
				best := math.Inf(-1)
				for _, x := range want {
					best = max(best, x)
				}
				require.InDelta(t, best, token.Top[0].LogProb, 1e-4)
				require.Equal(t, token.ID, token.Top[0].ID, "the most likely token")
				for i, c := range token.Top {
					require.InDelta(t, want[c.ID], c.LogProb, 1e-4)
					require.True(t, i == 0 || c.LogProb <= token.Top[i-1].LogProb)
				}
				logits = reference.Step(token.ID)
				n++
			}
			require.Equal(t, 6, n)
			st := s.Stats()
			require.Equal(t, llm.Stats{Prompt: 13, Steps: 5, Prefill: st.Prefill, Decoding: st.Decoding}, st)
			require.Positive(t, st.Prefill)
			require.Positive(t, st.Decoding)

			// What the device chooses is the same.
			var chosen, greedy []int32
			for token := range s.GenerateTokens(t.Context(), prompt, llm.WithMaxTokens(6), llm.WithLogProbs(0), llm.WithIgnoreEnd()) {
				chosen = append(chosen, token.ID)
			}
			for token := range s.GenerateTokens(t.Context(), prompt, llm.WithMaxTokens(6), llm.WithIgnoreEnd()) {
				greedy = append(greedy, token.ID)
			}
			require.Equal(t, chosen, greedy)
		})
	}
}

func logSoftmax(logits []float64) []float64 {
	best, sum := math.Inf(-1), 0.0
	for _, x := range logits {
		best = max(best, x)
	}
	for _, x := range logits {
		sum += math.Exp(x - best)
	}
	out := make([]float64, len(logits))
	for i, x := range logits {
		out[i] = x - best - math.Log(sum)
	}
	return out
}
