//go:build !js

package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

var cpu = wavelane.WithDevice("cpu")

func TestDecode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "random.gguf")
	o := options{random: file, prompt: "Once upon", tokens: 24, context: 64, seed: 7, exact: true}
	var out, errOut bytes.Buffer
	require.NoError(t, run(t.Context(), &out, &errOut, o, cpu))
	require.True(t, strings.HasPrefix(out.String(), "Once upon"))
	require.True(t, utf8.Valid(out.Bytes()))
	require.Regexp(t, `prompt: \d+ tokens in \S+, [\d.]+ tokens/s\ndecoded: 23 tokens in \S+, [\d.]+ tokens/s\n$`, errOut.String())
	require.Contains(t, errOut.String(), "random weights: llama, 4 blocks of width 256, 8 heads (2 of keys), vocabulary 320")

	// The same again is the same text, also with the weights in float32, and a seed makes sampling repeat itself.
	o.model, o.random, o.dense = file, "", true
	texts := map[string]bool{out.String(): true}
	for i, temperature := range []float64{0, 0.7, 0.7} {
		o.temperature, o.topK = temperature, 20*(i%2)
		var again bytes.Buffer
		require.NoError(t, run(t.Context(), &again, &errOut, o, cpu))
		texts[again.String()] = true
	}
	require.Len(t, texts, 3)

	o.tokens, o.context, o.temperature = 1000, 30, 0
	errOut.Reset()
	require.NoError(t, run(t.Context(), &out, &errOut, o, cpu))
	require.Contains(t, errOut.String(), "the context is full")
}

// interrupting cancels when so much was written.
type interrupting struct {
	written, after int
	cancel         context.CancelFunc
}

func (w *interrupting) Write(p []byte) (int, error) {
	if w.written += len(p); w.written > w.after {
		w.cancel()
	}
	return len(p), nil
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupting{after: 20, cancel: cancel}
	var errOut bytes.Buffer
	o := options{random: filepath.Join(t.TempDir(), "random.gguf"), prompt: "Once", tokens: 1000, context: 2000, seed: 7, dense: true}
	require.NoError(t, run(ctx, out, &errOut, o, cpu))
	require.Regexp(t, `decoded: \d+ tokens in .*\ninterrupted\n$`, errOut.String())
	require.Less(t, out.written, 100)
}

func TestWrong(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("no model"), 0o644))
	empty := filepath.Join(dir, "empty.gguf")
	f, err := os.Create(empty)
	require.NoError(t, err)
	require.NoError(t, gguf.NewWriter(f).Close())
	require.NoError(t, f.Close())
	random := filepath.Join(dir, "random.gguf")
	require.NoError(t, writeRandom(random, 1))
	for _, c := range []struct {
		o    options
		want error
		says string
	}{
		{options{model: filepath.Join(dir, "none.gguf")}, os.ErrNotExist, "none.gguf"},
		{options{model: text}, gguf.ErrMalformed, text},
		{options{model: empty}, gguf.ErrMissing, "general.architecture"},
		{options{}, nil, "-model is missing"},
		{options{model: "a", random: "b"}, nil, "which one"},
		{options{random: filepath.Join(dir, "none", "x")}, os.ErrNotExist, "none"},
		{options{model: random, temperature: -1}, compute.ErrArgument, "temperature"},
		{options{model: random, topK: -1}, compute.ErrArgument, "top-k"},
		{options{model: random, tokens: -1}, nil, "-n"},
		{options{model: random, prompt: strings.Repeat("a", 300)}, compute.ErrTooLarge, "in a context of 256"},
	} {
		c.o.context, c.o.tokens = 256, cmp.Or(c.o.tokens, 1)
		var out, errOut bytes.Buffer
		err := run(t.Context(), &out, &errOut, c.o, cpu)
		require.ErrorContains(t, err, c.says)
		if c.want != nil {
			require.ErrorIs(t, err, c.want)
		}
		require.Equal(t, c.o.prompt, out.String()[:min(len(out.String()), len(c.o.prompt))])
	}
}
