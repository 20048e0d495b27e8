package llm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
)

func logs(p ...float64) []float32 {
	out := make([]float32, len(p))
	for i, x := range p {
		out[i] = float32(math.Log(x))
	}
	return out
}

// shares are how often each token is drawn.
func shares(t *testing.T, s Sampling, n *decoder.Next, tokens []int32) map[int32]float64 {
	require.NoError(t, s.check())
	choice := newSampler(s, choiceStream)
	const draws = 20000
	out := map[int32]float64{}
	for range draws {
		token, err := choice.pick(n, tokens)
		require.NoError(t, err)
		out[token] += 1.0 / draws
	}
	return out
}

func TestSampling(t *testing.T) {
	five := &decoder.Next{Logits: logs(0.1, 0.4, 0.05, 0.25, 0.2)}
	for _, c := range []struct {
		name   string
		s      Sampling
		tokens []int32
		want   map[int32]float64
	}{
		{"all", Sampling{Temperature: 1}, nil, map[int32]float64{0: 0.1, 1: 0.4, 2: 0.05, 3: 0.25, 4: 0.2}},
		{"half the temperature", Sampling{Temperature: 0.5}, nil,
			map[int32]float64{0: 0.01 / 0.275, 1: 0.16 / 0.275, 2: 0.0025 / 0.275, 3: 0.0625 / 0.275, 4: 0.04 / 0.275}},
		{"top-k", Sampling{Temperature: 1, TopK: 2}, nil, map[int32]float64{1: 0.4 / 0.65, 3: 0.25 / 0.65}},
		{"top-p", Sampling{Temperature: 1, TopP: 0.6}, nil, map[int32]float64{1: 0.4 / 0.65, 3: 0.25 / 0.65}},
		{"top-p of top-k", Sampling{Temperature: 1, TopK: 2, TopP: 0.6}, nil, map[int32]float64{1: 1}},
		{"min-p", Sampling{Temperature: 1, MinP: 0.45}, nil, map[int32]float64{1: 0.4 / 0.85, 3: 0.25 / 0.85, 4: 0.2 / 0.85}},
		{"all of them", Sampling{Temperature: 1, TopK: 4, TopP: 0.8, MinP: 0.6}, nil, map[int32]float64{1: 0.4 / 0.65, 3: 0.25 / 0.65}},
		{"greedy", Sampling{}, nil, map[int32]float64{1: 1}},
		{"presence", Sampling{PresencePenalty: 1}, []int32{1, 1}, map[int32]float64{3: 1}},
		{"frequency", Sampling{FrequencyPenalty: 0.5}, []int32{1, 3, 1}, map[int32]float64{1: 0, 3: 0, 4: 1}},
		{"repetition of negative logits", Sampling{RepetitionPenalty: 2}, []int32{1}, map[int32]float64{3: 1}},
		{"window", Sampling{PresencePenalty: 10, PenaltyWindow: 2}, []int32{1, 2, 2}, map[int32]float64{1: 1}},
	} {
		got := shares(t, c.s, five, c.tokens)
		for token := range int32(5) {
			require.InDelta(t, c.want[token], got[token], 0.02, "%s: token %d of %v", c.name, token, got)
		}
	}
	// Positive logits are divided.
	require.Equal(t, map[int32]float64{0: 1}, map[int32]float64{0: math.Round(shares(t, Sampling{RepetitionPenalty: 2}, &decoder.Next{Logits: []float32{2, 3}}, []int32{1})[0])})
	// A device that has found the likeliest gives their indices.
	got := shares(t, Sampling{Temperature: 1, TopK: 2}, &decoder.Next{Logits: logs(0.5, 0.25, 0.1), Indices: []int32{9, 4, 2}}, nil)
	require.InDelta(t, 2.0/3, got[9], 0.02)
	require.InDelta(t, 1.0/3, got[4], 0.02)
}

