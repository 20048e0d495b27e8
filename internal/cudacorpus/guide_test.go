package cudacorpus

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGuide follows docs/cuda-ci.md: its script compiles its CUDA C, and its launches find the mistakes.
func TestGuide(t *testing.T) {
	interpreter, dir := python(t), t.TempDir()
	guide, err := os.ReadFile("../../docs/cuda-ci.md")
	require.NoError(t, err)
	for language, name := range map[string]string{"python": "nvrtc.py", "cuda": "bugs.cu", "json": "bugs.json"} {
		_, rest, ok := strings.Cut(string(guide), "```"+language+"\n")
		require.True(t, ok, language)
		text, _, _ := strings.Cut(rest, "```")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	compile := exec.CommandContext(t.Context(), interpreter, "nvrtc.py", "bugs.cu", "bugs.ptx")
	compile.Dir = dir
	said, err := compile.CombinedOutput()
	require.NoError(t, err, "%s", said)
	program := filepath.Join(dir, "wavelane")
	said, err = exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/wavelane").CombinedOutput()
	require.NoError(t, err, "%s", said)
	run := exec.CommandContext(t.Context(), program, "ptx", "run", "bugs.json", "--profile=profile.html")
	run.Dir = dir
	said, err = run.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, run.ProcessState.ExitCode())
	_, rest, _ := strings.Cut(string(guide), "report begins so:\n\n```\n")
	beginning, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	require.Contains(t, string(said), beginning)
	for _, want := range []string{"Invalid __global__ read of size 4 bytes\n=========     at smooth in bugs.cu:24:",
		"Uninitialized __global__ memory read of size 4 bytes\n=========     at count in bugs.cu:31:", "ERROR SUMMARY: 4 errors"} {
		require.Contains(t, string(said), want)
	}
	require.FileExists(t, filepath.Join(dir, "profile.html"))
}
