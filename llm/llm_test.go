//go:build !js

package llm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// said is what a sequence says, and the last token.
func said(t testing.TB, sequence func(yield func(llm.Token, error) bool)) (string, []int32, llm.Finish) {
	var text strings.Builder
	var ids []int32
	finish := llm.Unfinished
	for token, err := range sequence {
		require.NoError(t, err)
		require.Equal(t, llm.Unfinished, finish, "nothing comes after the end")
		require.True(t, utf8.ValidString(token.Text))
		text.WriteString(token.Text)
		ids = append(ids, token.ID)
		finish = token.Finish
	}
	return text.String(), ids, finish
}

// failure is the error of a sequence, which has nothing else.
func failure(t testing.TB, sequence func(yield func(llm.Token, error) bool)) error {
	var err error
	n := 0
	for _, e := range sequence {
		err = e
		n++
	}
	require.Equal(t, 1, n)
	return err
}

// TestGroup has members draw the same text from parts of the weights as one draws from all.
func TestGroup(t *testing.T) {
	m := read(t, written(t, small(testseed.Of(t))))
	draw := func(w *llm.Weights) (text string, err error) {
		s, err := w.NewSession(t.Context(), llm.WithExact(), llm.WithCache(quant.F32))
		if err != nil {
			return "", err
		}
		defer s.Close()
		for token, err := range s.Generate(t.Context(), "The sea", llm.WithMaxTokens(12), llm.WithSampling(llm.Sampling{Temperature: 1, TopK: 3, Seed: 5})) {
			if err != nil {
				return "", err
			}
			text += token.Text
		}
		return text, nil
	}
	whole := loaded(t, m, device(t, "cpu"))
	want, err := draw(whole)
	require.NoError(t, err)
	devices := []dist.Device{device(t, "cpu"), device(t, "cpu")}
	groups, err := dist.Local(devices...)
	require.NoError(t, err)
	errs := make([]error, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() {
			errs[i] = func() error {
				w, err := m.Load(t.Context(), devices[i].(llm.Device), llm.WithGroup(g))
				if err != nil {
					return err
				}
				defer w.Close()
				if _, err := w.NewScheduler(t.Context()); !errors.Is(err, compute.ErrUnsupported) {
					return fmt.Errorf("a scheduler: %v", err)
				}
				got, err := draw(w)
				if err == nil && (got != want || w.Bytes() >= whole.Bytes()*3/5) {
					err = fmt.Errorf("rank %d: %s with %d bytes of weights, not %s with %d", i, got, w.Bytes(), want, whole.Bytes())
				}
				return err
			}()
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	_, err = m.Load(t.Context(), device(t, "cpu"), llm.WithGroup(nil))
	require.ErrorIs(t, err, compute.ErrArgument)
}

func TestModel(t *testing.T) {
	file := written(t, small(1))
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	m, err := llm.Open(path)
	require.NoError(t, err)
	i := m.Info()
	require.Equal(t, llm.Info{Architecture: "llama", Name: "random weights", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, HeadSize: 16,
		Vocabulary: 320, Context: 128, Parameters: i.Parameters, Bytes: i.Bytes, ChatTemplate: template}, i)
	require.Equal(t, int64(2*320*64+64+2*(64*64*2+2*32*64+3*96*64+2*64)), i.Parameters)
	require.Equal(t, 4*i.Parameters, i.Bytes)
	tokens := m.Tokenize("the thing")
	require.EqualValues(t, 1, tokens[0], "the model wants a beginning")
	require.Equal(t, "the thing", m.Detokenize(tokens))
	require.Equal(t, tokens, m.Tokenize("<s>the thing"), "not two")
	var spelt []byte
	for _, token := range tokens {
		spelt = append(spelt, m.TokenBytes(token)...)
	}
	require.Equal(t, " the thing", string(spelt), "with the blank that this vocabulary puts before texts")
	require.Empty(t, m.TokenBytes(-1))
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())

	_, err = llm.Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = llm.Read(strings.NewReader("no model"), 8)
	require.ErrorIs(t, err, gguf.ErrMalformed)
	var empty bytes.Buffer
	require.NoError(t, gguf.NewWriter(&empty).Close())
	_, err = llm.Read(bytes.NewReader(empty.Bytes()), int64(empty.Len()))
	require.ErrorIs(t, err, gguf.ErrMissing)
	require.ErrorContains(t, err, "general.architecture")
}

func TestGenerate(t *testing.T) {
	seed := testseed.Of(t)
	dev := device(t, "cpu")
	var progress []int64
	m := read(t, written(t, small(seed)))
	w := loaded(t, m, dev, llm.WithProgress(func(done, total int64) { progress = append(progress, done, total) }))
	require.Equal(t, m.Info().Bytes, progress[len(progress)-1])
	require.Same(t, m, w.Model())
	s := session(t, w, llm.WithChunk(4), llm.WithExact(), llm.WithCache(quant.F32))
	require.Equal(t, 128, s.Context())

	endless := llm.WithIgnoreEnd()
	text, ids, finish := said(t, s.Generate(t.Context(), "the thing", llm.WithMaxTokens(20), endless))
	require.Len(t, ids, 20)
	require.Equal(t, llm.Limit, finish)
	full := append(m.Tokenize("the thing"), ids...)
	require.Equal(t, "the thing"+text, m.Detokenize(full))

	// The same again is known but for one token. A longer prompt costs what is new.
	again, _, _ := said(t, s.Generate(t.Context(), "the thing", llm.WithMaxTokens(20), endless))
	require.Equal(t, text, again)
	require.Equal(t, s.Stats().Prompt-1, s.Stats().Known)
	_, rest, _ := said(t, s.GenerateTokens(t.Context(), full[:len(full)-5], llm.WithMaxTokens(5), endless))
	require.Equal(t, ids[15:], rest)
	require.Equal(t, len(full)-6, s.Stats().Known)
	other, _, _ := said(t, s.Generate(t.Context(), "and", llm.WithMaxTokens(20), endless))
	fresh, _, _ := said(t, session(t, w, llm.WithChunk(4), llm.WithExact(), llm.WithCache(quant.F32)).Generate(t.Context(), "and", llm.WithMaxTokens(20), endless))
	require.Equal(t, fresh, other, "what a session had before does not matter")

	// Seeds repeat themselves; a context that is full ends.
	hot := func(seed uint64) llm.GenerateOption {
		return llm.WithSampling(llm.Sampling{Temperature: 1.5, TopK: 50, TopP: 0.95, MinP: 0.01, Seed: seed})
	}
	a, _, _ := said(t, s.Generate(t.Context(), "the", hot(1), llm.WithMaxTokens(30), endless))
	b, _, _ := said(t, s.Generate(t.Context(), "the", hot(1), llm.WithMaxTokens(30), endless))
	c, _, _ := said(t, s.Generate(t.Context(), "the", hot(2), llm.WithMaxTokens(30), endless))
	require.Equal(t, a, b)
	require.NotEqual(t, a, c)
	_, ids, finish = said(t, s.Generate(t.Context(), "the", endless))
	require.Equal(t, llm.ContextFull, finish)
	require.Len(t, ids, 128-s.Stats().Prompt+1)

	// A stop string ends before it, wherever tokens begin and end.
	text, _, _ = said(t, s.Generate(t.Context(), "the thing", llm.WithMaxTokens(60), endless))
	require.Greater(t, len(text), 12)
	cut := len(text) / 2
	for !utf8.RuneStart(text[cut]) {
		cut++
	}
	to := cut + 4
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	stop := text[cut:to]
	got, _, finish := said(t, s.Generate(t.Context(), "the thing", llm.WithMaxTokens(60), endless, llm.WithStop("never said", stop)))
	require.Equal(t, llm.StopString, finish)
	require.Equal(t, text[:strings.Index(text, stop)], got)

	// Breaking off is no error, and the session goes on.
	for range s.Generate(t.Context(), "the thing", endless) {
		break
	}
	again, _, _ = said(t, s.Generate(t.Context(), "the thing", llm.WithMaxTokens(60), endless))
	require.Equal(t, text, again)
}

// TestEnd has a model whose end is a token that it says.
func TestEnd(t *testing.T) {
	seed := testseed.Of(t)
	dev := device(t, "cpu")
	r := small(seed)
	s := session(t, loaded(t, read(t, written(t, r)), dev), llm.WithExact(), llm.WithCache(quant.F32))
	_, ids, _ := said(t, s.Generate(t.Context(), "the", llm.WithMaxTokens(10), llm.WithIgnoreEnd()))
	r.End = int(ids[6])
	first := 0
	for ids[first] != ids[6] {
		first++
	}
	s = session(t, loaded(t, read(t, written(t, r)), dev), llm.WithExact(), llm.WithCache(quant.F32))
	_, got, finish := said(t, s.Generate(t.Context(), "the", llm.WithMaxTokens(10)))
	require.Equal(t, llm.EndOfText, finish)
	require.Equal(t, ids[:first+1], got)
	_, got, finish = said(t, s.Generate(t.Context(), "the", llm.WithMaxTokens(10), llm.WithIgnoreEnd()))
	require.Equal(t, llm.Limit, finish)
	require.Equal(t, ids, got)
}

func TestChat(t *testing.T) {
	m := read(t, written(t, small(testseed.Of(t))))
	talk := []llm.Message{{Role: "system", Content: " be brief "}, {Role: "user", Content: "the thing"}}
	prompt, err := m.ChatPrompt(talk, nil)
	require.NoError(t, err)
	require.Equal(t, "<s>system: be brief\nuser: the thing\nassistant:", prompt)
	w := loaded(t, m, device(t, "cpu"))
	s := session(t, w)
	answer, _, _ := said(t, s.Chat(t.Context(), talk, llm.WithMaxTokens(8)))
	same, _, _ := said(t, session(t, w).Generate(t.Context(), prompt, llm.WithMaxTokens(8)))
	require.Equal(t, same, answer)
	known := s.Stats().Prompt - 1
	_, _, _ = said(t, s.Chat(t.Context(), append(talk, llm.Message{Role: "assistant", Content: "ok"}, llm.Message{Role: "user", Content: "and"}), llm.WithMaxTokens(1)))
	require.GreaterOrEqual(t, s.Stats().Known, known-1, "the conversation so far")

	r := small(1)
	r.ChatTemplate = `{% if tools %}{{ tools|tojson }}{% endif %}{% if not messages %}{{ raise_exception('say something') }}{% endif %}{{ messages[0].name }}{{ messages[0].content|toaster if toast }}`
	m = read(t, written(t, r))
	prompt, err = m.ChatPrompt([]llm.Message{{Role: "user", Content: "x", Fields: map[string]any{"name": "Bo"}}},
		map[string]any{"tools": []any{map[string]any{"b": 1, "a": nil}}})
	require.NoError(t, err)
	require.Equal(t, `[{"a": null, "b": 1}]Bo`, prompt)
	var e *llm.TemplateError
	_, err = m.ChatPrompt(nil, nil)
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, compute.ErrArgument)
	require.True(t, e.Refused)
	require.Equal(t, "say something", e.Message)
	s = session(t, loaded(t, m, device(t, "cpu")))
	err = failure(t, s.Chat(t.Context(), talk, llm.WithVariables(map[string]any{"toast": true})))
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.Equal(t, 1, e.Line)
	require.ErrorContains(t, err, "toaster")
	_, err = m.ChatPrompt(talk, map[string]any{"x": make(chan int)})
	require.ErrorIs(t, err, compute.ErrArgument)

	r.ChatTemplate = "{% if %}"
	_, err = read(t, written(t, r)).ChatPrompt(talk, nil)
	require.ErrorAs(t, err, &e)
	r.ChatTemplate = ""
	_, err = read(t, written(t, r)).ChatPrompt(talk, nil)
	require.ErrorIs(t, err, gguf.ErrMissing)
}

