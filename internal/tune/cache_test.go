//go:build !js

package tune

import (
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tune file of any contents is read without an error; what is taken from it was written by us, for this adapter.
func FuzzTuneFile(f *testing.F) {
	dir := f.TempDir()
	c := newCache(Config{Dir: dir, Fingerprint: "adapter", Log: slog.New(slog.DiscardHandler)})
	c.store("matmul 64x64", "tile32")
	good, err := os.ReadFile(c.file.Path())
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"version":1,"fingerprint":"adapter","measured":null,"checksum":""}`))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := newCache(Config{Dir: t.TempDir(), Fingerprint: "adapter", Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, os.WriteFile(c.file.Path(), text, 0o600))
		for key, variant := range c.read() {
			require.Equal(t, [2]string{"matmul 64x64", "tile32"}, [2]string{key, variant})
		}
	})
}
