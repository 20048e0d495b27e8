package analyze_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// compileCUDA compiles the kernels in testdata with clang, which is $CLANG or that on the path; scripts/setup installs it.
func compileCUDA(t *testing.T, level string) *ir.Module {
	t.Helper()
	clang := cmp.Or(os.Getenv("CLANG"), "clang")
	_, err := exec.LookPath(clang)
	require.NoError(t, err, "this test compiles CUDA: install clang (scripts/setup test does)")
	out := filepath.Join(t.TempDir(), "kernels.ptx")
	said, err := exec.Command(clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80",
		"-Xclang", "-target-feature", "-Xclang", "+ptx70", "-Wno-everything", "-S", level, "-o", out,
		"testdata/cuda/kernels.cu").CombinedOutput()
	require.NoError(t, err, "%s", said)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	m, err := parse.Module("kernels.ptx", text)
	require.NoError(t, err)
	return m
}

// What people write and clang compiles has no bugs, and is walked to the end. Without one of its barriers it has one.
func TestCompiledCUDA(t *testing.T) {
	levels := []string{"-O0", "-O1", "-O2", "-O3"}
	if testing.Short() {
		levels = levels[1:3]
	}
	for _, level := range levels {
		m := compileCUDA(t, level)
		r, err := analyze.Module(m, analyze.Options{})
		require.NoError(t, err)
		for _, f := range r.Findings {
			require.NotEqual(t, analyze.Bug, f.Severity, "%s: %s: %s: %s (%s)", level, f.Pos, f.Class, f.Message, f.Instr)
			require.NotEqual(t, analyze.Warning, f.Severity, "%s: %s: %s: %s (%s)", level, f.Pos, f.Class, f.Message, f.Instr)
		}
		require.NotEmpty(t, r.Kernels)
		for _, k := range r.Kernels {
			require.True(t, k.Walked, "%s: %s", level, k.Name)
			require.False(t, k.Assumed, "%s: %s", level, k.Name)
		}
		if level != "-O1" {
			continue
		}
		mutants, caught := 0, 0
		for _, f := range m.Funcs {
			for i := range f.Body {
				if f.Body[i].Op != "bar.sync" {
					continue
				}
				c := *m
				g := f.Clone()
				g.Body = slices.Delete(g.Body, i, i+1)
				c.Funcs = []*ir.Func{g}
				r, err := analyze.Module(&c, analyze.Options{BugsOnly: true})
				require.NoError(t, err)
				mutants++
				if len(r.Findings) > 0 {
					caught++
				} else {
					t.Logf("%s without the barrier at %s: nothing found", f.Name, f.Body[i].Pos)
				}
			}
		}
		t.Logf("%d of %d missing barriers found", caught, mutants)
		require.GreaterOrEqual(t, 100*caught, 90*mutants)
	}
}
