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
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		require.True(t, string(got) == string(want), "%s is stale: run go generate ./...", name)
	}
}
