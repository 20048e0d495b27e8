//go:build !js

package decoder

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wavelane/wavelane/internal/decoder/decodertest"
	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// seed returns the seed of the run.
func seed(t testing.TB) uint64 { return testseed.Of(t) }

func opened(t testing.TB, r Random) *gguf.File {
	var file bytes.Buffer
	require.NoError(t, r.Write(&file))
	f, err := gguf.New(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	return f
}

func device(t testing.TB, kind string) *wavelane.Device {
	dev, err := wavelane.Open(t.Context(), wavelane.WithDevice(kind), wavelane.WithSoftware())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func loaded(t testing.TB, f *gguf.File, dev Device, o LoadOptions) *Weights {
	m, err := Read(f)
	require.NoError(t, err)
	w, err := m.Load(t.Context(), dev, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// models are small, and have between them what models differ in.
func models(seed uint64) map[string]Random {
	return map[string]Random{
		"llama": {Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 256, Hidden: 512, Heads: 8, KVHeads: 2, Context: 64,
			Factors: true, Seed: seed, Format: Mixed},
		"qwen2": {Architecture: "qwen2", Tokenizer: "gpt2", Blocks: 2, Width: 128, Hidden: 256, Heads: 4, KVHeads: 2, Context: 64,
			Tied: true, Seed: seed, Format: func(name string) quant.Type {
				switch {
				case strings.Contains(name, "attn"):
					return quant.F16
				case strings.Contains(name, "ffn_down"), strings.Contains(name, "token_embd"):
					return quant.BF16
				}
				return quant.Q8_0
			}},
		"qwen3": {Architecture: "qwen3", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 32, Context: 64, Yarn: 4,
			Seed: seed, Format: narrow},
		"mixtral": {Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 256, Hidden: 256, Heads: 4, KVHeads: 2, Context: 64, Experts: 4,
			UsedExperts: 2, Seed: seed, Format: Mixed},
		"qwen2moe": {Architecture: "qwen2moe", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Experts: 6,
			UsedExperts: 3, ExpertHidden: 32, SharedHidden: 96, Seed: seed, Format: narrow},
		"qwen3moe": {Architecture: "qwen3moe", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 32, Context: 64,
			Experts: 9, UsedExperts: 2, ExpertHidden: 64, Seed: seed, Format: narrow},
		"gemma": {Architecture: "gemma", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 2, KVHeads: 1, HeadSize: 64, Context: 64,
			Tied: true, Seed: seed, Format: narrow},
		"gemma2": {Architecture: "gemma2", Tokenizer: "llama", Blocks: 3, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 32, Context: 64,
			Tied: true, Window: 7, Seed: seed, Format: narrow},
		"gemma3": {Architecture: "gemma3", Tokenizer: "llama", Blocks: 7, Width: 64, Hidden: 96, Heads: 4, KVHeads: 1, HeadSize: 32, Context: 64,
			Tied: true, Window: 7, Stretch: 8, Seed: seed, Format: narrow},
		"phi3": {Architecture: "phi3", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 64, Factors: true,
			Rotated: 12, Seed: seed, Format: narrow},
	}
}

// narrow is a mixture of formats for rows that are not multiples of 256.
func narrow(name string) quant.Type {
	switch {
	case strings.Contains(name, "attn_output"):
		return quant.F16
	case strings.Contains(name, "attn"):
		return quant.Q8_0
	case strings.Contains(name, "ffn_down"):
		return quant.Q4_1
	case strings.Contains(name, "token_embd"):
		return quant.Q5_0
	}
	return quant.F32
}

const (
	promptLength = 10 // two chunks and a token
	chunk        = 5
	steps        = 32
)

// course is a text with the logits that the reference has after each token from the prompt's last on; it is greedy.
type course struct {
	tokens []int32
	logits [][]float64
}

func newCourse(t testing.TB, f *gguf.File, seed uint64) *course {
	r, random := decodertest.New(t, f), rand.New(rand.NewPCG(seed, 1))
	c := &course{}
	var logits []float64
	for range promptLength + 1 {
		token := random.Int32N(int32(r.Vocabulary()))
		c.tokens = append(c.tokens, token)
		logits = r.Step(token)
	}
	for {
		c.logits = append(c.logits, logits)
		if len(c.logits) > steps {
			return c
		}
		next := int32(0)
		for i, x := range logits {
			if x > logits[next] {
				next = int32(i)
			}
		}
		c.tokens = append(c.tokens, next)
		logits = r.Step(next)
	}
}

// deviation is the largest difference of logits, in units of their standard deviation.
func deviation(want []float64, got []float32) float64 {
	sum, most := 0.0, 0.0
	for i, w := range want {
		sum += w * w
		most = max(most, math.Abs(w-float64(got[i])))
		if math.IsNaN(float64(got[i])) {
			return math.NaN()
		}
	}
	return most / math.Sqrt(sum/float64(len(want)))
}

// forms of weights and activations, and what logits may be off by.
var forms = map[string]struct {
	dense, q8 bool
	accuracy  float64
}{"dense": {dense: true, accuracy: 2e-5}, "blocks": {accuracy: 2e-5}, "q8": {q8: true, accuracy: 0.15}}

// follow takes the course; if both, once more with the device choosing the tokens.
func (c *course) follow(t *testing.T, w *Weights, steps int, q8, both bool, accuracy float64) {
	cache := quant.F32
	if q8 {
		cache = quant.F16
	}
	s, err := w.NewSession(t.Context(), SessionOptions{Chunk: chunk, Exact: !q8, Cache: cache})
	require.NoError(t, err)
	defer s.Close()
	var greedy *Session
	if both {
		greedy, err = w.NewSession(t.Context(), SessionOptions{Chunk: chunk, Exact: !q8, Cache: cache, Output: Output{TopK: 1}})
		require.NoError(t, err)
		defer greedy.Close()
	}
	worst := 0.0
	given := c.tokens[:promptLength+1]
	for i := range steps {
		n, err := s.Feed(t.Context(), given...)
		require.NoError(t, err)
		require.Len(t, n.Logits, len(c.logits[i]))
		off := deviation(c.logits[i], n.Logits)
		require.LessOrEqual(t, off, accuracy, "logits after %d tokens", s.Position())
		worst = max(worst, off)
		if both {
			n, err = greedy.Feed(t.Context(), given...)
			require.NoError(t, err)
			if next := c.tokens[promptLength+1+i]; n.Indices[0] != next { // only where the reference itself hardly knows
				require.InDelta(t, c.logits[i][next], c.logits[i][n.Indices[0]], 2*accuracy*c.scale(i), "token after %d", s.Position())
			}
		}
		given = c.tokens[promptLength+1+i:][:1]
	}
	t.Logf("%d steps, largest deviation %.1e", steps, worst)
}

func (c *course) scale(i int) float64 {
	sum := 0.0
	for _, x := range c.logits[i] {
		sum += x * x
	}
	return math.Sqrt(sum / float64(len(c.logits[i])))
}

// TestLogits compares what each device computes with float64, token by token, the prompt in chunks.
func TestLogits(t *testing.T) {
	seed := seed(t)
	random := rand.New(rand.NewPCG(seed, 5))
	models, all := models(seed), slices.Sorted(maps.Keys(forms))
	for _, name := range slices.Sorted(maps.Keys(models)) {
		f := opened(t, models[name])
		c := newCourse(t, f, seed)
		for _, kind := range kinds {
			dev := device(t, kind)
			drawn, other := all[random.IntN(len(all))], random.IntN(2) == 0
			for _, form := range all {
				o := forms[form]
				if kind != "cpu" && name != "llama" && (form != drawn || other) && !testseed.Whole() {
					continue // the forms and architectures differ in operations, which are tested by themselves
				}
				t.Run(name+"/"+kind+"/"+form, func(t *testing.T) {
					n := steps
					if kind == "cuda" {
						n = 4
					}
					c.follow(t, loaded(t, f, dev, LoadOptions{Dense: o.dense}), n, o.q8, kind == "cpu" || form == "blocks", o.accuracy)
				})
			}
		}
	}
}

// TestFactors has sessions whose contexts are as long as the model was first trained on, and longer: they turn by other factors.
func TestFactors(t *testing.T) {
	seed := seed(t)
	f := opened(t, models(seed)["phi3"])
	w := loaded(t, f, device(t, "cpu"), LoadOptions{})
	last := map[int][]float64{}
	for _, context := range []int{w.Original, w.Original + 1} {
		s, err := w.NewSession(t.Context(), SessionOptions{Context: context, Exact: true})
		require.NoError(t, err)
		defer s.Close()
		r := decodertest.New(t, f)
		r.SetContext(context)
		for token := range int32(20) {
			last[context] = r.Step(token)
			n, err := s.Feed(t.Context(), token)
			require.NoError(t, err)
			require.LessOrEqual(t, deviation(last[context], n.Logits), 2e-5)
		}
	}
	require.NotEqual(t, last[w.Original], last[w.Original+1])
}

// TestPrefill compares chunks with single tokens, for every length of a prompt around a few chunks.
func TestPrefill(t *testing.T) {
	seed := seed(t)
	random := rand.New(rand.NewPCG(seed, 2))
	f := opened(t, models(seed)["llama"])
	w := loaded(t, f, device(t, "cpu"), LoadOptions{})
	one, err := w.NewSession(t.Context(), SessionOptions{Chunk: 1, Exact: true})
	require.NoError(t, err)
	defer one.Close()
	for _, o := range []SessionOptions{{Chunk: 5, Context: 20, Exact: true}, {Chunk: 12, Context: 20, Exact: true, Cache: quant.F16}} {
		accuracy := forms["blocks"].accuracy
		if o.Cache == quant.F16 {
			accuracy = 2e-2 // of keys and values that are rounded to Float16: some 1e-3, of which seeds are the tails
		}
		many, err := w.NewSession(t.Context(), o)
		require.NoError(t, err)
		defer many.Close()
		one.Reset()
		var tokens []int32
		for n := range o.Context {
			tokens = append(tokens, random.Int32N(int32(w.Vocabulary)))
			many.Reset()
			got, err := many.Feed(t.Context(), tokens...)
			require.NoError(t, err)
			want, err := one.Feed(t.Context(), tokens[n])
			require.NoError(t, err)
			wide := make([]float64, len(want.Logits))
			for i, x := range want.Logits {
				wide[i] = float64(x)
			}
			require.LessOrEqual(t, deviation(wide, got.Logits), accuracy, "%d tokens, %+v", n+1, o)
		}
		require.Zero(t, many.Room())
	}
}
