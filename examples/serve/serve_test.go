//go:build !js

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

const template = `{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}{{ m.role }}: {{ m.content }}{{ '\n' }}{% endfor %}assistant:`

func random(seed uint64, template string) decoder.Random {
	return decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 2048, ChatTemplate: template, Seed: seed}
}

var usual = limits{body: 1 << 16, choices: 4, write: time.Minute}

// testServer is a server with a model of random weights.
type testServer struct {
	*server
	weights *llm.Weights
	url     string
}

func newTestServer(t *testing.T, template string, keys []string, l limits, opts ...llm.SchedulerOption) *testServer {
	return serverOf(t, random(testseed.Of(t), template), keys, l, opts...)
}

func serverOf(t *testing.T, model decoder.Random, keys []string, l limits, opts ...llm.SchedulerOption) *testServer {
	var file bytes.Buffer
	require.NoError(t, model.Write(&file))
	m, err := llm.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	dev, err := cpu.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	w, err := m.Load(t.Context(), dev)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	var scheduler *llm.Scheduler
	if !m.Info().Encoder {
		scheduler, err = w.NewScheduler(t.Context(), append([]llm.SchedulerOption{llm.WithContext(256), llm.WithChunk(16), llm.WithExact(), llm.WithCache(quant.F32)}, opts...)...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, scheduler.Close()) })
	}
	e := newEmbeddings(w, 4, llm.WithContext(256), llm.WithExact(), llm.WithCache(quant.F32))
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	s := newServer(scheduler, e, "small", keys, l, slog.New(slog.DiscardHandler))
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return &testServer{s, w, h.URL}
}

// alone is what a session says to a prompt, up to where it hardly knows the next token, and of how many tokens.
func (s *testServer) alone(t *testing.T, prompt string, most int) (string, int) {
	session, err := s.weights.NewSession(t.Context(), llm.WithContext(256), llm.WithExact(), llm.WithCache(quant.F32))
	require.NoError(t, err)
	defer session.Close()
	n := 0
	for token, err := range session.Generate(t.Context(), prompt, llm.WithMaxTokens(most), llm.WithLogProbs(2)) {
		require.NoError(t, err)
		if token.Top[0].LogProb-token.Top[1].LogProb < 1e-4 {
			break
		}
		n++
	}
	require.Positive(t, n)
	text := ""
	for token, err := range session.Generate(t.Context(), prompt, llm.WithMaxTokens(n)) {
		require.NoError(t, err)
		text += token.Text
	}
	return text, n
}

// post sends a request and returns the answer, open.
func (s *testServer) post(ctx context.Context, path string, body any) (*http.Response, error) {
	text, ok := body.(string)
	if !ok {
		j, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = string(j)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(r)
}

type object = map[string]any

// decoded is the JSON of an answer, with its status.
func decoded(t *testing.T, r *http.Response, err error) (int, object) {
	require.NoError(t, err)
	defer r.Body.Close()
	require.Equal(t, "application/json", r.Header.Get("Content-Type"))
	var x object
	require.NoError(t, json.NewDecoder(r.Body).Decode(&x))
	return r.StatusCode, x
}

// chunks calls f for the JSON of each event of a stream, until it returns false, and reports whether the stream ended as it should.
func chunks(body io.Reader, f func(x object) bool) (done bool, err error) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "":
			continue
		case !ok || done:
			return false, fmt.Errorf("a line %q", lines.Text())
		case text == "[DONE]":
			done = true
			continue
		}
		var x object
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			return false, err
		}
		if x["error"] != nil {
			return false, fmt.Errorf("%v", x["error"])
		}
		if !f(x) {
			return false, nil
		}
	}
	return done, lines.Err()
}

// dig goes down into JSON.
func dig(x any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := x.(object)
			x = m[p]
		case int:
			l, _ := x.([]any)
			if p >= len(l) {
				return nil
			}
			x = l[p]
		}
	}
	return x
}

