package jstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

// template shows which messages and variables it was given.
const template = `{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}{{ m.role }}: {{ m.content }}{{ '\n' }}{% endfor %}` +
	`{% if tools %}[{% for t in tools %}{{ t }}{% if not loop.last %} {% endif %}{% endfor %}]{% endif %}assistant:`

// LanguageModel returns a file with weights at random.
func LanguageModel(t testing.TB) []byte { return random(t, "llama") }

func random(t testing.TB, architecture string) []byte {
	var file bytes.Buffer
	r := decoder.Random{Architecture: architecture, Tokenizer: architecture, Blocks: 2, Width: 64, Hidden: 96, Heads: 4, KVHeads: 2, Context: 128, ChatTemplate: template, Seed: 1}
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// wanted is what a session in Go says to a prompt, in small.json.
type wanted struct {
	Prompt  string    `json:"prompt"`
	Tokens  []int32   `json:"tokens"`
	IDs     []int32   `json:"ids"`
	Text    string    `json:"text"`
	Vector  []float32 `json:"vector"`
	Encoded []float32 `json:"encoded"` // the vector that the encoder makes
}

// say continues a prompt greedily, up to where the model hardly knows the next token: another device may round otherwise.
func say(ctx context.Context, file, encoder []byte, prompt string) (*wanted, error) {
	dev, err := cpu.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	w, err := weights(ctx, dev, file)
	if err != nil {
		return nil, err
	}
	m := w.Model()
	s, err := w.NewSession(ctx, llm.WithExact(), llm.WithCache(quant.F32))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out := &wanted{Prompt: prompt, Tokens: m.Tokenize(prompt)}
	for token, err := range s.Generate(ctx, prompt, llm.WithMaxTokens(24), llm.WithLogProbs(2), llm.WithIgnoreEnd()) {
		if err != nil {
			return nil, err
		}
		if token.Top[0].LogProb-token.Top[1].LogProb < 1e-3 {
			break
		}
		out.IDs = append(out.IDs, token.ID)
	}
	if len(out.IDs) < 8 {
		return nil, fmt.Errorf("the model is sure of %d tokens only", len(out.IDs))
	}
	for token, err := range s.Generate(ctx, prompt, llm.WithMaxTokens(len(out.IDs)), llm.WithIgnoreEnd()) {
		if err != nil {
			return nil, err
		}
		out.Text += token.Text
	}
	if out.Vector, err = vectorOf(ctx, w, prompt); err != nil {
		return nil, err
	}
	if w, err = weights(ctx, dev, encoder); err == nil {
		out.Encoded, err = vectorOf(ctx, w, prompt)
	}
	return out, err
}

func weights(ctx context.Context, dev llm.Device, file []byte) (*llm.Weights, error) {
	m, err := llm.Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	return m.Load(ctx, dev)
}

func vectorOf(ctx context.Context, w *llm.Weights, text string) ([]float32, error) {
	e, err := w.NewEmbedder(ctx, llm.WithExact(), llm.WithCache(quant.F32))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	vectors, err := e.Embed(ctx, text)
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// models serves small.gguf, encoder.gguf, and small.json with what they say. The queries are plain, without ranges; broken, which ends early; and slow.
type models struct {
	t       testing.TB
	once    sync.Once
	file    []byte
	encoder []byte
	said    []byte
	mu      sync.Mutex
	version int
	bodies  int
	bytes   int
}

func (m *models) make() {
	m.file, m.encoder = LanguageModel(m.t), random(m.t, "bert")
	said, err := say(m.t.Context(), m.file, m.encoder, "the thing and")
	if err == nil {
		m.said, err = json.Marshal(said)
	}
	if err != nil {
		m.t.Error(err)
	}
}

func (m *models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.once.Do(m.make)
	m.mu.Lock()
	tag := fmt.Sprintf("%q", fmt.Sprint("version ", m.version))
	m.mu.Unlock()
	switch r.URL.Path {
	case "/models/small.json":
		w.Write(m.said)
	case "/models/encoder.gguf":
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(m.encoder))
	case "/models/touch":
		m.mu.Lock()
		m.version++
		m.mu.Unlock()
	case "/models/requests":
		m.mu.Lock()
		defer m.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]int{"bodies": m.bodies, "bytes": m.bytes, "size": len(m.file)})
	case "/models/small.gguf":
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", "no-store")
		if r.URL.RawQuery == "plain" {
			r.Header.Del("Range")
		}
		http.ServeContent(&counted{w, m, r, 0}, r, "", time.Time{}, bytes.NewReader(m.file))
	default:
		http.NotFound(w, r)
	}
}

// counted counts what is sent of the model.
type counted struct {
	http.ResponseWriter
	*models
	request *http.Request
	sent    int
}

func (c *counted) Write(p []byte) (int, error) {
	n, broken := 0, c.request.URL.RawQuery == "broken"
	for part := range slices.Chunk(p, len(c.file)/16) {
		if broken && c.sent > 0 && c.sent+len(part) > len(c.file)/2 {
			panic(http.ErrAbortHandler)
		}
		if broken || c.request.URL.RawQuery == "slow" {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-c.request.Context().Done():
				return n, c.request.Context().Err()
			}
		}
		k, err := c.ResponseWriter.Write(part)
		http.NewResponseController(c.ResponseWriter).Flush()
		c.mu.Lock()
		if c.sent == 0 {
			c.bodies++
		}
		c.bytes += k
		c.mu.Unlock()
		n, c.sent = n+k, c.sent+k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
