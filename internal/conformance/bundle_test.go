//go:build linux && cgo

package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bundleReport is what scripts/gpu/run writes, as far as it is checked; see bench/results/README.md.
type bundleReport struct {
	Format      int    `json:"format"`
	Date        string `json:"date"`
	Revision    string `json:"revision"`
	Software    bool   `json:"software"`
	Interrupted bool   `json:"interrupted"`
	Card        string `json:"card"`
	NoPeer      string `json:"no_peer"`
	Parts       []struct {
		Part   string `json:"part"`
		Result string `json:"result"`
		Passed int    `json:"tests_passed"`
		Failed int    `json:"tests_failed"`
		Cases  int    `json:"conformance_cases"`
	} `json:"parts"`
	Info struct {
		CPU struct{ Name string } `json:"cpu"`
	} `json:"info"`
	Benchmarks []struct {
		Benchmark string     `json:"benchmark"`
		Kind      string     `json:"kind"`
		Way       string     `json:"way"`
		Runs      int        `json:"runs"`
		Median    float64    `json:"median_ns"`
		Quartiles [2]float64 `json:"quartiles_ns"`
		Relative  float64    `json:"relative_time"`
		Error     string     `json:"error"`
	} `json:"benchmarks"`
}

// runBundle runs the script and reads its results.
func runBundle(t *testing.T, run string, env []string, args ...string) (status int, r bundleReport) {
	results := t.TempDir()
	c := exec.Command(run, append(args, results)...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	files, err := filepath.Glob(filepath.Join(results, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1, "%s", out)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r), "%s", data)
	require.Equal(t, 1, r.Format)
	require.NotEmpty(t, r.Revision)
	_, err = time.Parse("2006-01-02T150405Z", r.Date)
	require.NoError(t, err)
	return c.ProcessState.ExitCode(), r
}

// standIn answers everything with itself: it takes PyTorch's place, so that the script beside it is executed.
const standIn = `
import sys
class Anything:
    __version__ = "stand-in"
    def elapsed_time(self, end): return 2.0
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
    def __enter__(self): return self
    def __exit__(self, *args): return None
    def __getitem__(self, key): return self
    def __mul__(self, other): return self
    def __sub__(self, other): return self
sys.modules["torch"] = Anything()
`

// The bundle for machines with a GPU, built as for them, on the software GPU: the binaries, the script, the peer, and the results
// they write. And without any GPU: failures, not skips.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("the bundle for GPUs is built without -short")
	}
	bundle := filepath.Join(t.TempDir(), "bundle")
	build := exec.Command("../../scripts/gpu/bundle", bundle)
	build.Env = append(os.Environ(), "BUNDLE_TRIM=") // compiled already
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out) // it is small enough, too
	run := filepath.Join(bundle, "run")

	fake := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(fake, "torch.py"), []byte(standIn), 0o600))
	python := "PYTHONPATH=" + fake
	_, err = exec.LookPath("python3")
	withPython := err == nil
	status, r := runBundle(t, run, []string{"WAVELANE_TEST_SOFTWARE=1", python})
	require.Zero(t, status)
	require.True(t, r.Software)
	require.Equal(t, "software GPU", r.Card)
	require.NotEmpty(t, r.Info.CPU.Name)
	require.Len(t, r.Parts, 5)
	for i, part := range []string{"info", "conformance", "driver", "webgpu", "bench"} {
		p := r.Parts[i]
		require.Equal(t, part, p.Part)
		require.Equal(t, "passed", p.Result, part)
		require.Zero(t, p.Failed)
		require.Equal(t, part != "info" && part != "bench", p.Passed > 0, part)
		require.Equal(t, part == "conformance" || part == "webgpu", p.Cases > 100, part)
	}
	names, peers := map[string]bool{}, 0
	for _, b := range r.Benchmarks {
		require.Empty(t, b.Error)
		require.Equal(t, "cuda", b.Kind)
		require.Equal(t, 3, b.Runs)
		require.Positive(t, b.Relative)
		require.LessOrEqual(t, b.Quartiles[0], b.Median+1) // the median is at least 1
		require.LessOrEqual(t, b.Median, b.Quartiles[1]+1)
		names[b.Benchmark] = true
		if strings.HasPrefix(b.Way, "torch stand-in") {
			peers++
		}
	}
	for _, name := range []string{"launch", "graph10", "upload", "add", "sum", "sgemm1024", "hgemm1024", "quant_q4_k", "quant_q4_k_8",
		"quant_matmul_q4_k"} {
		require.True(t, names["cuda_"+name], "%s is not measured, only %v", name, names)
	}
	require.Len(t, names, 10, "%v", names)
	if withPython {
		require.Empty(t, r.NoPeer)
		require.Equal(t, 5, peers, "upload, add, sum, and two products")
	} else {
		t.Log("no python3 here: PyTorch's part is not executed")
		require.NotEmpty(t, r.NoPeer)
	}

	status, r = runBundle(t, run, []string{"CUDA_VISIBLE_DEVICES=", "WAVELANE_TEST_SOFTWARE="}, "--only", "driver,bench")
	require.Equal(t, 1, status)
	require.Len(t, r.Parts, 3)
	for _, p := range r.Parts {
		require.Equal(t, "failed", p.Result, p.Part)
	}
	require.Positive(t, r.Parts[1].Failed)
	require.Empty(t, r.Card)
}
