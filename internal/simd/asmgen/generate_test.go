package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := Generate()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err, "run make generate")
		require.True(t, string(got) == string(want), "%s is stale: run make generate", name)
	}
	committed, err := filepath.Glob(filepath.Join(root, "*", "*_gen*"))
	require.NoError(t, err)
	for _, path := range committed {
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		require.Contains(t, files, filepath.ToSlash(name), "no generator writes this file any longer: delete it")
	}
}
