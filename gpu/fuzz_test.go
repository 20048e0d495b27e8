//go:build !js

package gpu

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/wgsl"
)

// Whatever the compiler prints, an error comes of it, and its place is inside what was printed.
func FuzzShaderError(f *testing.F) {
	f.Add("Validation Error\n\nCaused by:\n  Shader 'x' parsing error: expected `;`, found \"}\"\n  ┌─ wgsl:3:5\n  │\n")
	f.Add("In wgpuDeviceCreateComputePipeline\n  note: label = `x`\n  Workgroup size is out of range\n")
	f.Add("┌─ :99999999999999999999:1\n")
	f.Fuzz(func(t *testing.T, report string) {
		e := newShaderError(&wgsl.Kernel{Key: "k#1"}, report)
		require.Equal(t, "k", e.Label)
		require.GreaterOrEqual(t, e.Line, 0)
		require.GreaterOrEqual(t, e.Column, 0)
		require.True(t, strings.HasPrefix(e.Error(), "kernel k: "))
	})
}

// A tune file of any contents is read without an error; what is taken from it was written by us, for this adapter.
func FuzzTuneFile(f *testing.F) {
	dir := f.TempDir()
	c := newTuneCache(dir, "adapter", slog.New(slog.DiscardHandler))
	c.store("matmul 64x64", "tile32")
	good, err := os.ReadFile(c.path)
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"version":1,"fingerprint":"adapter","choices":null,"checksum":""}`))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := newTuneCache(t.TempDir(), "adapter", slog.New(slog.DiscardHandler))
		require.NoError(t, os.WriteFile(c.path, text, 0o600))
		for key, variant := range c.read() {
			require.Equal(t, [2]string{"matmul 64x64", "tile32"}, [2]string{key, variant})
		}
	})
}
