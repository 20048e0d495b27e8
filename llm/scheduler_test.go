//go:build !js

package llm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

// exact options compute what others compute up to the rounding of sums.
func exact(opts ...llm.SchedulerOption) []llm.SchedulerOption {
	return append(opts, llm.WithExact(), llm.WithCache(quant.F32))
}

func scheduler(t testing.TB, w *llm.Weights, opts ...llm.SchedulerOption) *llm.Scheduler {
	s, err := w.NewScheduler(t.Context(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// text is a prompt with what a session alone says to it.
type text struct {
	prompt []int32
	opts   []llm.GenerateOption
	want   []llm.Token
	ties   []bool // the session hardly knew
}

// texts are prompts of many lengths, some with the same beginning.
func texts(t testing.TB, s *llm.Session, random *rand.Rand, n, longest, tokens int) []*text {
	var all []*text
	for i := range n {
		x := &text{prompt: []int32{1}, opts: []llm.GenerateOption{llm.WithIgnoreEnd(), llm.WithMaxTokens(1 + random.IntN(tokens))}}
		if i%3 == 1 {
			x.prompt = slices.Clone(all[i-1].prompt)
		}
		for range 1 + random.IntN(longest-1) {
			if len(x.prompt) < longest {
				x.prompt = append(x.prompt, 5+random.Int32N(300))
			}
		}
		if i%4 == 3 {
			x.opts = append(x.opts, llm.WithSampling(llm.Sampling{Temperature: 1, TopK: 20, TopP: 0.9, PresencePenalty: float64(i % 8 / 4), Seed: uint64(i)}))
		}
		for token, err := range s.GenerateTokens(t.Context(), x.prompt, append(x.opts, llm.WithLogProbs(2))...) {
			require.NoError(t, err)
			x.ties = append(x.ties, token.Top[0].LogProb-token.Top[1].LogProb < 1e-4)
			token.LogProb, token.Top = 0, nil
			x.want = append(x.want, token)
		}
		all = append(all, x)
	}
	return all
}

// check compares tokens with those of the session, up to one of which the session itself hardly knew.
func (x *text) check(t testing.TB, got []llm.Token, whole bool) {
	for i := range got {
		if i < len(x.want) && x.ties[i] && x.want[i].ID != got[i].ID {
			return
		}
		if i >= len(x.want) || x.want[i].ID != got[i].ID || x.want[i].Text != got[i].Text || x.want[i].Finish != got[i].Finish {
			t.Errorf("prompt %v: token %d of %d is %+v, alone %+v", x.prompt, i, len(x.want), got[i], x.want[min(i, len(x.want)-1)])
			return
		}
	}
	if whole && len(got) != len(x.want) {
		t.Errorf("prompt %v: %d tokens, alone %d", x.prompt, len(got), len(x.want))
	}
}

// checkIDs is check for a sequence, of tokens alone.
func (x *text) checkIDs(t testing.TB, sequence func(yield func(llm.Token, error) bool)) {
	i := 0
	for token, err := range sequence {
		if err != nil {
			t.Error(err)
			return
		}
		if i >= len(x.want) || x.want[i].ID != token.ID {
			if i >= len(x.want) || !x.ties[i] {
				t.Errorf("prompt %v: token %d of %d is %d, alone %d", x.prompt, i, len(x.want), token.ID, x.want[min(i, len(x.want)-1)].ID)
			}
			return
		}
		i++
	}
	if i < len(x.want) {
		t.Errorf("prompt %v: %d tokens, alone %d", x.prompt, i, len(x.want))
	}
}

// TestScheduler has texts join and leave, and compares each with what a session says alone.
func TestScheduler(t *testing.T) {
	seed := testseed.Of(t)
	m := read(t, written(t, small(seed)))
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			n, longest, tokens, chunk := 20, 60, 30, 8
			switch kind {
			case "gpu":
				n, longest, tokens = 5, 20, 6
			case "cuda":
				n, longest, tokens, chunk = 3, 6, 3, 3
			}
			w := loaded(t, m, device(t, kind))
			all := texts(t, session(t, w, llm.WithExact(), llm.WithCache(quant.F32)), rand.New(rand.NewPCG(seed, 9)), n, longest, tokens)
			s := scheduler(t, w, exact(llm.WithContext(96), llm.WithChunk(chunk), llm.WithSequences(3), llm.WithCacheTokens(128))...)
			var group sync.WaitGroup
			for _, x := range all {
				group.Go(func() {
					var got []llm.Token
					for token, err := range s.GenerateTokens(t.Context(), x.prompt, x.opts...) {
						if err != nil {
							t.Error(err)
						}
						got = append(got, token)
					}
					x.check(t, got, true)
				})
			}
			group.Wait()
			st := idle(t, s)
			require.Equal(t, 128, st.CacheTokens)
			prompt, chosen := 0, 0
			for _, x := range all {
				prompt, chosen = prompt+len(x.prompt), chosen+len(x.want)
			}
			require.EqualValues(t, prompt, st.Prompt)
			if kind == "cpu" {
				require.Positive(t, st.Known, "of texts that begin alike")
				require.Less(t, st.Steps, int64(chosen), "a step is for several texts")
				require.Positive(t, st.PutOff, "three texts may be longer than the cache")
			}
		})
	}
}

