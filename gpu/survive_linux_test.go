package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// faultyVulkan is a Vulkan loader that passes everything on to the system's. While there is a file of the name in WAVELANE_TEST_FAIL,
// submissions fail with the number that the file contains.
const faultyVulkan = `
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
static function (*instance)(void *, const char *), (*device)(void *, const char *);
static int (*submit)(void *, unsigned, const void *, void *);

static int faulty_submit(void *queue, unsigned n, const void *infos, void *fence) {
    FILE *f = fopen(getenv("WAVELANE_TEST_FAIL"), "r");
    int result, failing;
    if (f == NULL) return submit(queue, n, infos, fence);
    failing = fscanf(f, "%d", &result) == 1;
    fclose(f);
    return failing ? result : submit(queue, n, infos, fence);
}

static function faulty_device(void *d, const char *name) {
    function f = device(d, name);
    if (strcmp(name, "vkQueueSubmit") != 0) return f;
    submit = (int (*)(void *, unsigned, const void *, void *))f;
    return (function)faulty_submit;
}

function vkGetInstanceProcAddr(void *i, const char *name) {
    function f;
    if (instance == NULL)
        instance = (function (*)(void *, const char *))dlsym(dlopen(getenv("WAVELANE_TEST_VULKAN"), RTLD_NOW), "vkGetInstanceProcAddr");
    f = instance(i, name);
    if (f == NULL || strcmp(name, "vkGetDeviceProcAddr") != 0) return f;
    device = (function (*)(void *, const char *))f;
    return (function)faulty_device;
}
`

// A driver that reports a loss or no memory inside a submission costs the device and not the process: the error is typed, the device is
// lost, and others work on, on the same goroutine and elsewhere. The test runs itself under a loader that fails.
func TestFailedSubmission(t *testing.T) {
	fail := os.Getenv("WAVELANE_TEST_FAIL")
	if fail != "" {
		failedSubmissions(t, fail)
		return
	}
	open(t)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	loader := regexp.MustCompile(`/\S*/libvulkan\.so[.0-9]*`).FindString(string(maps))
	require.NotEmpty(t, loader)
	dir := t.TempDir()
	source := filepath.Join(dir, "vulkan.c")
	require.NoError(t, os.WriteFile(source, []byte(faultyVulkan), 0o600))
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libvulkan.so.1"), source, "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFailedSubmission$", "-test.v")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "WAVELANE_TEST_VULKAN="+loader, "WAVELANE_TEST_FAIL="+filepath.Join(dir, "fail"))
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, 6, strings.Count(string(out), "survived"), "%s", out)
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
