//go:build !js

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/llm"
)

func TestLLM(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.gguf")
	f, err := os.Create(file)
	require.NoError(t, err)
	r := decoder.Random{Architecture: "qwen2", Tokenizer: "gpt2", Blocks: 1, Width: 32, Hidden: 32, Heads: 2, KVHeads: 1, Context: 128, Seed: 1,
		ChatTemplate: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"}
	require.NoError(t, r.Write(f))
	require.NoError(t, f.Close())

	status, out, errOut := call(t.Context(), "llm", file, "--info", "--json")
	require.Zero(t, status, errOut)
	var info llm.Info
	require.NoError(t, json.Unmarshal([]byte(out), &info))
	require.Equal(t, "qwen2", info.Architecture)
	status, out, errOut = call(t.Context(), "llm", file, "--info")
	require.Zero(t, status, errOut)
	require.Contains(t, out, "random weights: qwen2, 1 blocks of width 32")
	require.Contains(t, out, "chat template:\n{% for m in messages %}")

	status, out, errOut = call(t.Context(), "llm", file, "-p", "the thing", "-n", "5", "--device", "cpu")
	require.Zero(t, status, errOut)
	require.Regexp(t, `\[(limit|end of text); prompt \d+ tokens, 0 known, [\d.]+ tokens/s; answer .*\]`, errOut)
	status, again, errOut := call(t.Context(), "llm", file, "-p", "the thing", "-n", "5", "--device", "cpu")
	require.Zero(t, status, errOut)
	require.Equal(t, out, again)
	status, other, errOut := call(t.Context(), "llm", file, "-p", "the thing", "-n", "5", "--raw", "--device", "cpu", "--temp", "3", "--seed", "5")
	require.Zero(t, status, errOut)
	require.NotEqual(t, out, other)

	status, out, errOut = call(t.Context(), "llm", file, "--bench", "--pp", "9", "--tg", "4", "--repeat", "1", "--device", "cpu")
	require.Zero(t, status, errOut)
	require.Regexp(t, `\| random weights \| [\d.]+ MiB +\| [\d.]+ M +\| .* \| pp9 +\| [\d.]+ +\|`, out)
	require.Contains(t, out, "| tg4 ")
	status, out, errOut = call(t.Context(), "llm", file, "--bench", "--pp", "0", "--tg", "4", "--json", "--device", "cpu")
	require.Zero(t, status, errOut)
	var rows []llmMeasurement
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 1)
	require.Len(t, rows[0].Rates, 3)

	status, out, errOut = call(t.Context(), "llm", file, "-p", "the thing the thing the", "-n", "200", "--ctx", "64", "--keep", "4", "--lookup", "4", "--device", "cpu")
	require.Zero(t, status, errOut)
	require.Regexp(t, `\[(limit|end of text); `, errOut)
	plain, _, _ := strings.Cut(out, "\n")
	status, out, errOut = call(t.Context(), "llm", file, "-p", "the thing the thing the", "-n", "30", "--device", "cpu", "--draft", file, "--ahead", "7")
	require.Zero(t, status, errOut)
	require.Regexp(t, `\[(limit|end of text); .*, \d+ steps, \d+ of \d+ tokens ahead accepted\]`, errOut)
	require.True(t, strings.HasPrefix(plain, strings.TrimSpace(out)), "%q is not the beginning of %q", out, plain)
	for _, format := range []string{"f16", "f32"} { // heads of 16 elements are too small for q8_0
		status, _, errOut = call(t.Context(), "llm", file, "-p", "the thing", "-n", "5", "--device", "cpu", "--cache", format)
		require.Zero(t, status, errOut)
	}
	text := filepath.Join(t.TempDir(), "text.txt")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("the thing and another ", 20)), 0o600))
	status, out, errOut = call(t.Context(), "llm", file, "--perplexity", text, "--pp", "16", "--device", "cpu")
	require.Zero(t, status, errOut)
	require.Regexp(t, `^perplexity [\d.]+ ± [\d.]+ of \d+ tokens\n$`, out)
	require.Contains(t, errOut, "[2: ")

	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{1, "none.gguf", []string{"none.gguf"}},
		{1, "none.lora", []string{file, "-p", "x", "--lora", "none.lora:0.5", "--device", "cpu"}},
		{1, "general.type", []string{file, "-p", "x", "--lora", file, "--device", "cpu"}},
		{1, "none.txt", []string{file, "--perplexity", "none.txt", "--device", "cpu"}},
		{2, "--pp 1", []string{file, "--perplexity", text, "--pp", "1", "--device", "cpu"}},
		{2, "--pp 0", []string{file, "--pp", "0", "--tg", "0"}},
		{1, "none.gguf", []string{file, "-p", "x", "--draft", "none.gguf", "--device", "cpu"}},
		{1, "64 tokens ahead", []string{file, "-p", "x", "--draft", file, "--ahead", "64", "--device", "cpu"}},
		{1, "heads of 16", []string{file, "-p", "x", "--cache", "q8_0", "--device", "cpu"}},
		{2, "no type", []string{file, "--cache", "q4"}},
		{1, "keys and values in Q4_0", []string{file, "-p", "x", "--cache", "q4_0", "--device", "cpu"}},
		{2, "--draft", []string{file, "--bench", "--draft", file}},
		{1, "top-p", []string{file, "-p", "x", "--top-p", "2", "--device", "cpu"}},
		{1, "in a context of 8", []string{file, "-p", strings.Repeat("x", 50), "--ctx", "8", "--device", "cpu"}},
	} {
		status, _, errOut = call(t.Context(), append([]string{"llm"}, c.args...)...)
		require.Equal(t, c.status, status, errOut)
		require.Contains(t, errOut, c.says)
	}
}

func TestScaledPath(t *testing.T) {
	for s, want := range map[string]struct {
		path  string
		scale float32
	}{"a": {"a", 1}, "a:0.5": {"a", 0.5}, `c:\a`: {`c:\a`, 1}, `c:\a:-2`: {`c:\a`, -2}} {
		path, scale := scaledPath(s)
		require.Equal(t, want.path, path)
		require.Equal(t, want.scale, scale)
	}
}

// TestTalk has two messages on standard input.
func TestTalk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.gguf")
	f, err := os.Create(file)
	require.NoError(t, err)
	r := decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 1, Width: 32, Hidden: 32, Heads: 2, KVHeads: 1, Context: 256, Seed: 1,
		ChatTemplate: "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}
	require.NoError(t, r.Write(f))
	require.NoError(t, f.Close())
	flags := llmFlags{context: 256, tokens: 6, system: "be brief", bench: benchFlags{device: "cpu"}}
	var out, errOut strings.Builder
	require.NoError(t, flags.do(t.Context(), strings.NewReader("the thing\n\nand\n"), &out, &errOut, file))
	require.Equal(t, 2, strings.Count(errOut.String(), "prompt "))
	require.Regexp(t, `(?s)prompt \d+ tokens, 0 known.*prompt \d+ tokens, [1-9]\d* known`, errOut.String())

	// A conversation that has grown too long goes on without its beginning.
	flags.context, flags.tokens = 64, 20
	errOut.Reset()
	require.NoError(t, flags.do(t.Context(), strings.NewReader("the thing\nand\nof the other\nin\n"), &out, &errOut, file))
	require.Equal(t, 4, strings.Count(errOut.String(), "prompt "))
	require.Contains(t, errOut.String(), "too long")
	flags.context = 8
	require.ErrorIs(t, flags.do(t.Context(), strings.NewReader("the thing\n"), &out, &errOut, file), compute.ErrTooLarge)
}
