//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// stub compiles a library that says a version and has nothing else.
func stub(t *testing.T, dir, source string) string {
	path, c := filepath.Join(dir, FileName), filepath.Join(t.TempDir(), "stub.c")
	require.NoError(t, os.WriteFile(c, []byte(source), 0o600))
	compiler := os.Getenv("WAVELANE_TEST_CC")
	if compiler == "" {
		compiler = "cc"
	}
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, c).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// A library that does not fit is an error that says both versions, or what is missing.
func TestUnfit(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		says   []string
	}{
		"older":    {"unsigned wgpuGetVersion(void) { return 0x16000100; }", []string{"22.0.1.0", "29", "27"}},
		"newer":    {"unsigned wgpuGetVersion(void) { return 0x1e000000; }", []string{"30.0.0.0", "29", "27"}},
		"a part":   {"unsigned wgpuGetVersion(void) { return 0x1d000000; }", []string{"lacks wgpuSetLogLevel"}},
		"no wgpu":  {"unsigned getVersion(void) { return 0x1d000000; }", []string{"no wgpu-native"}},
		"no file":  {"", nil},
		"bad path": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "missing", FileName)
			switch {
			case c.source != "":
				path = stub(t, t.TempDir(), c.source)
			case name == "bad path":
				path = "a\x00b"
			}
			_, err := Find(path)
			require.ErrorIs(t, err, compute.ErrUnavailable)
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

// A library that nobody asked for and that does not fit is passed over where the program has one itself.
func TestFirst(t *testing.T) {
	t.Setenv(Environment, "")
	program, err := os.Executable()
	require.NoError(t, err)
	path := stub(t, filepath.Dir(program), "unsigned wgpuGetVersion(void) { return 0x16000000; }")
	defer os.Remove(path)
	l, err := first()
	if _, none := linked(); none != nil {
		if err != nil { // there is none on the system's path either
			require.ErrorContains(t, err, "22.0.0.0")
		}
		return
	}
	require.NoError(t, err)
	require.NotEqual(t, path, l.Path)
}

// What is loaded stays, and is the same again.
func TestFindAgain(t *testing.T) {
	l, err := Find("")
	require.NoError(t, err)
	require.Contains(t, []uint32{29, 27}, l.ABI.Major)
	require.NotContains(t, l.String(), "%")
	again, err := Find("")
	require.NoError(t, err)
	require.Same(t, l, again)
}
