package cpu_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/simd"
)

// WAVELANE_SIMD decides at the start of a process: this test runs itself.
func TestForcedTier(t *testing.T) {
	if os.Getenv("WAVELANE_SIMD_TEST") != "" {
		_, err := cpu.Open(context.Background())
		fmt.Printf("tier=%s error=%v argument=%t unavailable=%t\n", simd.Tier(), err,
			errors.Is(err, compute.ErrArgument), errors.Is(err, compute.ErrUnavailable))
		return
	}
	best := kernels.Available()[len(kernels.Available())-1].String()
	for _, c := range []struct{ value, tier, want string }{
		{"scalar", "scalar", "error=<nil>"},
		{best, best, "error=<nil>"},
		{"avx3", best, "argument=true"},
		{impossible(), best, "unavailable=true"},
	} {
		out := again(t, "WAVELANE_SIMD="+c.value)
		require.Contains(t, out, "tier="+c.tier)
		require.Contains(t, out, c.want)
		if strings.Contains(c.want, "true") {
			for _, k := range kernels.Available() {
				require.Contains(t, out, k.String())
			}
		}
	}
}

func impossible() string {
	if kernels.Available()[len(kernels.Available())-1] == kernels.NEON {
		return "avx2"
	}
	return "neon"
}

// again runs the test that calls it in a process of its own, with a variable set.
func again(t *testing.T, variable string) string {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), variable, "WAVELANE_SIMD_TEST=1")
	out, err := c.CombinedOutput()
	if runtime.GOOS == "js" || errors.Is(err, syscall.ENOEXEC) {
		t.Skip("no processes here, or none of this architecture")
	}
	require.NoError(t, err, string(out))
	return string(out)
}