// TestVerify has tokens that were drawn from another distribution: what is chosen has the model's, and as many as may be are accepted.
func TestVerify(t *testing.T) {
	model := logs(0.1, 0.4, 0.05, 0.25, 0.2)
	for _, c := range []struct {
		name    string
		s       Sampling
		draft   []float32
		indices []int32
	}{
		{"the same", Sampling{Temperature: 1}, model, nil},
		{"other shares", Sampling{Temperature: 1}, logs(0.3, 0.1, 0.3, 0.2, 0.1), nil},
		{"more tokens", Sampling{Temperature: 1}, logs(0.1, 0.3, 0.1, 0.1, 0.1, 0.3), nil},
		{"fewer tokens", Sampling{Temperature: 1}, logs(0.7, 0.3), nil},
		{"a temperature", Sampling{Temperature: 0.7}, logs(0.2, 0.2, 0.2, 0.2, 0.2), nil},
		{"other likely ones", Sampling{Temperature: 1, TopK: 2}, logs(0.1, 0.2, 0.3, 0.35, 0.05), nil},
		{"none in common", Sampling{Temperature: 1, TopK: 2}, logs(0.4, 0.1, 0.4, 0.05, 0.05), nil},
		{"found by a device", Sampling{Temperature: 1, TopK: 3}, logs(0.5, 0.3, 0.2), []int32{3, 0, 4}},
		{"top-p", Sampling{Temperature: 1, TopP: 0.6}, logs(0.2, 0.3, 0.3, 0.1, 0.1), nil},
		{"greedy, the same", Sampling{}, model, nil},
		{"greedy, another", Sampling{}, logs(0.1, 0.2, 0.3, 0.2, 0.1), nil},
	} {
		want := shares(t, c.s, &decoder.Next{Logits: model}, nil)
		other := shares(t, c.s, &decoder.Next{Logits: c.draft, Indices: c.indices}, nil)
		choice, drafted := newSampler(c.s, choiceStream), newSampler(c.s, draftStream)
		const draws = 20000
		got, accepted, possible := map[int32]float64{}, 0.0, 0.0
		for range draws {
			q, err := drafted.distribution(&decoder.Next{Logits: c.draft, Indices: c.indices}, nil)
			require.NoError(t, err)
			token := drafted.draw(&q)
			chosen, err := choice.verify(&decoder.Next{Logits: model}, nil, token, &q)
			require.NoError(t, err)
			if got[chosen] += 1.0 / draws; chosen == token {
				accepted += 1.0 / draws
			}
		}
		for token := range int32(6) {
			require.InDelta(t, want[token], got[token], 0.02, "%s: token %d of %v", c.name, token, got)
			possible += min(want[token], other[token])
		}
		require.InDelta(t, possible, accepted, 0.02, c.name)
	}
	q := certain(1)
	_, err := newSampler(Sampling{Temperature: 1}, choiceStream).verify(&decoder.Next{Logits: []float32{float32(math.NaN())}}, nil, 1, &q)
	require.ErrorIs(t, err, compute.ErrNotFinite)
}

func TestSamplingOutput(t *testing.T) {
	for _, c := range []struct {
		s             Sampling
		probabilities bool
		want          int
	}{{Sampling{}, false, 1}, {Sampling{}, true, 0}, {Sampling{PresencePenalty: 1}, false, 0}, {Sampling{Temperature: 1}, false, 0},
		{Sampling{Temperature: 1, TopK: 5}, false, 32}, {Sampling{Temperature: 1, TopK: 40}, false, 64}, {Sampling{Temperature: 1, TopK: 1024}, false, 1024},
		{Sampling{Temperature: 1, TopK: 1025}, false, 0}, {Sampling{RepetitionPenalty: 1}, false, 1}} {
		require.Equal(t, c.want, c.s.output(c.probabilities).TopK, "%+v", c.s)
	}
}

func TestSamplingSeeds(t *testing.T) {
	n := &decoder.Next{Logits: make([]float32, 50)}
	draws := func(seed uint64) (out []int32) {
		s := newSampler(Sampling{Temperature: 1, Seed: seed}, choiceStream)
		for range 20 {
			token, err := s.pick(n, nil)
			require.NoError(t, err)
			out = append(out, token)
		}
		return out
	}
	require.Equal(t, draws(3), draws(3))
	require.NotEqual(t, draws(3), draws(4))
}

