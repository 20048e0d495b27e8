package cudacorpus

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// guide writes what docs/cuda-ci.md has in a language, in this order, to files of a folder.
func guide(t *testing.T, dir, language string, names ...string) (text string) {
	t.Helper()
	all, err := os.ReadFile("../../docs/cuda-ci.md")
	require.NoError(t, err)
	blocks := strings.Split(string(all), "```"+language+"\n")
	require.Greater(t, len(blocks), len(names), language)
	for i, name := range names {
		text, _, _ = strings.Cut(blocks[1+i], "```")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return string(all)
}

// follow runs a program in a folder.
func follow(t *testing.T, dir, program string, args ...string) (status int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TRITON_CACHE_DIR="+t.TempDir()) // else a file's name would be that of an earlier run
	out, err := cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, err)
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestGuide follows docs/cuda-ci.md: its programs compile its CUDA C and Python, and its launches find the mistakes.
func TestGuide(t *testing.T) {
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "wavelane")
	text := guide(t, dir, "python", "nvrtc.py", "softmax.py")
	guide(t, dir, "cuda", "bugs.cu")
	guide(t, dir, "json", "bugs.json")
	guide(t, dir, "sh", "softmax.sh")
	lines, err := os.ReadFile(filepath.Join(dir, "softmax.sh"))
	require.NoError(t, err)
	softmax := strings.Fields(strings.Split(string(lines), "\n")[1])[1:]
	status, said := follow(t, ".", "go", "build", "-o", program, "../../cmd/wavelane")
	require.Zero(t, status, said)
	_, report, _ := strings.Cut(text, "report begins so:\n\n```\n")
	_, second, _ := strings.Cut(text, "names the line:\n\n```\n")
	for _, c := range []struct {
		compiler     string
		compile, run []string
		report       string
		also         []string
	}{
		{"triton", []string{"softmax.py"}, softmax, second, []string{
			"Invalid __global__ write of size 4 bytes\n=========     at softmax in softmax.py:13:", "ERROR SUMMARY: 2 errors"}},
		{"cuda", []string{"nvrtc.py", "bugs.cu", "bugs.ptx"}, []string{"ptx", "run", "bugs.json", "--profile=profile.html"}, report, []string{
			"Invalid __global__ read of size 4 bytes\n=========     at smooth in bugs.cu:24:",
			"Uninitialized __global__ memory read of size 4 bytes\n=========     at count in bugs.cu:31:", "ERROR SUMMARY: 4 errors"}},
	} {
		status, said := follow(t, dir, python(t, c.compiler), c.compile...)
		require.Zero(t, status, said)
		status, said = follow(t, dir, program, c.run...)
		require.Equal(t, 1, status)
		beginning, _, ok := strings.Cut(c.report, "```")
		require.True(t, ok)
		for _, want := range append(c.also, beginning) {
			require.Contains(t, said, want)
		}
	}
	require.FileExists(t, filepath.Join(dir, "profile.html"))
}