// TestSchedulerAhead has tokens computed ahead of texts, and compares each text with what a session says alone.
func TestSchedulerAhead(t *testing.T) {
	seed := testseed.Of(t)
	m, other := read(t, written(t, small(seed))), smaller(t, seed)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			dev := device(t, kind)
			w := loaded(t, m, dev)
			drafts := map[string]*llm.Weights{"lookup": nil, "itself": w, "another": loaded(t, other, dev)}
			n, longest, tokens, chunk := 20, 60, 30, 16
			if kind != "cpu" {
				n, longest, tokens, chunk = 2, 6, 4, 4
				delete(drafts, "itself")
			}
			alone := session(t, w, llm.WithExact(), llm.WithCache(quant.F32))
			all := texts(t, alone, rand.New(rand.NewPCG(seed, 9)), n, longest, tokens)
			var more []*text // which drafts change nothing about either
			if kind == "cpu" {
				for _, with := range [][]llm.GenerateOption{
					{llm.WithMaxTokens(120), llm.WithIgnoreEnd(), llm.WithContextShift(5)},
					{llm.WithIgnoreEnd()}, // to the end of the context
					{llm.WithJSONSchema([]byte(`{"type": "array", "items": {"type": "integer"}, "minItems": 3}`)), llm.WithMaxTokens(25)},
					{llm.WithMaxTokens(20), llm.WithIgnoreEnd(), llm.WithSampling(llm.Sampling{RepetitionPenalty: 1.5, PresencePenalty: 1})},
				} {
					x := &text{prompt: all[0].prompt, opts: with}
					for token, err := range session(t, w, llm.WithContext(96), llm.WithExact(), llm.WithCache(quant.F32)).GenerateTokens(t.Context(), x.prompt, append(with, llm.WithLogProbs(2))...) {
						require.NoError(t, err)
						x.ties = append(x.ties, token.Top[0].LogProb-token.Top[1].LogProb < 1e-4)
						token.LogProb, token.Top = 0, nil
						x.want = append(x.want, token)
					}
					more = append(more, x)
				}
			}
			for name, draft := range drafts {
				opts := []llm.SchedulerOption{llm.WithContext(96), llm.WithChunk(chunk), llm.WithSequences(3), llm.WithCacheTokens(112)}
				if draft != nil {
					opts = append(opts, llm.WithDraftModel(draft, 4))
				}
				s := scheduler(t, w, exact(opts...)...)
				var group sync.WaitGroup
				for i, x := range slices.Concat(more, all) {
					group.Go(func() {
						var got []llm.Token
						opts := x.opts
						if draft == nil {
							opts = append(slices.Clone(opts), llm.WithLookup(5))
						}
						for token, err := range s.GenerateTokens(t.Context(), x.prompt, opts...) {
							if err != nil {
								t.Error(err)
							}
							got = append(got, token)
						}
						if drawn := i >= len(more) && (i-len(more))%4 == 3; !drawn || draft == nil { // by other random numbers with a model
							x.check(t, got, true)
						}
					})
				}
				group.Wait()
				st := idle(t, s)
				if kind == "cpu" {
					require.Positive(t, st.Drafted, name)
					require.LessOrEqual(t, st.Accepted, st.Drafted, name)
				}
				if name == "itself" {
					require.Greater(t, st.Accepted, st.Drafted*8/10, "it says the same but for rounding, and what comes after the end")
				}
				// Breaking off leaves nothing behind, nor did putting off: the draft's cache has room for another text.
				for range s.GenerateTokens(t.Context(), all[0].prompt, llm.WithIgnoreEnd()) {
					break
				}
				before := idle(t, s)
				if kind == "cpu" && draft != nil {
					require.Positive(t, before.PutOff)
					_, _, _ = said(t, s.GenerateTokens(t.Context(), all[0].prompt, llm.WithMaxTokens(20), llm.WithIgnoreEnd()))
					require.Greater(t, idle(t, s).Drafted, before.Drafted)
				}
			}
		})
	}
}