func TestSamplingErrors(t *testing.T) {
	nan := math.NaN()
	for _, s := range []Sampling{{Temperature: -1}, {Temperature: nan}, {Temperature: math.Inf(1)}, {TopK: -1}, {TopP: -1}, {TopP: 1.5}, {TopP: nan}, {MinP: 2}, {MinP: nan},
		{RepetitionPenalty: -1}, {RepetitionPenalty: nan}, {FrequencyPenalty: nan}, {PresencePenalty: math.Inf(1)}, {PenaltyWindow: -1}} {
		require.ErrorIs(t, s.check(), compute.ErrArgument, "%+v", s)
	}
	bad := float32(nan)
	_, err := newSampler(Sampling{Temperature: 1}, choiceStream).pick(&decoder.Next{Logits: []float32{bad, bad}}, nil)
	require.ErrorIs(t, err, compute.ErrNotFinite)
	_, err = newSampler(Sampling{Temperature: 1}, choiceStream).pick(&decoder.Next{Logits: []float32{0, float32(math.Inf(1))}}, nil)
	require.ErrorIs(t, err, compute.ErrNotFinite)
	for range 20 { // one that is none does not stand in the way
		token, err := newSampler(Sampling{Temperature: 1, TopK: 2}, choiceStream).pick(&decoder.Next{Logits: []float32{bad, 1}}, nil)
		require.NoError(t, err)
		require.EqualValues(t, 1, token)
	}
}

func TestLogProbs(t *testing.T) {
	p, top := logProbs(logs(0.1, 0.4, 0.25, 0.25), 0, 3)
	require.InDelta(t, math.Log(0.1), p, 1e-6)
	require.Len(t, top, 3)
	require.Equal(t, []int32{1, 2, 3}, []int32{top[0].ID, top[1].ID, top[2].ID})
	require.InDelta(t, math.Log(0.25), top[1].LogProb, 1e-6)
	_, top = logProbs([]float32{1, 2}, 0, 0)
	require.Empty(t, top)
	_, top = logProbs([]float32{1, 2}, 0, 5)
	require.Len(t, top, 2)
}

// spoken is a stream whose tokens are texts.
type spoken []string

func (s *spoken) Next(token int32) string { return (*s)[token] }
func (s *spoken) End() string             { return "" }

func TestStopStrings(t *testing.T) {
	for _, c := range []struct {
		stop, tokens, want []string // texts as they are given out; the last is that of the end
	}{
		{nil, []string{"a", "b"}, []string{"a", "b", ""}},
		{[]string{"STOP"}, []string{"a S", "TO", "P b"}, []string{"a ", "", "", "."}},
		{[]string{"STOP"}, []string{"a S", "TO", "X b"}, []string{"a ", "", "STOX b", ""}},
		{[]string{"STOP"}, []string{"ST"}, []string{"", "ST"}},
		{[]string{"abc", "bc"}, []string{"ab", "cd"}, []string{"", "", "."}},
		{[]string{"bcd", "abcx"}, []string{"abc", "d"}, []string{"", "a", "."}},
		{[]string{"\n\n"}, []string{"x\n", "y\n", "\nz"}, []string{"x", "\ny", "", "."}},
		{[]string{"aab"}, []string{"a", "a", "a", "b"}, []string{"", "", "a", "", "."}},
	} {
		words := spoken(c.tokens)
		a := &answer{stream: &words, stop: c.stop}
		var got []string
		stopped := false
		for i := range c.tokens {
			require.False(t, stopped)
			var text string
			text, stopped = a.next(int32(i))
			got = append(got, text)
		}
		if stopped {
			got = append(got, ".")
		} else {
			got = append(got, a.end())
		}
		require.Equal(t, c.want, got, "%q of %q", c.stop, c.tokens)
	}
}
