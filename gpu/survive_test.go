//go:build linux || windows

package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// A driver that reports a loss or no memory inside a submission costs the device and not the process: the error is typed, the device is
// lost, and others work on, on the same goroutine and elsewhere. The test runs itself under a loader that fails, testdata/vulkan.c.
func TestFailedSubmission(t *testing.T) {
	fail := os.Getenv("WAVELANE_TEST_FAIL")
	if fail != "" {
		failedSubmissions(t, fail)
		return
	}
	open(t)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFailedSubmission$", "-test.v")
	cmd.Env = append(os.Environ(), "WAVELANE_TEST_FAIL="+filepath.Join(dir, "fail"))
	underFaultyVulkan(t, cmd, dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, 6, strings.Count(string(out), "survived"), "%s", out)
	t.Logf("%s", out)
}

func failedSubmissions(t *testing.T, fail string) {
	check := func(d *Device) error {
		y := make([]float32, 1)
		k, err := NewKernel(ctx, d, affineDesc())
		if err == nil {
			err = k.Run(ctx, affineLaunch(1, 2, 1), y, []float32{3})
		}
		if err == nil {
			require.Equal(t, float32(7), y[0])
		}
		return err
	}
	for range 2 {
		for number, want := range map[string]error{"-4": compute.ErrDeviceLost, "-2": compute.ErrOutOfMemory, "-1": compute.ErrOutOfMemory} {
			other, d, busy := open(t), open(t), open(t)
			for _, d := range []*Device{other, d, busy} {
				require.NoError(t, check(d))
			}
			k := affine(t, busy)
			require.NoError(t, os.WriteFile(fail, []byte(number), 0o600))
			err := check(d)
			require.ErrorIs(t, err, compute.ErrDeviceLost)
			require.ErrorIs(t, err, want)
			require.NotContains(t, err.Error(), "the library has panicked", "its own words are found")
			var group sync.WaitGroup
			for range 4 { // several goroutines, and submissions that wait for others
				group.Go(func() {
					var runs []*compute.Future
					for range 3 {
						runs = append(runs, k.RunAsync(affineLaunch(1, 2, 1), make([]float32, 1), []float32{3}))
					}
					for _, f := range runs {
						assert.ErrorIs(t, f.Await(ctx), compute.ErrDeviceLost)
					}
				})
			}
			group.Wait()
			require.NoError(t, os.Remove(fail))
			for _, d := range []*Device{d, busy} {
				require.ErrorIs(t, check(d), compute.ErrDeviceLost)
			}
			require.NoError(t, check(other), "on a goroutine that has seen the failure")
			require.NoError(t, check(open(t)))
			for _, d := range []*Device{d, busy} {
				require.NoError(t, d.Close())
			}
			t.Logf("survived %s: %v", number, err)
		}
	}
}
