//go:build !js

package main

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
)

func TestEmbeddings(t *testing.T) {
	s := newTestServer(t, "", nil, usual)
	get := func(body object) (vectors [][]float64, tokens any) {
		body["model"] = "small"
		answer, err := s.post(t.Context(), "/v1/embeddings", body)
		status, x := decoded(t, answer, err)
		require.Equal(t, 200, status, x)
		require.Equal(t, []any{"list", "small"}, []any{x["object"], x["model"]})
		require.Equal(t, dig(x, "usage", "total_tokens"), dig(x, "usage", "prompt_tokens"))
		for i, data := range x["data"].([]any) {
			require.EqualValues(t, i, dig(data, "index"))
			require.Equal(t, "embedding", dig(data, "object"))
			var v []float64
			switch e := dig(data, "embedding").(type) {
			case []any:
				for _, f := range e {
					v = append(v, f.(float64))
				}
			case string:
				bytes, err := base64.StdEncoding.DecodeString(e)
				require.NoError(t, err)
				for ; len(bytes) > 0; bytes = bytes[4:] {
					v = append(v, float64(math.Float32frombits(binary.LittleEndian.Uint32(bytes))))
				}
			}
			vectors = append(vectors, v)
		}
		return vectors, dig(x, "usage", "prompt_tokens")
	}
	texts := []string{"the thing", "and"}
	e, err := s.embeddings.open()
	require.NoError(t, err)
	want, err := e.Embed(t.Context(), texts...)
	require.NoError(t, err)
	close := func(want []float32, got []float64) {
		t.Helper()
		require.Len(t, got, len(want))
		for i := range want {
			require.InDelta(t, want[i], got[i], 1e-6)
		}
	}
	n := len(s.model.Tokenize(texts[0])) + len(s.model.Tokenize(texts[1]))
	for _, body := range []object{{"input": texts}, {"input": texts, "encoding_format": "base64"}, {"input": texts, "encoding_format": "float", "user": "x"},
		{"input": [][]int32{s.model.Tokenize(texts[0]), s.model.Tokenize(texts[1])}, "dimensions": 64}} {
		vectors, tokens := get(body)
		require.EqualValues(t, n, tokens)
		close(want[0], vectors[0])
		close(want[1], vectors[1])
	}
	one, _ := get(object{"input": texts[0]})
	close(want[0], one[0])
	short, _ := get(object{"input": s.model.Tokenize(texts[0]), "dimensions": 3})
	length := math.Sqrt(float64(want[0][0]*want[0][0] + want[0][1]*want[0][1] + want[0][2]*want[0][2]))
	for i, x := range short[0] {
		require.InDelta(t, float64(want[0][i])/length, x, 1e-6)
	}
	require.Len(t, short[0], 3)

	// More requests than may wait are refused; each of the others gets what it asks for.
	for range cap(s.embeddings.room) - 1 {
		s.embeddings.room <- struct{}{}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 8 {
		all.Go(func() {
			answer, err := s.post(t.Context(), "/v1/embeddings", object{"model": "small", "input": texts[0]})
			if err != nil {
				t.Error(err)
				return
			}
			answer.Body.Close()
			mu.Lock()
			statuses[answer.StatusCode]++
			mu.Unlock()
		})
	}
	all.Wait()
	require.Equal(t, 8, statuses[http.StatusOK]+statuses[http.StatusTooManyRequests])
	require.Positive(t, statuses[http.StatusOK])
	s.embeddings.room <- struct{}{}
	answer, err := s.post(t.Context(), "/v1/embeddings", object{"model": "small", "input": texts[0]})
	status, x := decoded(t, answer, err)
	require.Equal(t, 429, status)
	require.Equal(t, "rate_limit_exceeded", dig(x, "error", "code"))
}

// TestEncoder serves a model that makes embeddings alone.
func TestEncoder(t *testing.T) {
	model := random(testseed.Of(t), "")
	model.Architecture, model.Tokenizer, model.Context = "bert", "bert", 256
	s := serverOf(t, model, nil, usual)
	answer, err := s.post(t.Context(), "/v1/embeddings", object{"model": "small", "input": []string{"the thing", "and"}})
	status, x := decoded(t, answer, err)
	require.Equal(t, 200, status, x)
	require.Len(t, dig(x, "data", 1, "embedding"), 64)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		answer, err = s.post(t.Context(), path, object{"model": "small", "prompt": "the"})
		status, x = decoded(t, answer, err)
		require.Equal(t, 400, status, x)
		require.Equal(t, "unsupported_model", dig(x, "error", "code"))
	}
	for _, path := range []string{"/v1/models", "/metrics", "/health"} {
		answer, err := http.Get(s.url + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, 200, answer.StatusCode, path)
	}
}