func TestChat(t *testing.T) {
	s := newTestServer(t, template, nil, usual)
	want, n := s.alone(t, "system: brief\nuser: the thing\nassistant:", 12)
	body := object{"model": "small", "temperature": 0, "max_completion_tokens": n, "messages": []object{{"role": "developer", "content": "brief"},
		{"role": "user", "content": []object{{"type": "text", "text": "the "}, {"type": "text", "text": "thing"}}}}}
	answer, err := s.post(t.Context(), "/v1/chat/completions", body)
	status, x := decoded(t, answer, err)
	require.Equal(t, 200, status, x)
	require.Equal(t, "chat.completion", x["object"])
	require.Equal(t, "small", x["model"])
	require.Regexp(t, "^chatcmpl-[0-9a-f]{16}$", x["id"])
	require.Equal(t, object{"role": "assistant", "content": want}, dig(x, "choices", 0, "message"))
	require.Equal(t, "length", dig(x, "choices", 0, "finish_reason"))
	require.EqualValues(t, n, dig(x, "usage", "completion_tokens"))
	require.Equal(t, dig(x, "usage", "total_tokens"), dig(x, "usage", "prompt_tokens").(float64)+float64(n))

	// As a stream, twice, with probabilities.
	body["stream"], body["n"], body["logprobs"], body["top_logprobs"], body["stream_options"] = true, 2, true, 2, object{"include_usage": true}
	r, err := s.post(t.Context(), "/v1/chat/completions", body)
	require.NoError(t, err)
	defer r.Body.Close()
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	texts, roles, finishes := [2]string{}, 0, [2]any{}
	var usage any
	done, err := chunks(r.Body, func(x object) bool {
		require.Equal(t, "chat.completion.chunk", x["object"])
		if usage = x["usage"]; usage != nil {
			require.Empty(t, x["choices"])
			return true
		}
		i := int(dig(x, "choices", 0, "index").(float64))
		if dig(x, "choices", 0, "delta", "role") == "assistant" {
			roles++
			return true
		}
		text, _ := dig(x, "choices", 0, "delta", "content").(string)
		texts[i] += text
		finishes[i] = dig(x, "choices", 0, "finish_reason")
		token := dig(x, "choices", 0, "logprobs", "content", 0)
		require.Equal(t, dig(token, "logprob"), dig(token, "top_logprobs", 0, "logprob"), "the likeliest")
		require.Equal(t, dig(token, "token"), dig(token, "top_logprobs", 0, "token"))
		require.LessOrEqual(t, dig(token, "top_logprobs", 1, "logprob"), dig(token, "logprob"))
		return true
	})
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, 2, roles)
	require.Equal(t, [2]string{want, want}, texts)
	require.Equal(t, [2]any{"length", "length"}, finishes)
	require.EqualValues(t, 2*n, dig(usage, "completion_tokens"))
}

func TestCompletion(t *testing.T) {
	s := newTestServer(t, "", nil, usual)
	first, n := s.alone(t, "the thing", 12)
	second, of := s.alone(t, "and", n)
	n = min(n, of)
	first, _ = s.alone(t, "the thing", n)
	second, _ = s.alone(t, "and", n)
	body := object{"model": "small", "temperature": 0, "max_tokens": n, "prompt": []string{"the thing", "and"}, "logprobs": 1}
	answer, err := s.post(t.Context(), "/v1/completions", body)
	status, x := decoded(t, answer, err)
	require.Equal(t, 200, status, x)
	require.Equal(t, first, dig(x, "choices", 0, "text"))
	require.Equal(t, second, dig(x, "choices", 1, "text"))
	require.EqualValues(t, 1, dig(x, "choices", 1, "index"))
	for _, list := range []string{"tokens", "token_logprobs", "top_logprobs", "text_offset"} {
		require.Len(t, dig(x, "choices", 0, "logprobs", list), n)
	}
	require.Equal(t, dig(x, "choices", 0, "logprobs", "token_logprobs", 0), dig(x, "choices", 0, "logprobs", "top_logprobs", 0,
		dig(x, "choices", 0, "logprobs", "tokens", 0).(string)))

	// The same from tokens, and as a stream.
	answer, err = s.post(t.Context(), "/v1/completions", object{"model": "small", "temperature": 0, "max_tokens": n, "prompt": s.model.Tokenize("and")})
	_, x = decoded(t, answer, err)
	require.Equal(t, second, dig(x, "choices", 0, "text"))
	body["stream"] = true
	delete(body, "logprobs")
	r, err := s.post(t.Context(), "/v1/completions", body)
	require.NoError(t, err)
	defer r.Body.Close()
	texts := [2]string{}
	done, err := chunks(r.Body, func(x object) bool {
		texts[int(dig(x, "choices", 0, "index").(float64))] += dig(x, "choices", 0, "text").(string)
		return true
	})
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, [2]string{first, second}, texts)

	// A seed repeats itself, and choices differ.
	var again []any
	for range 2 {
		answer, err = s.post(t.Context(), "/v1/completions", object{"model": "small", "temperature": 2, "seed": -3, "n": 2, "prompt": "and"})
		_, x = decoded(t, answer, err)
		again = append(again, x["choices"])
		require.NotEqual(t, dig(x, "choices", 0, "text"), dig(x, "choices", 1, "text"))
	}
	require.Equal(t, again[0], again[1])
}

