//go:build !js

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServe(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, serve(io.Discard, "localhost:0", dir), "make site")
	for _, name := range []string{"index.html", "main.js", "wavelane.wasm"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	require.Error(t, serve(io.Discard, "nonsense", dir))

	r, w := io.Pipe()
	go serve(w, "localhost:0", dir) // ends with the test's process
	address, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	address = strings.TrimSpace(address)
	require.Regexp(t, `^http://localhost:\d+$`, address)
	for path, mime := range map[string]string{"/": "text/html", "/main.js": "text/javascript", "/wavelane.wasm": "application/wasm"} {
		response, err := http.Get(address + path)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Contains(t, response.Header.Get("Content-Type"), mime)
	}
}
