package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// underFaultyVulkan has a command find the loader of testdata before the system's.
func underFaultyVulkan(t *testing.T, cmd *exec.Cmd, dir string) {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	loader := regexp.MustCompile(`/\S*/libvulkan\.so[.0-9]*`).FindString(string(maps))
	require.NotEmpty(t, loader)
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libvulkan.so.1"), "testdata/vulkan.c", "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+dir, "WAVELANE_TEST_VULKAN="+loader)
}
