//go:build !js

package llm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// smaller is a model with the vocabulary of small.
func smaller(t testing.TB, seed uint64) *llm.Model {
	r := small(seed + 1)
	r.Blocks, r.Width, r.Hidden, r.Heads, r.KVHeads = 1, 32, 32, 2, 1
	return read(t, written(t, r))
}

// drafting is the guide's code.
func drafting(ctx context.Context, s *llm.Session, draftWeights *llm.Weights, out io.Writer) error {
	smaller, err := draftWeights.NewSession(ctx, llm.WithContext(256))
	if err != nil {
		return err
	}
	defer smaller.Close()
	for token, err := range s.Generate(ctx, "The sea is", llm.WithMaxTokens(32), llm.WithDraft(smaller, 3)) {
		if err != nil {
			return err
		}
		fmt.Fprint(out, token.Text)
	}
	return nil
}

// alone is a prompt with what a session says to it without a draft.
func alone(t testing.TB, s *llm.Session, prompt []int32, opts ...llm.GenerateOption) *text {
	x := &text{prompt: prompt}
	for token, err := range s.GenerateTokens(t.Context(), prompt, append(opts, llm.WithLogProbs(2))...) {
		require.NoError(t, err)
		x.ties = append(x.ties, token.Top[0].LogProb-token.Top[1].LogProb < 1e-4)
		x.want = append(x.want, token)
	}
	return x
}

// TestDraft has greedy texts: they stay what they are, whatever the draft says, and with the model as its own draft all is accepted.
func TestDraft(t *testing.T) {
	seed := testseed.Of(t)
	m, other := read(t, written(t, small(seed))), smaller(t, seed)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			tokens, ns := 40, []int{1, 4, 63}
			switch kind {
			case "gpu":
				tokens, ns = 8, []int{3}
			case "cuda": // whose software GPU takes long
				tokens, ns = 4, []int{1}
			}
			dev := device(t, kind)
			opts := []llm.SessionOption{llm.WithContext(64), llm.WithChunk(8), llm.WithExact(), llm.WithCache(quant.F32)}
			w := loaded(t, m, dev)
			s := session(t, w, opts...)
			drafts := map[string]*llm.Session{"itself": session(t, w, opts...), "another": session(t, loaded(t, other, dev), llm.WithChunk(5), llm.WithContext(50))}
			x := alone(t, s, m.Tokenize("the thing and the other"), llm.WithMaxTokens(tokens), llm.WithIgnoreEnd())
			for name, draft := range drafts {
				for _, n := range ns {
					x.checkIDs(t, s.GenerateTokens(t.Context(), x.prompt, llm.WithMaxTokens(tokens), llm.WithIgnoreEnd(), llm.WithDraft(draft, n)))
					st := s.Stats()
					require.Positive(t, st.Drafted)
					require.Equal(t, tokens-1, st.Steps+st.Accepted)
					require.Positive(t, st.Drafting)
					require.Less(t, st.Drafting, st.Decoding)
					if name == "itself" {
						require.Equal(t, st.Drafted, st.Accepted)
						require.Equal(t, (tokens-1+min(n, 7))/(min(n, 7)+1), st.Steps, "a step has %d tokens of %d", n+1, tokens)
					}
				}
			}
		})
	}
}

// TestDraftOptions has other options beside a draft.
func TestDraftOptions(t *testing.T) {
	seed := testseed.Of(t)
	m := read(t, written(t, small(seed)))
	dev := device(t, "cpu")
	w := loaded(t, m, dev)
	opts := []llm.SessionOption{llm.WithContext(40), llm.WithChunk(8), llm.WithExact(), llm.WithCache(quant.F32)}
	s := session(t, w, opts...)
	prompt := m.Tokenize("the thing and the other")
	for name, draft := range map[string]*llm.Session{"itself": session(t, w, opts...), "another": session(t, loaded(t, smaller(t, seed), dev), llm.WithContext(40)),
		"short": session(t, w, llm.WithContext(4))} {
		ahead := llm.WithDraft(draft, 3)
		for _, with := range [][]llm.GenerateOption{
			{llm.WithIgnoreEnd()}, // to the end of the context
			{llm.WithMaxTokens(1)},
			{llm.WithMaxTokens(2), llm.WithIgnoreEnd()},
			{llm.WithMaxTokens(90), llm.WithIgnoreEnd(), llm.WithContextShift(5)},
			{llm.WithMaxTokens(20), llm.WithIgnoreEnd(), llm.WithSampling(llm.Sampling{RepetitionPenalty: 1.5, PresencePenalty: 1})},
			{llm.WithJSONSchema([]byte(`{"enum": ["aaaaaaaaaaaaaaaaaaaa", "abc", 12]}`))},
			{llm.WithJSONSchema([]byte(`{"type": "array", "items": {"type": "integer"}, "minItems": 3}`)), llm.WithMaxTokens(25)},
		} {
			x := alone(t, s, prompt, with...)
			x.checkIDs(t, s.GenerateTokens(t.Context(), prompt, append(with, ahead)...))
			require.LessOrEqual(t, s.Stats().Accepted, s.Stats().Drafted, name)
			if name == "short" {
				require.Zero(t, s.Stats().Drafted)
			}
		}
		// Log-probabilities are the model's.
		x := alone(t, s, prompt, llm.WithMaxTokens(12), llm.WithIgnoreEnd())
		i := 0
		for token, err := range s.GenerateTokens(t.Context(), prompt, llm.WithMaxTokens(12), llm.WithIgnoreEnd(), llm.WithLogProbs(1), ahead) {
			require.NoError(t, err)
			if x.ties[i] && token.ID != x.want[i].ID {
				break
			}
			require.InDelta(t, x.want[i].LogProb, token.LogProb, 1e-4)
			i++
		}
		// Breaking off and cancelling leave both sessions of use.
		for range s.GenerateTokens(t.Context(), prompt, llm.WithIgnoreEnd(), ahead) {
			break
		}
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			for _, err := range s.GenerateTokens(ctx, prompt, llm.WithIgnoreEnd(), ahead) {
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
			}
			x.checkIDs(t, s.GenerateTokens(t.Context(), prompt, llm.WithMaxTokens(12), llm.WithIgnoreEnd(), ahead))
		}
		// A text that goes on costs the draft what is new.
		_, _, _ = said(t, s.GenerateTokens(t.Context(), append(prompt, x.want[0].ID), llm.WithMaxTokens(3), llm.WithIgnoreEnd(), ahead))
	}
}

