package parse_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// compilers are the languages in testdata/c and what clang needs to be told for each.
var compilers = map[string][]string{
	"plain.c": {"-target", "nvptx64-nvidia-cuda", "-march=sm_70"},
	"kernels.cl": {"-target", "nvptx64-nvidia-cuda", "-march=sm_70", "-cl-std=CL1.2", "-nogpulib",
		"-Xclang", "-target-feature", "-Xclang", "+ptx70"},
	"inline.cu": {"--cuda-device-only", "--cuda-gpu-arch=sm_70", "-nocudainc"},
}

// TestClang parses what clang makes of C, OpenCL and CUDA, with and without optimisation and line information.
func TestClang(t *testing.T) {
	clang, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("clang is not in PATH: what it emits is not parsed")
	}
	for file, args := range compilers {
		options := [][]string{{"-O0"}, {"-O2"}}
		if file != "plain.c" { // with line information clang 14 puts labels between the operands of a call by address
			options = append(options, []string{"-O1", "-gline-tables-only"})
		}
		for _, opt := range options {
			cmd := exec.Command(clang, append(append(append([]string{}, args...), opt...), "-S", "-nocudalib", "-o", "-",
				filepath.Join("testdata/c", file))...)
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			src, err := cmd.Output()
			require.NoError(t, err, "%s: %s", file, &complaints)
			m, err := parse.Module(file, src)
			require.NoError(t, err, "%s", src)
			require.NotEmpty(t, m.Funcs)
			text := roundTrip(t, m)
			v, target, err := ir.Requires(m)
			require.NoError(t, err)
			require.False(t, m.Version.Less(v), "%s says it needs PTX %s, the table %s", file, m.Version, v)
			require.True(t, m.Target.Covers(target), "%s is for %s, the table says %s", file, m.Target, target)
			assemble(t, m.Target, text)
		}
	}
}

// TestFilesAssemble: what is printed of the files here is PTX to ptxas too.
func TestFilesAssemble(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(t, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		m, err := parse.Module(file, src)
		require.NoError(t, err)
		assemble(t, m.Target, m.String())
	}
}

// assemble fails unless ptxas, where there is one, takes the text.
func assemble(t *testing.T, target ir.Target, text string) {
	t.Helper()
	name := os.Getenv("PTXAS")
	if name == "" {
		name = "ptxas"
	}
	tool, err := exec.LookPath(name)
	if err != nil {
		t.Log("ptxas is neither PTXAS nor in PATH: what is printed is not assembled")
		return
	}
	file := filepath.Join(t.TempDir(), "printed.ptx")
	// A module may refer to functions of others, which only a linker finds: -c.
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.Command(tool, "-c", "-arch="+target.String(), "-o", os.DevNull, file).CombinedOutput()
	if bytes.Contains(out, []byte("gpu-name")) {
		t.Logf("this ptxas does not know %s", target)
		return
	}
	require.NoError(t, err, "%s\n%s", out, text)
	require.NotRegexp(t, regexp.MustCompile(`(?m)^ptxas (error|fatal)`), string(out))
}
