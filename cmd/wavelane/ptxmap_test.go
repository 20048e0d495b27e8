//go:build !js

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// randomModel is a small one in a file.
func randomModel(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "random.gguf")
	f, err := os.Create(file)
	require.NoError(t, err)
	r := decoder.Random{Architecture: "qwen2", Tokenizer: "gpt2", Blocks: 2, Width: 64, Hidden: 96, Heads: 2, KVHeads: 1, Context: 64}
	require.NoError(t, r.Write(f))
	require.NoError(t, f.Close())
	return file
}

// TestPTXMapLaunches runs the plans on the software GPU, which counts launches.
func TestPTXMapLaunches(t *testing.T) {
	file := randomModel(t)
	launches := map[string]int{}
	for plan, flags := range map[string][]string{"decode": nil, "prefill": {"--prefill", "--chunk", "12"}} {
		status, out, errOut := call(t.Context(), append([]string{"ptx", "map", file, "--json"}, flags...)...)
		require.Zero(t, status, errOut)
		var m modelMap
		require.NoError(t, json.Unmarshal([]byte(out), &m))
		require.Equal(t, plan, m.Plan)
		require.Equal(t, "random weights", m.Model)
		launches[plan] = m.Launches
		listed, blocks := 0, map[int]bool{}
		for _, p := range m.Parts {
			if p.Block != nil {
				blocks[*p.Block] = true
			}
			for _, s := range p.Steps {
				require.NotEmpty(t, s.Sources, s.Operation)
				require.Regexp(t, `^internal/decoder/graph\.go:\d+$`, s.Sources[0][len(s.Sources[0])-1])
				for _, l := range s.Launches {
					if l.isKernel() {
						listed++
						require.NotEmpty(t, l.Family)
					}
				}
			}
		}
		require.Equal(t, m.Launches, listed)
		var text strings.Builder
		require.NoError(t, m.writeText(&text))
		require.Contains(t, text.String(), "\nblock 1, attention\n")
		require.Contains(t, text.String(), "of blk.1.ffn_down.weight\n")
		require.Equal(t, map[int]bool{0: true, 1: true}, blocks)
	}

	f, err := gguf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	model, err := decoder.Read(f)
	require.NoError(t, err)
	dev, err := cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithoutCache())
	require.NoError(t, err)
	defer dev.Close()
	w, err := model.Load(t.Context(), dev, decoder.LoadOptions{})
	require.NoError(t, err)
	defer w.Close()
	s, err := w.NewSession(t.Context(), decoder.SessionOptions{Chunk: 12, Cache: quant.F16, Output: decoder.Output{TopK: 1}})
	require.NoError(t, err)
	defer s.Close()
	for plan, tokens := range map[string][]int32{"decode": {1}, "prefill": make([]int32, 12)} {
		before := dev.Stats().Launches
		_, err = s.Feed(t.Context(), tokens...)
		require.NoError(t, err)
		require.EqualValues(t, launches[plan], dev.Stats().Launches-before, plan)
	}
}

func TestPTXMap(t *testing.T) {
	file := randomModel(t)
	status, reverse, errOut := call(t.Context(), "ptx", "map", file, "--reverse", "rope")
	require.Zero(t, status, errOut)
	require.Regexp(t, `^decode of 1 token for sm_\w+: \d+ launches of \d+ kernels\n\nrope\w*\n  4 × rope of blocks 0 1\n$`, reverse)
	status, some, errOut := call(t.Context(), "ptx", "map", file, "--kernel", "rope")
	require.Zero(t, status, errOut)
	require.Equal(t, 2, strings.Count(some, ", rope\n"))
	require.NotContains(t, some, ", attention\n")

	for _, c := range []struct {
		status int
		args   []string
		says   string
	}{
		{1, []string{file, "--kernel", "toaster"}, "toaster"},
		{1, []string{"none.gguf"}, "none.gguf"},
		{1, []string{"ptxmap_test.go"}, "malformed"},
		{2, []string{file, "--kernel", "a", "--reverse", "b"}, "reverse"},
		{2, []string{file, "--chunk", "1"}, "--chunk"},
		{2, nil, "arg"},
	} {
		status, _, errOut := call(t.Context(), append([]string{"ptx", "map"}, c.args...)...)
		require.Equal(t, c.status, status, errOut)
		require.Contains(t, errOut, c.says)
	}
}
