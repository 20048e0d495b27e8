//go:build !js

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

// TestClients has OpenAI's packages for Python and Node.js as clients, in their newest versions. It installs them, and is one of make proofs.
func TestClients(t *testing.T) {
	if os.Getenv("WAVELANE_PROOFS") != "all" {
		t.Skip("installs packages, which make proofs does")
	}
	folder := t.TempDir()
	output := func(name string, args ...string) []byte {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Stderr, c.Dir = os.Stderr, folder
		out, err := c.Output()
		require.NoError(t, err, "%s %q", name, args)
		return out
	}
	for _, name := range []string{"client.py", "client.mjs"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
	}
	python := filepath.Join(folder, "venv", "bin", "python")
	output("python3", "-m", "venv", "venv")
	output(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "openai")
	output("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "openai")

	s := newTestServer(t, template, nil, usual)
	session, err := s.weights.NewSession(t.Context(), llm.WithContext(256), llm.WithExact(), llm.WithCache(quant.F32))
	require.NoError(t, err)
	defer session.Close()
	text := ""
	for token, err := range session.Generate(t.Context(), "the thing", llm.WithMaxTokens(12)) {
		require.NoError(t, err)
		text += token.Text
	}
	chat := ""
	for token, err := range session.Chat(t.Context(), []llm.Message{{Role: "user", Content: "the thing"}}, llm.WithMaxTokens(12)) {
		require.NoError(t, err)
		chat += token.Text
	}
	for _, client := range [][]string{{python, "client.py"}, {"node", "client.mjs"}} {
		var got object
		require.NoError(t, json.Unmarshal(output(client[0], client[1], s.url), &got))
		require.Equal(t, object{
			"models": []any{"small"}, "chat": chat, "stream": chat, "completion": text, "tokens": []any{12.0, 12.0, 12.0}, "embeddings": []any{64.0, 64.0},
			"keys":   []any{"colour", "warm"},
			"errors": []any{[]any{"NotFoundError", 404.0, "model_not_found", "model"}, []any{"BadRequestError", 400.0, "invalid_value", "temperature"}},
		}, got, client[1])
	}
}