// TestStreams has many clients at once, some of which go at any time. None gets what another should, and nothing is left of those that went.
// WAVELANE_STREAMS=10m has it go on for so long, with 100 clients, and look at the memory meanwhile.
func TestStreams(t *testing.T) {
	seed := testseed.Of(t)
	clients, long := 24, time.Duration(0)
	if d := os.Getenv("WAVELANE_STREAMS"); d != "" {
		var err error
		long, err = time.ParseDuration(d)
		require.NoError(t, err)
		clients = 100
	}
	s := newTestServer(t, template, nil, usual, llm.WithSequences(4), llm.WithCacheTokens(512), llm.WithQueue(4*clients)) // those who have left among them
	prompts := []string{"the thing", "and", "of the other", "in", "a", "the thing and the other thing and so on"}
	type expected struct {
		text string
		n    int
	}
	want := map[string]expected{}
	for _, p := range prompts {
		text, n := s.alone(t, p, 24)
		want[p] = expected{text, n}
	}
	var group sync.WaitGroup
	var calls, left atomic.Int64
	end := time.Now().Add(long)
	for i := range clients {
		group.Go(func() {
			draw := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := 0; n < 5 || time.Now().Before(end); n++ {
				calls.Add(1)
				prompt := prompts[draw.IntN(len(prompts))]
				ctx, cancel := context.WithCancel(t.Context())
				leaves := draw.IntN(2) == 0
				if leaves {
					time.AfterFunc(time.Duration(draw.IntN(30_000))*time.Microsecond, cancel)
				}
				r, err := s.post(ctx, "/v1/completions", object{"model": "small", "temperature": 0, "stream": true, "prompt": prompt, "max_tokens": want[prompt].n})
				got, done := "", false
				if err == nil {
					done, err = chunks(r.Body, func(x object) bool {
						got += dig(x, "choices", 0, "text").(string)
						return true
					})
					r.Body.Close()
				}
				switch {
				case leaves && ctx.Err() != nil:
					left.Add(1)
				case err != nil || !done:
					t.Errorf("%q: done %v, error %v", prompt, done, err)
				}
				if !strings.HasPrefix(want[prompt].text, got) || done && got != want[prompt].text {
					t.Errorf("%q: %q, alone %q", prompt, got, want[prompt].text)
				}
				cancel()
			}
		})
	}
	var heaps []uint64 // after collections, ten times in the time
	for i := range 10 {
		time.Sleep(time.Until(end.Add(-time.Duration(9-i) * long / 10)))
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heaps = append(heaps, m.HeapAlloc)
	}
	group.Wait()
	require.Eventually(t, func() bool { x := s.scheduler.Stats(); return x.Running+x.Waiting+x.CacheUsed == 0 }, time.Minute, time.Millisecond)
	t.Logf("%d calls, %d of which were left; bytes on the heap: %d", calls.Load(), left.Load(), heaps)
	if long >= time.Minute {
		require.Less(t, slices.Max(heaps[5:]), slices.Max(heaps[:5])*3/2, "memory grows")
	}
}

