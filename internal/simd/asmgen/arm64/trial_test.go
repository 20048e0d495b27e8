package arm64

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/asmgen/arm64/testdata/trial"
)

// TestExecution executes kernels made at random, under qemu but on arm64. WAVELANE_SEED repeats a run.
func TestExecution(t *testing.T) {
	seed := testseed.Of(t)
	kernels := trial.Kernels(seed)
	files, err := Translate(kernels)
	require.NoError(t, err)
	checkWords(t, files)

	stubs := regexp.MustCompile(`package kernels`).ReplaceAll(files["kernels/stubs_gen_arm64.go"], []byte("package trial"))
	functions := "package trial\n\nvar functions = map[string]any{\n"
	for _, k := range kernels {
		functions += fmt.Sprintf("%q: %s,\n", k.Name, k.Func(suffix))
	}
	dir := t.TempDir()
	here, err := filepath.Abs("testdata/trial")
	require.NoError(t, err)
	overlay := map[string]string{}
	for name, b := range map[string][]byte{
		"kernels_gen_arm64.s": files["kernels/kernels_gen_arm64.s"],
		"stubs_gen_arm64.go":  stubs,
		"functions_gen.go":    []byte(functions + "}\n"),
	} {
		overlay[filepath.Join(here, name)] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), replace, 0o600))

	args := []string{"test", "-count=1", "-overlay=" + filepath.Join(dir, "overlay.json")}
	if runtime.GOARCH != "arm64" {
		qemu, err := exec.LookPath("qemu-aarch64")
		if err != nil {
			qemu, err = exec.LookPath("qemu-aarch64-static")
		}
		require.NoError(t, err, "scripts/setup test installs it")
		args = append(args, "-exec="+qemu)
	}
	cmd := exec.Command("go", append(args, "./testdata/trial")...)
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0", fmt.Sprintf("TRIAL_SEED=%d", seed))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
