//go:build !js

package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResponseFormat has a model whose weights are at random write JSON.
func TestResponseFormat(t *testing.T) {
	s := newTestServer(t, template, nil, usual)
	schema := json.RawMessage(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "good": {"type": "boolean"}}, "required": ["good", "name"]}`)
	for _, stream := range []bool{false, true} {
		body := object{"model": "small", "temperature": 1.5, "seed": 3, "max_tokens": 100, "stream": stream, "messages": []object{{"role": "user", "content": "the"}},
			"response_format": object{"type": "json_schema", "json_schema": object{"name": "x", "strict": true, "schema": schema}}}
		r, err := s.post(t.Context(), "/v1/chat/completions", body)
		text, finish := "", any(nil)
		if stream {
			require.NoError(t, err)
			_, err := chunks(r.Body, func(x object) bool {
				part, _ := dig(x, "choices", 0, "delta", "content").(string)
				text, finish = text+part, dig(x, "choices", 0, "finish_reason")
				return true
			})
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
		} else {
			_, x := decoded(t, r, err)
			text, finish = dig(x, "choices", 0, "message", "content").(string), dig(x, "choices", 0, "finish_reason")
		}
		var answer struct {
			Name *string
			Good *bool
		}
		require.NoError(t, json.Unmarshal([]byte(text), &answer), "%q", text)
		require.NotNil(t, answer.Name)
		require.NotNil(t, answer.Good)
		require.Equal(t, "stop", finish)
	}

	r, err := s.post(t.Context(), "/v1/chat/completions", object{"model": "small", "temperature": 0, "max_tokens": 12,
		"messages": []object{{"role": "user", "content": "the"}}, "response_format": object{"type": "json_object"}})
	_, x := decoded(t, r, err)
	require.Regexp(t, `^\s?\{`, dig(x, "choices", 0, "message", "content"))
}
