package x86

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/wavelane/wavelane/internal/simd/asmgen/arm64/testdata/trial"
)

// TestExecution executes kernels made at random, in each set that the machine has. WAVELANE_SEED repeats a run.
func TestExecution(t *testing.T) {
	seed := testseed.Of(t)
	kernels := trial.Kernels(seed)
	files, err := kernelFiles(kernels)
	require.NoError(t, err)
	again, err := kernelFiles(kernels)
	require.NoError(t, err)
	require.Equal(t, files, again)
	if runtime.GOARCH != "amd64" {
		t.Skip("no amd64 to execute it on")
	}
	functions := "package trial\n\nimport \"os\"\n\nvar functions = map[string]map[string]any{\n"
	for _, s := range sets {
		functions += fmt.Sprintf("%q: {\n", s.name)
		for _, k := range kernels {
			functions += fmt.Sprintf("%q: %s,\n", k.Name, k.Func(s.name))
		}
		functions += "},\n"
	}
	laid := map[string][]byte{"functions_gen.go": []byte(functions + "}[os.Getenv(\"TRIAL_SET\")]\n")}
	for name, text := range files {
		laid[filepath.Base(name)] = bytes.Replace(text, []byte("package kernels"), []byte("package trial"), 1)
	}
	overlay := "-overlay=" + layOver(t, laid)
	run := func(t *testing.T, env []string, args ...string) {
		cmd := exec.Command("go", append(args, "../arm64/testdata/trial")...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run(t, nil, "vet", overlay) // which compares the declarations with the assembly
	for _, s := range sets {
		t.Run(s.name, func(t *testing.T) {
			if s.vex && !(cpu.X86.HasAVX2 && cpu.X86.HasFMA) || s.masks && !cpu.X86.HasAVX512DQ {
				t.Skip("not on this machine")
			}
			features := "all"
			if !s.FMA {
				features = "none"
			}
			env := []string{fmt.Sprintf("TRIAL_SEED=%d", seed), "TRIAL_SET=" + s.name, "TRIAL_FEATURES=" + features}
			run(t, env, "test", "-count=1", overlay)
		})
	}
}

// layOver writes files and an overlay that puts them into package trial, and returns its name.
func layOver(t *testing.T, files map[string][]byte) string {
	dir := t.TempDir()
	here, err := filepath.Abs("../arm64/testdata/trial")
	require.NoError(t, err)
	overlay := map[string]string{}
	for name, text := range files {
		overlay[filepath.Join(here, name)] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, replace, 0o600))
	return list
}