func TestErrors(t *testing.T) {
	m := read(t, written(t, small(1)))
	dev := device(t, "cpu")
	_, err := m.Load(nil, dev) //nolint:staticcheck // which is the error
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = m.Load(t.Context(), nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = m.Load(t.Context(), dev, nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Load(cancelled, dev)
	require.ErrorIs(t, err, context.Canceled)
	w := loaded(t, m, dev)
	for _, o := range []llm.SessionOption{nil, llm.WithContext(-1), llm.WithChunk(-1)} {
		_, err = w.NewSession(t.Context(), o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err = w.NewSession(t.Context(), llm.WithContext(129))
	require.ErrorIs(t, err, compute.ErrTooLarge)
	_, err = w.NewSession(cancelled)
	require.ErrorIs(t, err, context.Canceled)

	s := session(t, w, llm.WithContext(16))
	for _, o := range []llm.GenerateOption{nil, llm.WithMaxTokens(0), llm.WithStop("a", ""), llm.WithLogProbs(-2), llm.WithLogProbs(101),
		llm.WithSampling(llm.Sampling{TopP: 2}), llm.WithContextShift(-1), llm.WithContextShift(16), llm.WithLookup(-1), llm.WithLookup(64)} {
		require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the", o)), compute.ErrArgument)
	}
	require.ErrorIs(t, failure(t, s.Generate(nil, "the")), compute.ErrArgument) //nolint:staticcheck // which is the error
	require.ErrorIs(t, failure(t, s.GenerateTokens(t.Context(), nil)), compute.ErrArgument)
	require.ErrorIs(t, failure(t, s.GenerateTokens(t.Context(), []int32{1, 320})), compute.ErrArgument)
	require.ErrorIs(t, failure(t, s.GenerateTokens(t.Context(), make([]int32, 17))), compute.ErrTooLarge)
	require.ErrorIs(t, failure(t, s.Generate(cancelled, "the")), context.Canceled)
	_, ids, finish := said(t, s.GenerateTokens(t.Context(), make([]int32, 16), llm.WithIgnoreEnd()))
	require.Equal(t, llm.ContextFull, finish)
	require.Len(t, ids, 1)
	for range s.Generate(t.Context(), "the", llm.WithIgnoreEnd()) {
		require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the")), compute.ErrInFlight)
		break
	}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, failure(t, s.Generate(t.Context(), "the")), compute.ErrClosed)
	require.Equal(t, "Finish(9)", llm.Finish(9).String())
	require.Equal(t, "end of text", llm.EndOfText.String())
}

// TestCancel ends a context at every token, and between the chunks of a prompt, after which the session still says the same.
func TestCancel(t *testing.T) {
	w := loaded(t, read(t, written(t, small(testseed.Of(t)))), device(t, "cpu"))
	s := session(t, w, llm.WithChunk(2), llm.WithExact(), llm.WithCache(quant.F32))
	prompt := "the thing and the other thing"
	want, _, _ := said(t, s.Generate(t.Context(), prompt, llm.WithMaxTokens(12), llm.WithIgnoreEnd()))
	for n := range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		s := session(t, w, llm.WithChunk(2), llm.WithExact(), llm.WithCache(quant.F32))
		i := 0
		for _, err := range s.Generate(ctx, prompt, llm.WithMaxTokens(12), llm.WithIgnoreEnd()) {
			if i == n {
				cancel()
			} else if i > n {
				require.ErrorIs(t, err, context.Canceled)
			}
			i++
		}
		require.Equal(t, n+2, i)
		cancel()
		got, _, _ := said(t, s.Generate(t.Context(), prompt, llm.WithMaxTokens(12), llm.WithIgnoreEnd()))
		require.Equal(t, want, got)
	}
	for range 20 { // at any time
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		for range s.Generate(ctx, prompt, llm.WithIgnoreEnd()) {
		}
		got, _, _ := said(t, s.Generate(t.Context(), prompt, llm.WithMaxTokens(12), llm.WithIgnoreEnd()))
		require.Equal(t, want, got)
	}
}

// TestContextShift has texts go on beyond the context, and compares each token with a session's that gets what is left as its prompt.
func TestContextShift(t *testing.T) {
	const context, n = 20, 60
	w := loaded(t, read(t, written(t, small(testseed.Of(t)))), device(t, "cpu"))
	alone := session(t, w, llm.WithContext(context), llm.WithExact(), llm.WithCache(quant.F32))
	for _, keep := range []int{0, 3, 19} {
		x := &text{prompt: w.Model().Tokenize("the thing")}
		all := slices.Clone(x.prompt)
		for range n {
			if len(all) > context {
				all = slices.Delete(all, keep, keep+max((len(all)-keep)/2, 1))
			}
			for token, err := range alone.GenerateTokens(t.Context(), all, llm.WithMaxTokens(1), llm.WithIgnoreEnd(), llm.WithLogProbs(2)) {
				require.NoError(t, err)
				x.ties = append(x.ties, token.Top[0].LogProb-token.Top[1].LogProb < 1e-4)
				x.want = append(x.want, token)
			}
			all = append(all, x.want[len(x.want)-1].ID)
		}
		opts := []llm.GenerateOption{llm.WithContextShift(keep), llm.WithMaxTokens(n), llm.WithIgnoreEnd()}
		s := scheduler(t, w, exact(llm.WithContext(context), llm.WithSequences(2), llm.WithCacheTokens(32))...)
		var group sync.WaitGroup
		for range 3 { // with memory for one, which are put off
			group.Go(func() { x.checkIDs(t, s.GenerateTokens(t.Context(), x.prompt, opts...)) })
		}
		x.checkIDs(t, session(t, w, llm.WithContext(context), llm.WithExact(), llm.WithCache(quant.F32)).GenerateTokens(t.Context(), x.prompt, opts...))
		x.checkIDs(t, session(t, w, llm.WithContext(context), llm.WithExact(), llm.WithCache(quant.F32)).GenerateTokens(t.Context(), x.prompt, append(opts, llm.WithLookup(5))...))
		group.Wait()
	}
}

// adapted is the guide's code.
func adapted(ctx context.Context, dev llm.Device, m *llm.Model) error {
	a, err := llm.OpenAdapter("adapter.gguf")
	if err != nil {
		return err
	}
	defer a.Close()
	w, err := m.Load(ctx, dev, llm.WithAdapter(a, 1))
	if err != nil {
		return err
	}
	return w.Close()
}

// TestAdapter has an adapter of the output head that makes one token likely.
func TestAdapter(t *testing.T) {
	const rank, token = 1, 77
	var file bytes.Buffer
	f := gguf.NewWriter(&file)
	for key, v := range map[string]any{"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora", "adapter.lora.alpha": float32(1)} {
		require.NoError(t, f.Set(key, v))
	}
	require.NoError(t, f.AddTensor("output.weight.lora_a", quant.F32, rank, 64))
	require.NoError(t, f.AddTensor("output.weight.lora_b", quant.F32, 320, rank))
	data := make([]float32, rank*(64+320))
	for i := range 64 {
		data[i] = 1
	}
	data[64+token] = 1e4
	require.NoError(t, binary.Write(f, binary.LittleEndian, data))
	require.NoError(t, f.Close())
	path := filepath.Join(t.TempDir(), "adapter.gguf")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))

	m, dev := read(t, written(t, small(testseed.Of(t)))), device(t, "cpu")
	say := func(opts ...llm.LoadOption) []int32 {
		_, ids, _ := said(t, session(t, loaded(t, m, dev, opts...)).Generate(t.Context(), "the thing", llm.WithMaxTokens(6), llm.WithIgnoreEnd()))
		return ids
	}
	t.Chdir(filepath.Dir(path))
	require.NoError(t, adapted(t.Context(), dev, m))
	a, err := llm.OpenAdapter(path)
	require.NoError(t, err)
	b, err := llm.ReadAdapter(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	without := say()
	require.Equal(t, without, say(llm.WithAdapter(a, 0)))
	require.Equal(t, without, say(llm.WithAdapter(a, 1), llm.WithAdapter(b, -1)))
	// Whether the sum of the states is positive or negative, one of both scales makes the token the likeliest of all.
	first := []int32{say(llm.WithAdapter(a, 1))[0], say(llm.WithAdapter(b, -1))[0]}
	require.Contains(t, first, int32(token))
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())

	_, err = m.Load(t.Context(), dev, llm.WithAdapter(nil, 1))
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = llm.OpenAdapter(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
	model := written(t, small(1))
	_, err = llm.ReadAdapter(bytes.NewReader(model), int64(len(model)))
	require.ErrorIs(t, err, gguf.ErrMissing)
	other := small(1)
	other.Architecture = "qwen3"
	_, err = read(t, written(t, other)).Load(t.Context(), dev, llm.WithAdapter(b, 1))
	require.ErrorIs(t, err, compute.ErrShape)
}

// TestLogProbs compares with what a session says of the tokens that it chooses.
func TestLogProbs(t *testing.T) {
	w := loaded(t, read(t, written(t, small(testseed.Of(t)))), device(t, "cpu"))
	s := session(t, w, llm.WithContext(40), llm.WithChunk(8), llm.WithExact(), llm.WithCache(quant.F32))
	tokens := w.Model().Tokenize("the thing")
	known := len(tokens)
	var want []float64
	for token, err := range s.GenerateTokens(t.Context(), tokens, llm.WithMaxTokens(30), llm.WithIgnoreEnd(), llm.WithLogProbs(0)) {
		require.NoError(t, err)
		tokens, want = append(tokens, token.ID), append(want, token.LogProb)
	}
	p, err := s.LogProbs(t.Context(), tokens)
	require.NoError(t, err)
	require.Len(t, p, len(tokens)-1)
	require.InDeltaSlice(t, want, p[known-1:], 1e-4)
	short, err := s.LogProbs(t.Context(), tokens[:2])
	require.NoError(t, err)
	require.InDelta(t, p[0], short[0], 1e-4)
	for _, x := range [][]int32{nil, {1}, {1, -1}, {1, 320}, {-1, 1}} {
		_, err = s.LogProbs(t.Context(), x)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err = s.LogProbs(t.Context(), make([]int32, 41))
	require.ErrorIs(t, err, compute.ErrTooLarge)
	for range s.Generate(t.Context(), "the", llm.WithIgnoreEnd()) {
		_, err = s.LogProbs(t.Context(), tokens)
		require.ErrorIs(t, err, compute.ErrInFlight)
		break
	}
}

// TestLookup has tokens expected that have come before: texts stay what they are, with fewer steps.
func TestLookup(t *testing.T) {
	m := read(t, written(t, small(testseed.Of(t))))
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			tokens := 40
			if kind != "cpu" {
				tokens = 8
			}
			w := loaded(t, m, device(t, kind))
			s := session(t, w, llm.WithContext(64), llm.WithChunk(8), llm.WithExact(), llm.WithCache(quant.F32))
			ahead := session(t, w, llm.WithContext(64), llm.WithChunk(8), llm.WithExact(), llm.WithCache(quant.F32))
			accepted := 0
			samplings, ns := []llm.Sampling{{Temperature: 0.5, Seed: 4}, {Temperature: 1, TopK: 4, Seed: 3}, {}}, []int{4, 1, 63}
			if kind == "cuda" { // whose software GPU takes long
				samplings, ns = samplings[:1], ns[:1]
			}
			for i, sampling := range samplings {
				prompt := m.Tokenize("the thing and the thing and the thing and")
				opts := []llm.GenerateOption{llm.WithSampling(sampling), llm.WithMaxTokens(tokens), llm.WithIgnoreEnd()}
				if i == 0 {
					opts = append(opts, llm.WithJSONSchema([]byte(`{"enum": ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]}`)))
				}
				x := &text{prompt: prompt}
				for token, err := range s.GenerateTokens(t.Context(), prompt, append(opts, llm.WithLogProbs(2))...) {
					require.NoError(t, err)
					x.ties = append(x.ties, i == 1 || token.Top[0].LogProb-token.Top[1].LogProb < 1e-4)
					x.want = append(x.want, token)
				}
				for _, n := range ns {
					x.checkIDs(t, ahead.GenerateTokens(t.Context(), prompt, append(opts, llm.WithLookup(n))...))
					st := ahead.Stats()
					require.LessOrEqual(t, st.Accepted, st.Drafted)
					require.LessOrEqual(t, st.Steps+st.Accepted, len(x.want))
					accepted += st.Accepted
				}
			}
			require.Positive(t, accepted)
			if kind != "cpu" {
				return
			}
			for range ahead.Generate(t.Context(), "the thing the thing", llm.WithLookup(4), llm.WithIgnoreEnd()) {
				break
			}
			_, ids, finish := said(t, ahead.Generate(t.Context(), "the thing the thing", llm.WithLookup(7), llm.WithIgnoreEnd()))
			require.Equal(t, llm.ContextFull, finish)
			require.Len(t, ids, 64-ahead.Stats().Prompt+1)
		})
	}
}

