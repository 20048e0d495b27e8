//go:build !js

package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"sync"

	"github.com/wavelane/wavelane/llm"
)

// embeddingRequest is the body of /v1/embeddings.
type embeddingRequest struct {
	Model      string  `json:"model"`
	Input      prompts `json:"input"`
	Format     string  `json:"encoding_format"`
	Dimensions *int    `json:"dimensions"`
	User       string  `json:"user"` // makes no difference
}

// embeddings computes vectors of texts, one request after the other.
type embeddings struct {
	weights *llm.Weights
	options []llm.EmbedderOption
	room    chan struct{} // for requests that compute or wait

	mu       sync.Mutex
	embedder *llm.Embedder // nil before the first request: it takes memory
}

func newEmbeddings(w *llm.Weights, waiting int, opts ...llm.EmbedderOption) *embeddings {
	return &embeddings{weights: w, options: opts, room: make(chan struct{}, waiting+1)}
}

// open returns the embedder.
func (e *embeddings) open() (*llm.Embedder, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.embedder != nil {
		return e.embedder, nil
	}
	var err error
	e.embedder, err = e.weights.NewEmbedder(context.Background(), e.options...)
	return e.embedder, err
}

// Close frees what the embedder has on its device.
func (e *embeddings) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.embedder == nil {
		return nil
	}
	return e.embedder.Close()
}

// vector is an embedding in an answer: numbers, or their bytes in base64.
type vector struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

func (s *server) embed(rw http.ResponseWriter, r *http.Request) error {
	var q embeddingRequest
	if err := s.decode(rw, r, &q); err != nil {
		return err
	}
	select {
	case s.embeddings.room <- struct{}{}:
		defer func() { <-s.embeddings.room }()
	default:
		return llm.ErrBusy
	}
	e, err := s.embeddings.open()
	if err != nil {
		return err
	}
	tokens, err := q.tokens(s, e)
	if err != nil {
		return err
	}
	vectors, err := e.EmbedTokens(r.Context(), tokens...)
	if err != nil {
		return err
	}
	n := 0
	list := make([]vector, len(vectors))
	for i, v := range vectors {
		n += len(tokens[i])
		list[i] = vector{"embedding", i, q.encode(v)}
	}
	return writeJSON(rw, map[string]any{"object": "list", "data": list, "model": s.name, "usage": map[string]int{"prompt_tokens": n, "total_tokens": n}})
}

// tokens checks the fields and returns the texts.
func (q *embeddingRequest) tokens(s *server, e *llm.Embedder) ([][]int32, error) {
	tokens := q.Input.tokens
	for _, text := range q.Input.texts {
		tokens = append(tokens, e.Tokenize(text))
	}
	switch {
	case q.Model == "":
		return nil, invalid("model", "model is missing")
	case q.Model != s.name:
		return nil, unknownModel(q.Model)
	case q.Format != "" && q.Format != "float" && q.Format != "base64":
		return nil, invalid("encoding_format", "encoding_format is %q, must be float or base64", q.Format)
	case q.Dimensions != nil && (*q.Dimensions < 1 || *q.Dimensions > e.Width()):
		return nil, invalid("dimensions", "dimensions are %d, must be from 1 to %d", *q.Dimensions, e.Width())
	}
	if err := q.Input.check("input"); err != nil {
		return nil, err
	}
	for i, t := range tokens {
		switch {
		case len(t) == 0:
			return nil, invalid("input", "input %d has no tokens", i)
		case len(t) > e.Context():
			return nil, &apiError{status: http.StatusBadRequest, Param: "input", Code: "context_length_exceeded",
				Message: fmt.Sprintf("input %d has %s, at most %d", i, plural(len(t), "token"), e.Context())}
		}
	}
	return tokens, nil
}

// encode is a vector as the request wants it: its leading elements, scaled to length 1 again.
func (q *embeddingRequest) encode(v []float32) any {
	if q.Dimensions != nil && *q.Dimensions < len(v) {
		v = v[:*q.Dimensions]
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		for i := range v {
			v[i] = float32(float64(v[i]) / math.Sqrt(sum))
		}
	}
	if q.Format != "base64" {
		return v
	}
	bytes := make([]byte, 0, 4*len(v))
	for _, x := range v {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(bytes)
}
