//go:build !js

package pretrained_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/llm"
)

// TestGenerate has texts of models from folders be those of the same models from files.
func TestGenerate(t *testing.T) {
	dev, err := wavelane.Open(t.Context(), wavelane.WithDevice("cpu"))
	require.NoError(t, err)
	defer dev.Close()
	text := func(m *llm.Model) (text string) {
		w, err := m.Load(t.Context(), dev)
		require.NoError(t, err)
		defer w.Close()
		s, err := w.NewSession(t.Context())
		require.NoError(t, err)
		defer s.Close()
		for token, err := range s.Generate(t.Context(), "the reaction", llm.WithMaxTokens(12)) {
			require.NoError(t, err)
			text += token.Text
		}
		return text
	}
	for _, kind := range []string{"mistral", "qwen2_moe"} {
		s := samples[kind]
		_, dir := written(t, kind, s, 2)
		var b bytes.Buffer
		require.NoError(t, s.Write(&b))
		file := filepath.Join(t.TempDir(), "model.gguf")
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o666))
		want, err := llm.Open(file)
		require.NoError(t, err)
		defer want.Close()
		got, err := llm.Open(dir)
		require.NoError(t, err)
		defer got.Close()
		require.Equal(t, want.Info().Parameters, got.Info().Parameters)
		require.Equal(t, text(want), text(got))
		small, err := llm.Open(dir, llm.WithQuantisation(compute.Q8_0))
		require.NoError(t, err)
		defer small.Close()
		require.Less(t, small.Info().Bytes, got.Info().Bytes*3/4)
		text(small)
		_, err = llm.Open(file, llm.WithQuantisation(compute.Q8_0))
		require.ErrorIs(t, err, compute.ErrUnsupported)
	}
	_, err = llm.Open(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = llm.Open(t.TempDir(), nil)
	require.ErrorIs(t, err, compute.ErrArgument)
}