// TestSchedulerKnown has texts that begin like others, under way and ended.
func TestSchedulerKnown(t *testing.T) {
	seed := testseed.Of(t)
	w := loaded(t, read(t, written(t, small(seed))), device(t, "cpu"))
	all := texts(t, session(t, w, llm.WithExact(), llm.WithCache(quant.F32)), rand.New(rand.NewPCG(seed, 11)), 1, 40, 20)
	x := all[0]
	for len(x.prompt) < 40 {
		x.prompt = append(x.prompt, 5+int32(len(x.prompt)))
	}
	s := scheduler(t, w, exact()...)
	_, want, _ := said(t, s.GenerateTokens(t.Context(), x.prompt, llm.WithMaxTokens(20), llm.WithIgnoreEnd()))
	require.Zero(t, s.Stats().Known)
	n := 0
	for token, err := range s.GenerateTokens(t.Context(), x.prompt, llm.WithMaxTokens(20), llm.WithIgnoreEnd()) {
		require.NoError(t, err)
		require.Equal(t, want[n], token.ID)
		if n++; n == 1 {
			require.EqualValues(t, 32, s.Stats().Known, "whole pages")
			_, inside, _ := said(t, s.GenerateTokens(t.Context(), slices.Concat(x.prompt, want[:10]), llm.WithMaxTokens(10), llm.WithIgnoreEnd()))
			require.Equal(t, want[10:], inside)
		}
	}
	require.EqualValues(t, 32+48, idle(t, s).Known)
}

// idle waits until no text runs.
func idle(t testing.TB, s *llm.Scheduler) llm.SchedulerStats {
	require.Eventually(t, func() bool { st := s.Stats(); return st.Running+st.Waiting == 0 }, time.Minute, time.Millisecond)
	st := s.Stats()
	require.Zero(t, st.CacheUsed)
	return st
}

// TestSchedulerCancel has texts end at any time, by their context or because the caller stops, which the others do not notice.
func TestSchedulerCancel(t *testing.T) {
	seed := testseed.Of(t)
	w := loaded(t, read(t, written(t, small(seed))), device(t, "cpu"))
	all := texts(t, session(t, w, llm.WithExact(), llm.WithCache(quant.F32)), rand.New(rand.NewPCG(seed, 10)), 12, 40, 30)
	s := scheduler(t, w, exact(llm.WithContext(80), llm.WithChunk(8), llm.WithSequences(4), llm.WithCacheTokens(160))...)
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(20+i)))
			for range 10 {
				x := all[random.IntN(len(all))]
				ctx, cancel := context.WithCancel(t.Context())
				way, at := random.IntN(3), random.IntN(12)
				if way == 1 {
					time.AfterFunc(time.Duration(random.IntN(10_000))*time.Microsecond, cancel)
				}
				var got []llm.Token
				for token, err := range s.GenerateTokens(ctx, x.prompt, x.opts...) {
					if err != nil {
						if way != 1 || ctx.Err() == nil {
							t.Error(err)
						}
						break
					}
					if got = append(got, token); way == 2 && len(got) > at {
						break
					}
				}
				x.check(t, got, way == 0)
				cancel()
			}
		})
	}
	group.Wait()
	idle(t, s)
}