// TestDraftSampling counts texts that are drawn with a draft, and compares with their probabilities without.
func TestDraftSampling(t *testing.T) {
	const length, texts = 3, 3000
	seed := testseed.Of(t)
	m := read(t, written(t, small(seed)))
	dev := device(t, "cpu")
	w := loaded(t, m, dev)
	s := session(t, w, llm.WithExact(), llm.WithCache(quant.F32))
	prompt := m.Tokenize("the")
	probabilities := map[[length]int32]float64{}
	var follow func(tokens [length]int32, n int, p float64)
	follow = func(tokens [length]int32, n int, p float64) {
		if n == length {
			probabilities[tokens] = p
			return
		}
		var top []llm.Candidate
		text := append(prompt[:len(prompt):len(prompt)], tokens[:n]...)
		for token, err := range s.GenerateTokens(t.Context(), text, llm.WithMaxTokens(1), llm.WithLogProbs(3), llm.WithIgnoreEnd()) {
			require.NoError(t, err)
			top = token.Top
		}
		sum := 0.0
		for _, c := range top {
			sum += math.Exp(c.LogProb)
		}
		for _, c := range top {
			tokens[n] = c.ID
			follow(tokens, n+1, p*math.Exp(c.LogProb)/sum)
		}
	}
	follow([length]int32{}, 0, 1)
	many := scheduler(t, w, exact(llm.WithDraftModel(w, 4))...)
	for name, draft := range map[string]*llm.Session{"itself": session(t, w), "another": session(t, loaded(t, smaller(t, seed), dev)), "in a scheduler": nil} {
		counts := map[[length]int32]float64{}
		drafted, accepted := 0, 0
		for i := range texts {
			opts := []llm.GenerateOption{llm.WithMaxTokens(length), llm.WithIgnoreEnd(), llm.WithSampling(llm.Sampling{Temperature: 1, TopK: 3, Seed: uint64(i)})}
			if draft == nil {
				_, ids, _ := said(t, many.GenerateTokens(t.Context(), prompt, opts...))
				counts[[length]int32(ids)]++
				continue
			}
			_, ids, _ := said(t, s.GenerateTokens(t.Context(), prompt, append(opts, llm.WithDraft(draft, 4))...))
			counts[[length]int32(ids)]++
			drafted, accepted = drafted+s.Stats().Drafted, accepted+s.Stats().Accepted
		}
		for tokens, n := range counts {
			require.Contains(t, probabilities, tokens, "%s drew %v times what has no probability", name, n)
		}
		for tokens, p := range probabilities {
			require.InDelta(t, p, counts[tokens]/texts, 5*math.Sqrt(p*(1-p)/texts)+1e-9, "%s: %v", name, tokens)
		}
		if name == "itself" {
			require.Greater(t, accepted, drafted*9/10, "it says the same but for rounding")
		}
	}
	require.Greater(t, many.Stats().Accepted, many.Stats().Drafted*9/10)
}