func TestBadRequests(t *testing.T) {
	s := newTestServer(t, template, nil, usual)
	user := `"model": "small", "messages": [{"role": "user", "content": "x"}]`
	for _, c := range []struct {
		path, body string
		status     int
		code       string
		param      any
	}{
		{"chat", "", 400, "invalid_json", nil},
		{"chat", "{", 400, "invalid_json", nil},
		{"chat", "[]", 400, "invalid_type", nil},
		{"chat", "{} {}", 400, "invalid_value", nil},
		{"chat", `{"modal": "x"}`, 400, "invalid_json", nil},
		{"chat", `{"model": 1}`, 400, "invalid_type", "model"},
		{"chat", `{` + user + `, "temperature": "hot"}`, 400, "invalid_type", "temperature"},
		{"chat", `{}`, 400, "invalid_value", "model"},
		{"chat", `{"model": "gpt"}`, 404, "model_not_found", "model"},
		{"chat", `{"model": "small"}`, 400, "invalid_value", "messages"},
		{"chat", `{"model": "small", "messages": ["x"]}`, 400, "invalid_value", "messages"},
		{"chat", `{"model": "small", "messages": [null]}`, 400, "invalid_value", "messages"},
		{"chat", `{"model": "small", "messages": [{"content": "x"}]}`, 400, "invalid_value", "messages"},
		{"chat", `{"model": "small", "messages": [{"role": "king", "content": "x"}]}`, 400, "invalid_value", "messages"},
		{"chat", `{"model": "small", "messages": [{"role": "user"}]}`, 400, "invalid_value", "messages"},
		{"chat", `{"model": "small", "messages": [{"role": "user", "content": 1}]}`, 400, "invalid_value", "messages"},
		{"chat", `{"model": "small", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400, "unsupported_content", "messages"},
		{"chat", `{"model": "small", "messages": [{"role": "tool", "content": "x"}]}`, 400, "invalid_messages", "messages"},
		{"chat", `{"model": "small", "messages": [{"role": "user", "content": "` + strings.Repeat("the thing ", 300) + `"}]}`, 400, "context_length_exceeded", "messages"},
		{"chat", `{"model": "small", "messages": [{"role": "user", "content": "` + strings.Repeat("x", 1<<16) + `"}]}`, 413, "request_too_large", nil},
		{"chat", `{` + user + `, "temperature": -1}`, 400, "invalid_value", "temperature"},
		{"chat", `{` + user + `, "temperature": 2.5}`, 400, "invalid_value", "temperature"},
		{"chat", `{` + user + `, "top_p": 2}`, 400, "invalid_value", "top_p"},
		{"chat", `{` + user + `, "top_k": -1}`, 400, "invalid_value", "top_k"},
		{"chat", `{` + user + `, "min_p": 2}`, 400, "invalid_value", "min_p"},
		{"chat", `{` + user + `, "repetition_penalty": -1}`, 400, "invalid_value", "repetition_penalty"},
		{"chat", `{` + user + `, "frequency_penalty": 3}`, 400, "invalid_value", "frequency_penalty"},
		{"chat", `{` + user + `, "presence_penalty": -3}`, 400, "invalid_value", "presence_penalty"},
		{"chat", `{` + user + `, "n": 0}`, 400, "invalid_value", "n"},
		{"chat", `{` + user + `, "n": 5}`, 400, "invalid_value", "n"},
		{"chat", `{` + user + `, "max_tokens": 0}`, 400, "invalid_value", "max_tokens"},
		{"chat", `{` + user + `, "max_tokens": 1, "max_completion_tokens": 1}`, 400, "invalid_value", "max_tokens"},
		{"chat", `{` + user + `, "stop": ""}`, 400, "invalid_value", "stop"},
		{"chat", `{` + user + `, "stop": ["1", "2", "3", "4", "5"]}`, 400, "invalid_value", "stop"},
		{"chat", `{` + user + `, "stream_options": {}}`, 400, "invalid_value", "stream_options"},
		{"chat", `{` + user + `, "top_logprobs": 1}`, 400, "invalid_value", "top_logprobs"},
		{"chat", `{` + user + `, "logprobs": true, "top_logprobs": 21}`, 400, "invalid_value", "top_logprobs"},
		{"chat", `{` + user + `, "logit_bias": {"1": 2}}`, 400, "unsupported_parameter", "logit_bias"},
		{"chat", `{` + user + `, "tools": [{}]}`, 400, "unsupported_parameter", "tools"},
		{"chat", `{` + user + `, "response_format": {"type": "xml"}}`, 400, "invalid_value", "response_format"},
		{"chat", `{` + user + `, "response_format": {"type": "json_schema"}}`, 400, "invalid_value", "response_format"},
		{"chat", `{` + user + `, "response_format": {"type": "json_schema", "json_schema": {"schema": {"pattern": "x"}}}}`, 400, "invalid_value", "response_format"},
		{"chat", `{` + user + `, "modalities": ["audio"]}`, 400, "unsupported_parameter", "modalities"},
		{"", `{"model": "small"}`, 400, "invalid_value", "prompt"},
		{"", `{"model": "small", "prompt": {}}`, 400, "invalid_value", "prompt"},
		{"", `{"model": "small", "prompt": [[]]}`, 400, "invalid_value", "prompt"},
		{"", `{"model": "small", "prompt": [320]}`, 400, "invalid_value", nil},
		{"", `{"model": "small", "prompt": "x", "logprobs": 6}`, 400, "invalid_value", "logprobs"},
		{"", `{"model": "small", "prompt": "x", "echo": true}`, 400, "unsupported_parameter", "echo"},
		{"", `{"model": "small", "prompt": "x", "best_of": 2}`, 400, "unsupported_parameter", "best_of"},
		{"", `{"model": "small", "prompt": "x", "suffix": "y"}`, 400, "unsupported_parameter", "suffix"},
		{"embeddings", `{}`, 400, "invalid_value", "model"},
		{"embeddings", `{"model": "gpt", "input": "x"}`, 404, "model_not_found", "model"},
		{"embeddings", `{"model": "small"}`, 400, "invalid_value", "input"},
		{"embeddings", `{"model": "small", "input": {}}`, 400, "invalid_value", "input"},
		{"embeddings", `{"model": "small", "input": ["x", 1]}`, 400, "invalid_value", "input"},
		{"embeddings", `{"model": "small", "input": [[]]}`, 400, "invalid_value", "input"},
		{"embeddings", `{"model": "small", "input": [[320]]}`, 400, "invalid_value", nil},
		{"embeddings", `{"model": "small", "input": "` + strings.Repeat("the thing ", 300) + `"}`, 400, "context_length_exceeded", "input"},
		{"embeddings", `{"model": "small", "input": "x", "encoding_format": "hex"}`, 400, "invalid_value", "encoding_format"},
		{"embeddings", `{"model": "small", "input": "x", "dimensions": 65}`, 400, "invalid_value", "dimensions"},
	} {
		path := map[string]string{"chat": "/v1/chat/completions", "": "/v1/completions", "embeddings": "/v1/embeddings"}[c.path]
		answer, err := s.post(t.Context(), path, c.body)
		status, x := decoded(t, answer, err)
		require.Equal(t, []any{c.status, c.code, c.param}, []any{status, dig(x, "error", "code"), dig(x, "error", "param")}, "%s %.200s: %v", path, c.body, x)
		require.Equal(t, "invalid_request_error", dig(x, "error", "type"))
		require.NotEmpty(t, dig(x, "error", "message"))
	}
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
		code         string
	}{
		{"GET", "/v2", nil, 404, "not_found"},
		{"GET", "/v1/models/gpt", nil, 404, "model_not_found"},
		{"GET", "/v1/completions", nil, 405, "method_not_allowed"},
		{"POST", "/health", nil, 405, "method_not_allowed"},
		{"POST", "/v1/completions", nil, 415, "unsupported_media_type"},
		{"POST", "/v1/completions", []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		{"POST", "/v1/completions", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_origin"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader("{}"))
		require.NoError(t, err)
		if c.header != nil {
			r.Header.Set(c.header[0], c.header[1])
		}
		answer, err := http.DefaultClient.Do(r)
		status, x := decoded(t, answer, err)
		require.Equal(t, []any{c.status, c.code}, []any{status, dig(x, "error", "code")}, "%s %s: %v", c.method, c.path, x)
	}

	bare := newTestServer(t, "", nil, usual)
	answer, err := bare.post(t.Context(), "/v1/chat/completions", `{`+user+`}`)
	status, x := decoded(t, answer, err)
	require.Equal(t, 400, status)
	require.Equal(t, "no_chat_template", dig(x, "error", "code"))
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte("one\ntwo\n"), 0o600))
	keys, err := readKeys(file)
	require.NoError(t, err)
	s := newTestServer(t, "", keys, usual)
	for header, want := range map[string]int{"": 401, "Bearer ": 401, "Bearer three": 401, "Basic one": 401, "Bearer one": 200, "bearer two": 200} {
		for _, path := range []string{"/v1/models", "/v1/models/small", "/metrics"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			require.NoError(t, err)
			r.Header.Set("Authorization", header)
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, want, answer.StatusCode, "%s %q", path, header)
		}
	}
	answer, err := http.Get(s.url + "/health")
	status, x := decoded(t, answer, err)
	require.Equal(t, 200, status)
	require.Equal(t, object{"status": "ok"}, x)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = readKeys(file)
	require.ErrorContains(t, err, "no API keys")
}

// TestBusy has one text at a time and none that waits.
func TestBusy(t *testing.T) {
	s := newTestServer(t, "", nil, usual, llm.WithSequences(1), llm.WithQueue(0))
	for status := 200; status != http.StatusTooManyRequests; { // the first may have ended before the second comes
		ctx, cancel := context.WithCancel(t.Context())
		first, err := s.post(ctx, "/v1/completions", `{"model": "small", "prompt": "the", "stream": true, "max_tokens": 250}`)
		require.NoError(t, err)
		second, err := s.post(t.Context(), "/v1/completions", `{"model": "small", "prompt": "the"}`)
		var x object
		status, x = decoded(t, second, err)
		if status != 200 {
			require.Equal(t, "rate_limit_exceeded", dig(x, "error", "code"))
			require.Equal(t, "rate_limit_error", dig(x, "error", "type"))
			require.Equal(t, "1", second.Header.Get("Retry-After"))
		}
		cancel()
		require.NoError(t, first.Body.Close())
		require.Eventually(t, func() bool { return s.scheduler.Stats().Running == 0 }, time.Minute, time.Millisecond)
	}
}

func TestMetrics(t *testing.T) {
	s := newTestServer(t, "", nil, usual)
	for range 2 {
		answer, err := s.post(t.Context(), "/v1/completions", `{"model": "small", "prompt": [5, 6, 7], "max_tokens": 1}`)
		status, _ := decoded(t, answer, err)
		require.Equal(t, 200, status)
	}
	answer, err := s.post(t.Context(), "/v1/completions", `{}`)
	status, _ := decoded(t, answer, err)
	require.Equal(t, 400, status)
	r, err := http.Get(s.url + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	for _, line := range []string{`wavelane_requests_total{path="/v1/completions",status="200"} 2`, `wavelane_requests_total{path="/v1/completions",status="400"} 1`,
		"wavelane_tokens_total 2", "wavelane_prompt_tokens_total 6", "wavelane_first_token_seconds_count 2", `wavelane_answer_seconds_bucket{le="+Inf"} 2`} {
		require.Contains(t, string(text), "\n"+line+"\n")
	}
	for line := range strings.Lines(string(text)) {
		require.Regexp(t, `^(# (HELP|TYPE) wavelane_[a-z_]+ .+|wavelane_[a-z_]+({[a-z]+="[^"]*"(,[a-z]+="[^"]*")*})? [-+0-9.e]+)\n$`, line)
	}
}

// TestStop runs the program and stops it beside a stream: with time to end the stream is whole, without it is cut off.
func TestStop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "small.gguf")
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, random(testseed.Of(t), "").Write(out))
	require.NoError(t, out.Close())
	for _, grace := range []time.Duration{time.Minute, 0} {
		ctx, stop := context.WithCancel(t.Context())
		address, ended := make(chan net.Addr, 1), make(chan error, 1)
		o := options{model: file, draft: file, ahead: 3, address: "localhost:0", sequences: 2, context: 256, grace: grace, limits: usual}
		go func() {
			ended <- run(ctx, slog.New(slog.DiscardHandler), o, func(a net.Addr) { address <- a }, wavelane.WithDevice("cpu"))
		}()
		s := &testServer{url: "http://" + (<-address).String()}
		r, err := s.post(t.Context(), "/v1/completions", `{"model": "small", "prompt": "the", "stream": true, "max_tokens": 200}`)
		require.NoError(t, err)
		stop()
		done, err := chunks(r.Body, func(object) bool { return true })
		if grace > 0 {
			require.NoError(t, err)
			require.True(t, done)
		}
		require.NoError(t, r.Body.Close())
		require.NoError(t, <-ended)
		_, err = s.post(t.Context(), "/v1/completions", `{}`)
		require.Error(t, err, "nobody listens")
	}
	require.Error(t, run(t.Context(), slog.New(slog.DiscardHandler), options{model: file + "x"}, nil))
	require.ErrorContains(t, run(t.Context(), slog.New(slog.DiscardHandler), options{model: file, draft: file + "x"}, nil, wavelane.WithDevice("cpu")), file+"x")
}