func TestSchedulerErrors(t *testing.T) {
	w := loaded(t, read(t, written(t, small(1))), device(t, "cpu"))
	for _, o := range []llm.SchedulerOption{nil, llm.SessionOption(nil), llm.WithContext(-1), llm.WithSequences(-1), llm.WithQueue(-1), llm.WithCacheTokens(127)} {
		_, err := w.NewScheduler(t.Context(), o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err := w.NewScheduler(t.Context(), llm.WithContext(129))
	require.ErrorIs(t, err, compute.ErrTooLarge)
	_, err = w.NewScheduler(nil) //nolint:staticcheck // which is the error
	require.ErrorIs(t, err, compute.ErrArgument)

	s := scheduler(t, w, llm.WithContext(16), llm.WithSequences(1), llm.WithQueue(1))
	require.Equal(t, 16, s.Context())
	for _, o := range []llm.GenerateOption{nil, llm.WithMaxTokens(0)} {
		require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the", o)), compute.ErrArgument)
	}
	require.ErrorIs(t, failure(t, s.Generate(nil, "the")), compute.ErrArgument) //nolint:staticcheck // which is the error
	require.ErrorIs(t, failure(t, s.GenerateTokens(t.Context(), nil)), compute.ErrArgument)
	require.ErrorIs(t, failure(t, s.GenerateTokens(t.Context(), []int32{1, 320})), compute.ErrArgument)
	require.ErrorIs(t, failure(t, s.GenerateTokens(t.Context(), make([]int32, 17))), compute.ErrTooLarge)
	_, ids, finish := said(t, s.GenerateTokens(t.Context(), make([]int32, 16), llm.WithIgnoreEnd()))
	require.Equal(t, llm.ContextFull, finish)
	require.Len(t, ids, 1)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, failure(t, s.Generate(cancelled, "the")), context.Canceled)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the")), compute.ErrClosed)
}

func TestSchedulerChat(t *testing.T) {
	w := loaded(t, read(t, written(t, small(testseed.Of(t)))), device(t, "cpu"))
	talk := []llm.Message{{Role: "user", Content: "the thing"}}
	want, _, _ := said(t, session(t, w, llm.WithExact(), llm.WithCache(quant.F32)).Chat(t.Context(), talk, llm.WithMaxTokens(8)))
	got, _, _ := said(t, scheduler(t, w, exact()...).Chat(t.Context(), talk, llm.WithMaxTokens(8)))
	require.Equal(t, want, got)
}

// TestSchedulerBusy has more texts than may wait: some are refused, the others are not disturbed.
func TestSchedulerBusy(t *testing.T) {
	w := loaded(t, read(t, written(t, small(testseed.Of(t)))), device(t, "cpu"))
	s := scheduler(t, w, exact(llm.WithSequences(1), llm.WithQueue(1))...)
	want, _, _ := said(t, s.Generate(t.Context(), "and", llm.WithIgnoreEnd()))
	var busy, done atomic.Int32
	for busy.Load() == 0 {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				got := ""
				for token, err := range s.Generate(t.Context(), "and", llm.WithIgnoreEnd()) {
					if errors.Is(err, llm.ErrBusy) {
						busy.Add(1)
						return
					}
					if err != nil {
						t.Error(err)
					}
					got += token.Text
				}
				done.Add(1)
				if got != want {
					t.Errorf("%q, alone %q", got, want)
				}
			})
		}
		group.Wait()
	}
	require.Positive(t, done.Load())
}

// TestSchedulerClose closes beside a text, which then has an error after the tokens that were computed.
func TestSchedulerClose(t *testing.T) {
	w := loaded(t, read(t, written(t, small(testseed.Of(t)))), device(t, "cpu"))
	closed := false
	for !closed { // it may have ended before
		s := scheduler(t, w)
		n := 0
		for token, err := range s.Generate(t.Context(), "and", llm.WithIgnoreEnd()) {
			if n++; n == 1 {
				require.NoError(t, s.Close())
			}
			if err != nil {
				require.ErrorIs(t, err, compute.ErrClosed)
				closed = true
			} else if token.Finish != llm.Unfinished {
				require.Equal(t, llm.ContextFull, token.Finish)
			}
		}
	}
}