// TestConcurrency has sessions of one model at the same time.
func TestConcurrency(t *testing.T) {
	w := loaded(t, read(t, written(t, small(testseed.Of(t)))), device(t, "cpu"))
	prompts := []string{"the", "and", "thing", "of the", "in"}
	want := make([]string, len(prompts))
	for i, p := range prompts {
		want[i], _, _ = said(t, session(t, w).Generate(t.Context(), p, llm.WithMaxTokens(16), llm.WithIgnoreEnd()))
	}
	var all sync.WaitGroup
	for i, p := range prompts {
		all.Go(func() {
			s, err := w.NewSession(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			got := ""
			for token, err := range s.Generate(t.Context(), p, llm.WithMaxTokens(16), llm.WithIgnoreEnd()) {
				if err != nil {
					t.Error(err)
				}
				got += token.Text
			}
			if got != want[i] {
				t.Errorf("%q: %q, alone %q", p, got, want[i])
			}
		})
	}
	all.Wait()
}

// FuzzRead has files that are broken anywhere: a model or an error, and if a model, one that makes a prompt and tokens.
func FuzzRead(f *testing.F) {
	r := small(1)
	r.Width, r.Hidden, r.Blocks = 16, 16, 1
	file := written(f, r)
	f.Add(uint32(0), []byte("GGUF"))
	f.Add(uint32(200), []byte{255, 255, 255, 255})
	f.Add(uint32(len(file)/2), []byte("tokenizer"))
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		broken := bytes.Clone(file)
		copy(broken[int(at)%len(broken):], with)
		m, err := llm.Read(bytes.NewReader(broken), int64(len(broken)))
		if err != nil {
			return
		}
		defer m.Close()
		m.Info()
		m.Detokenize(m.Tokenize("the <s> thing\xff"))
		_, _ = m.ChatPrompt([]llm.Message{{Role: "user", Content: "x"}}, nil)
	})
}
