//go:build !js

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/gpu"
)

// The command says which library there is and where to get one, and tries one.
func TestWGPU(t *testing.T) {
	library := os.Getenv("WAVELANE_WGPU")
	if library == "" {
		library = "linked"
	}
	name, err := gpu.Library("")
	require.NoError(t, err)
	status, out, errOut := call(t.Context(), "wgpu")
	require.Zero(t, status, errOut)
	require.Contains(t, out, "use "+name)
	require.Contains(t, out, "wgpu==0.32.0")

	status, out, errOut = call(t.Context(), "wgpu", library)
	require.Zero(t, status, errOut)
	require.Contains(t, out, "wgpu-native 2")
	require.Contains(t, out, "works")

	for text, says := range map[string]string{"": "load", "no library": "load"} {
		path := filepath.Join(t.TempDir(), "library.so")
		if text != "" {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		status, out, errOut = call(t.Context(), "wgpu", path)
		require.Equal(t, 1, status)
		require.Empty(t, out)
		require.Contains(t, errOut, says)
		require.Contains(t, errOut, path)
	}
}

// What the command says of each platform is what the script fetches.
func TestWheels(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "..", "scripts", "wgpu"))
	require.NoError(t, err)
	require.Contains(t, string(script), "wgpu==0.32.0 ")
	for platform, wheel := range wheels {
		require.Contains(t, string(script), strings.ReplaceAll(platform, "/", "-")+") wheel="+wheel[0]+" name="+wheel[1])
	}
	require.Equal(t, len(wheels), strings.Count(string(script), ") wheel="))
	var b strings.Builder
	require.NoError(t, whereFrom(&b, "windows/arm64"))
	require.Contains(t, b.String(), "build wgpu-native 29")
}