// shortened is a model with the first n tokens of another, and unused the other with the rest as padding.
func shortened(t testing.TB, file []byte, n int) (short, unused []byte) {
	f, err := gguf.New(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	rewrite := func(rows, used int) []byte {
		var out bytes.Buffer
		w := gguf.NewWriter(&out)
		for _, key := range f.Keys() {
			v, _ := f.Value(key)
			if a, ok := v.(*gguf.Array); ok {
				v, err = a.Values()
				require.NoError(t, err)
			}
			switch x := v.(type) {
			case []string:
				v = x[:rows]
			case []float32:
				v = x[:rows]
			case []int32:
				x = slices.Clone(x[:rows])
				for i := used; i < rows; i++ {
					x[i] = 5
				}
				v = x
			}
			require.NoError(t, w.Set(key, v))
		}
		var data []byte
		for _, tensor := range f.Tensors() {
			shape := tensor.Shape()
			b, err := tensor.Bytes()
			require.NoError(t, err)
			if shape[0] == 320 {
				b, shape[0] = b[:len(b)/320*rows], rows
			}
			require.NoError(t, w.AddTensor(tensor.Name(), tensor.Type(), shape...))
			data = append(data, b...)
		}
		_, err := w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	return rewrite(n, n), rewrite(320, n)
}

// TestDraftPadding has models whose embeddings have rows of no token at the end, as many as each likes.
func TestDraftPadding(t *testing.T) {
	file := written(t, small(testseed.Of(t)))
	short, padded := shortened(t, file, 300)
	dev := device(t, "cpu")
	a, b := loaded(t, read(t, short), dev), loaded(t, read(t, padded), dev)
	opts := []llm.SessionOption{llm.WithContext(64), llm.WithExact(), llm.WithCache(quant.F32)}
	for _, pair := range [][2]*llm.Weights{{a, b}, {b, a}} {
		s, draft := session(t, pair[0], opts...), session(t, pair[1], opts...)
		prompt := pair[0].Model().Tokenize("the thing and the other")
		x := alone(t, s, prompt, llm.WithMaxTokens(30), llm.WithIgnoreEnd())
		x.checkIDs(t, s.GenerateTokens(t.Context(), prompt, llm.WithMaxTokens(30), llm.WithIgnoreEnd(), llm.WithDraft(draft, 3)))
		require.Positive(t, s.Stats().Accepted)
		for range 20 {
			_, ids, _ := said(t, s.GenerateTokens(t.Context(), prompt, llm.WithMaxTokens(30), llm.WithIgnoreEnd(), llm.WithDraft(draft, 3),
				llm.WithSampling(llm.Sampling{Temperature: 100})))
			require.Len(t, ids, 30)
		}
	}
	// Tokens that are used are another vocabulary.
	err := failure(t, session(t, a).Generate(t.Context(), "the", llm.WithDraft(session(t, loaded(t, read(t, file), dev)), 3)))
	require.ErrorIs(t, err, compute.ErrArgument)
}

func TestDraftErrors(t *testing.T) {
	m, dev := read(t, written(t, small(1))), device(t, "cpu")
	w := loaded(t, m, dev)
	s, draft := session(t, w), session(t, w)
	for _, o := range []llm.GenerateOption{llm.WithDraft(nil, 3), llm.WithDraft(draft, 0), llm.WithDraft(draft, 64)} {
		require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the", o)), compute.ErrArgument)
	}
	err := failure(t, s.Generate(t.Context(), "the", llm.WithDraft(draft, 3), llm.WithLookup(3)))
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorIs(t, failure(t, scheduler(t, w).Generate(t.Context(), "the", llm.WithDraft(draft, 3))), compute.ErrUnsupported)
	require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the", llm.WithDraft(s, 3))), compute.ErrInFlight)
	for range draft.Generate(t.Context(), "the", llm.WithIgnoreEnd()) {
		require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the", llm.WithDraft(draft, 3))), compute.ErrInFlight)
		break
	}
	r := small(1)
	r.Tokenizer = "gpt2"
	stranger := loaded(t, read(t, written(t, r)), dev)
	err = failure(t, s.Generate(t.Context(), "the", llm.WithDraft(session(t, stranger), 3)))
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "vocabulary")
	for _, o := range []llm.SchedulerOption{llm.WithDraftModel(nil, 3), llm.WithDraftModel(w, 0), llm.WithDraftModel(w, 64), llm.WithDraftModel(stranger, 3)} {
		_, err := w.NewScheduler(t.Context(), o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	r = small(2)
	r.Context = 256
	var out strings.Builder
	require.NoError(t, drafting(t.Context(), s, loaded(t, read(t, written(t, r)), dev), &out))
	require.NotEmpty(t, out.String())
	_, _, finish := said(t, s.Generate(t.Context(), "the", llm.WithDraft(draft, 3), llm.WithMaxTokens(5), llm.WithIgnoreEnd()))
	require.Equal(t, llm.Limit, finish, "after errors both go on")
	require.NoError(t, draft.Close())
	failed := errors.New("none")
	for _, e := range s.Generate(t.Context(), "the", llm.WithDraft(draft, 3), llm.WithMaxTokens(5), llm.WithIgnoreEnd()) {
		failed = e
	}
	require.ErrorIs(t, failed, compute.ErrClosed)
}
