package parse_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
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

// compiled calls do with what clang makes of C, OpenCL and CUDA, with and without optimisation and line information.
func compiled(t *testing.T, do func(file string, m *ir.Module)) {
	clang, err := exec.LookPath("clang")
	require.NoError(t, err, "scripts/setup test installs clang")
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
			do(file, m)
		}
	}
}

func TestClang(t *testing.T) {
	compiled(t, func(file string, m *ir.Module) {
		require.NotEmpty(t, m.Funcs)
		roundTrip(t, m)
		v, target, err := ir.Requires(m)
		require.NoError(t, err)
		require.False(t, m.Version.Less(v), "%s says it needs PTX %s, the table %s", file, m.Version, v)
		require.True(t, m.Target.Covers(target), "%s is for %s, the table says %s", file, m.Target, target)
	})
}

// TestPtxasClang: what is printed of what clang emits is PTX to ptxas too.
func TestPtxasClang(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	compiled(t, func(_ string, m *ir.Module) { assemble(t, ptxas, m) })
}

// TestPtxasFiles: so is what is printed of the files here.
func TestPtxasFiles(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	for _, m := range modules(t) {
		assemble(t, ptxas, m)
	}
}

// assemble fails unless ptxas takes what is printed of the module.
func assemble(t *testing.T, ptxas string, m *ir.Module) {
	t.Helper()
	// A module may refer to functions of others, which only a linker finds: -c.
	log, err := ptxtest.Assemble(t, ptxas, m.Target.String(), m.String(), "-c")
	if errors.Is(err, ptxtest.ErrTarget) {
		t.Logf("%v: %s", err, m.Target)
		return
	}
	require.NoError(t, err, "%s", m)
	require.NotRegexp(t, regexp.MustCompile(`(?m)^ptxas (error|fatal)`), log)
}
