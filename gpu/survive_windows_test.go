package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// underFaultyVulkan runs a copy of a program beside the loader of testdata, which it finds before the system's. WAVELANE_TEST_LOADER names
// it, as Windows machines rarely have a C compiler.
func underFaultyVulkan(t *testing.T, cmd *exec.Cmd, dir string) {
	loader := os.Getenv("WAVELANE_TEST_LOADER")
	if loader == "" {
		t.Skip("WAVELANE_TEST_LOADER names no vulkan-1.dll that was compiled from testdata/vulkan.c")
	}
	for from, to := range map[string]string{loader: "vulkan-1.dll", os.Args[0]: "gpu.exe"} {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), b, 0o700))
	}
	cmd.Path, cmd.Args[0] = filepath.Join(dir, "gpu.exe"), "gpu.exe"
	cmd.Env = append(cmd.Env, "WAVELANE_TEST_VULKAN="+filepath.Join(os.Getenv("SystemRoot"), "System32", "vulkan-1.dll"))
}
