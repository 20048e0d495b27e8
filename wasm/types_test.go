package wasm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/wasm/internal/jstest"
)

// TestTypes has TypeScript check the declarations, what they must accept and refuse, and the README's JavaScript.
func TestTypes(t *testing.T) {
	tools, err := filepath.Abs(filepath.Join("npm", "node_modules"))
	require.NoError(t, err)
	compiler := filepath.Join(tools, "typescript", "bin", "tsc")
	require.FileExists(t, compiler, "no TypeScript: 'scripts/setup test' installs it")
	dir := filepath.Join(folder, "..", "..", "types")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	text, err := os.ReadFile(filepath.Join("testdata", "types.ts"))
	require.NoError(t, err)
	for name, text := range map[string]string{"package.json": `{"type": "module"}`, "types.ts": string(text),
		"readme.ts": jstest.Snippet(t, "README.md") + "\nexport { c, probabilities, y };\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	tsc := func() (string, error) {
		out, err := node(t, compiler, "--strict", "--noEmit", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--target", "esnext",
			"--module", "nodenext", "--lib", "esnext,dom",
			filepath.Join(dir, "types.ts"), filepath.Join(dir, "readme.ts"))
		return string(out), err
	}
	out, err := tsc()
	require.NoError(t, err, out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readme.ts"), []byte(strings.Replace(string(text), "tune: true", "tuna: true", 1)), 0o644))
	_, err = tsc()
	require.ErrorContains(t, err, "tuna", "TypeScript finds mistakes")
}
