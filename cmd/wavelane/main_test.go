//go:build !js

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/benchmarks"
	"github.com/wavelane/wavelane/simd"
)

func call(ctx context.Context, args ...string) (status int, out, errOut string) {
	var o, e bytes.Buffer
	status = execute(ctx, args, &o, &e)
	return status, o.String(), e.String()
}

func TestWrongUsage(t *testing.T) {
	t.Setenv("WAVELANE_DEVICE", "")
	for _, c := range []struct{ args, message string }{
		{"nonsense", `unknown command "nonsense"`},
		{"info extra", "extra"},
		{"info --nonsense", "--nonsense"},
		{"bench --filter (", "--filter"},
		{"bench --filter nonsense", `no benchmark matches "nonsense"`},
		{"bench --runs 0", "--runs"},
		{"bench --runs many", "many"},
		{"bench --device toaster", "toaster"},
		{"bench --device gpu:x", "gpu:x"},
		{"monitor extra", "extra"},
		{"monitor --interval 0s", "--interval"},
		{"monitor --count -1", "--count"},
		{"monitor --software --device 3", "--device 3"},
		{"tune --device cpu", "nothing to tune"},
		{"tune --type int8", "--type int8"},
		{"tune --shape 5x5", "5x5"},
		{"tune --shape 0x1x1", "0x1x1"},
		{"tune --shape 99999x99999x1", "99999"},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, out, errOut := call(t.Context(), strings.Fields(c.args)...)
			require.Equal(t, 2, status)
			require.Empty(t, out)
			require.Contains(t, errOut, c.message)
			require.Contains(t, errOut, "--help")
		})
	}
}

// A peer measures in turns with us; without one, that is the error. Benchmarks for other devices are left out.
// TestMain lets the tests' binary be the command, for tests that need it as a program.
func TestMain(m *testing.M) {
	if os.Getenv("WAVELANE_TEST_COMMAND") != "" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestBaseline(t *testing.T) {
	dir := t.TempDir()
	args := []string{"bench", "--device", "cpu", "--filter", "^chain16$", "--runs", "6"}
	status, out, errOut := call(t.Context(), append(args, "--json")...)
	require.Zero(t, status, errOut)
	var results []benchmarks.Result
	require.NoError(t, json.Unmarshal([]byte(out), &results))
	file := filepath.Join(dir, "results.json")
	against := func(factor float64) (int, string, string) {
		changed := slices.Clone(results)
		for i := range changed {
			r := &changed[i]
			r.Median = time.Duration(factor * float64(r.Median))
			r.Interval = [2]float64{factor * r.Interval[0], factor * r.Interval[1]}
		}
		text, err := json.Marshal(changed)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o600))
		return call(t.Context(), append(args, "--baseline", file)...)
	}
	status, out, errOut = against(1e3)
	require.Zero(t, status, errOut)
	require.Contains(t, out, "faster")
	status, out, errOut = against(1e-3)
	require.Equal(t, 1, status)
	require.Contains(t, out, "slower")
	require.Contains(t, errOut, "results are more than 10 % slower")

	history, page := filepath.Join(dir, "history"), filepath.Join(dir, "page.html")
	t.Setenv("WAVELANE_TEST_COMMAND", "1")
	own, err := os.Executable()
	require.NoError(t, err)
	for range 2 {
		status, out, errOut = call(t.Context(), append(args, "--baseline", own, "--threshold", "1000", "--history", history, "--html", page)...)
		require.Zero(t, status, errOut)
		require.Contains(t, out, "same")
	}
	runs, err := benchmarks.ReadHistory(history)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	require.Equal(t, 6, runs[1].Results[0].Runs)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "chain16 on cpu")

	for flag, value := range map[string]string{"--baseline": page, "--threshold": "-1"} {
		status, _, errOut = call(t.Context(), append(args, flag, value)...)
		require.Equal(t, 2, status)
		require.Contains(t, errOut, flag)
	}
}

// TestBenchCPU: kernels on one thread and on all, with shares of a bound that nothing exceeds by much.
func TestBenchCPU(t *testing.T) {
	args := []string{"bench", "--cpu", "--runs", "3", "--filter", "^(matmul 64|dot 1024|add 1024|Q8_0 .*)$"}
	status, out, errOut := call(t.Context(), append(args, "--list")...)
	require.Zero(t, status, errOut)
	require.Equal(t, "matmul 64\ndot 1024\nadd 1024\nQ8_0 4096×4096 times a row\n", out)
	status, out, errOut = call(t.Context(), append(args, "--json")...)
	require.Zero(t, status, errOut)
	var kernels []benchmarks.CPUKernel
	require.NoError(t, json.Unmarshal([]byte(out), &kernels))
	require.Len(t, kernels, 4*min(2, runtime.GOMAXPROCS(0)))
	for _, k := range kernels {
		require.Positive(t, k.NS, k.Kernel)
		require.InEpsilon(t, k.Rate/k.Peak, k.Share, 1e-6, k.Kernel)
	}
	status, out, errOut = call(t.Context(), args...)
	require.Zero(t, status, errOut)
	require.Contains(t, out, "share")
	for _, wrong := range [][]string{{"--filter", "nonsense"}, {"--device", "cpu"}} {
		status, _, errOut = call(t.Context(), append([]string{"bench", "--cpu"}, wrong...)...)
		require.Equal(t, 2, status)
		require.Contains(t, errOut, "--cpu")
	}
}

func TestBenchCUDA(t *testing.T) {
	args := []string{"bench", "--device", "cuda", "--software", "--runs", "2", "--json", "--filter", "^(cuda_launch|pipeline)$"}
	status, out, errOut := call(t.Context(), args...)
	require.Zero(t, status, errOut)
	var results []benchmarks.Result
	require.NoError(t, json.Unmarshal([]byte(out), &results))
	require.Len(t, results, 3)
	for _, r := range results {
		require.Equal(t, "cuda_launch", r.Benchmark)
		require.True(t, r.Software)
		require.Equal(t, 2, r.Runs)
	}
	status, out, errOut = call(t.Context(), append(args, "--peer", t.TempDir()+"/nobody")...)
	require.Equal(t, 1, status)
	require.Empty(t, out)
	require.Contains(t, errOut, "nobody")
}

func TestFailure(t *testing.T) {
	status, out, errOut := call(t.Context(), "bench", "--device", "gpu:4000")
	require.Equal(t, 1, status)
	require.Empty(t, out)
	require.Contains(t, errOut, "unavailable")
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"info"}, {"bench", "--device", "cpu", "--filter", "matmul512"}} {
		status, _, errOut := call(ctx, args...)
		require.Equal(t, 130, status, "%v", args)
		require.Equal(t, "wavelane: interrupted\n", errOut)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"info", "--help"}, {"monitor", "--help"}, {"bench", "--help"}, {"tune", "--help"}} {
		status, out, errOut := call(t.Context(), args...)
		require.Zero(t, status)
		require.Empty(t, errOut)
		require.Contains(t, out, "Usage:")
	}
}

func TestInfo(t *testing.T) {
	status, out, errOut := call(t.Context(), "info")
	require.Zero(t, status, errOut)
	require.Contains(t, out, "Default device: ")
	require.Contains(t, out, "\ncpu: ")
	require.Contains(t, out, "  kernels  "+simd.Tier()+" (of scalar")

	status, out, errOut = call(t.Context(), "info", "--json")
	require.Zero(t, status, errOut)
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.NotNil(t, r.Default)
	require.NotEmpty(t, r.CPU.Name)
	require.Equal(t, simd.Tier(), r.CPU.Tier)
	for i, a := range r.Adapters {
		require.Equal(t, i, a.Index)
		require.NotZero(t, a.Limits.MaxBuffer)
	}
	require.NotEqual(t, len(r.CUDA) == 0, r.NoCUDA == "", "NVIDIA GPUs, or why there are none")
}

// What info says about an NVIDIA GPU, of which the software one is an example.
func TestInfoCUDA(t *testing.T) {
	list, err := cuda.Devices(t.Context(), cuda.WithSoftware())
	require.NoError(t, err)
	var out bytes.Buffer
	r := report{CUDA: list, NoCUDA: "", GPU: "none"}
	require.NoError(t, r.write(&out))
	require.Contains(t, out.String(), "\ncuda:0: "+list[0].Name+"\n")
	require.Contains(t, out.String(), "sm_90")
	require.NotContains(t, out.String(), "No CUDA")
}

func TestMonitor(t *testing.T) {
	status, out, errOut := call(t.Context(), "monitor", "--software", "--count", "3", "--interval", "1ms")
	require.Zero(t, status, errOut)
	require.Equal(t, 3, strings.Count(out, "cuda:0 "))
	require.Contains(t, out, " of 4 GiB")

	status, out, errOut = call(t.Context(), "monitor", "--software", "--count", "1", "--json")
	require.Zero(t, status, errOut)
	var s sample
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, uint64(4<<30), s.Total)
	require.Less(t, s.Used, s.Total)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	status, _, errOut = call(ctx, "monitor", "--software", "--interval", "10ms")
	require.Equal(t, 130, status)
	require.Equal(t, "wavelane: interrupted\n", errOut)
}

func TestBench(t *testing.T) {
	args := []string{"bench", "--device", "cpu", "--filter", "^matmul512$", "--runs", "2"}
	status, out, errOut := call(t.Context(), args...)
	require.Zero(t, status, errOut)
	require.Empty(t, errOut, "no progress bar where there is no terminal")
	require.Contains(t, out, "plain loop")

	status, out, errOut = call(t.Context(), append(args, "--json")...)
	require.Zero(t, status, errOut)
	var results []benchmarks.Result
	require.NoError(t, json.Unmarshal([]byte(out), &results))
	require.Len(t, results, 2)
	for _, r := range results {
		require.Equal(t, "matmul512", r.Benchmark)
		require.Equal(t, "cpu", r.Kind)
		require.Equal(t, 2, r.Runs)
		require.Positive(t, r.Median)
		require.Positive(t, r.Rate)
	}

	status, out, _ = call(t.Context(), "bench", "--list")
	require.Zero(t, status)
	for _, b := range benchmarks.All() {
		require.Contains(t, out, b.Name)
	}
}

func TestTune(t *testing.T) {
	for _, flags := range []string{"--device gpu", "--device cuda", "--device cuda --type float16"} {
		t.Run(flags, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			status, out, errOut := call(t.Context(), append(strings.Fields("tune --software --shape 16x64x16 --json"), strings.Fields(flags)...)...)
			if status == 1 && strings.Contains(errOut, "CGO_ENABLED=0") {
				return // a build without WebGPU says so
			}
			require.Zero(t, status, errOut)
			var list []batch.Measurement
			require.NoError(t, json.Unmarshal([]byte(out), &list))
			require.NotEmpty(t, list)
			for _, m := range list {
				require.Contains(t, m.Variants, m.Winner)
			}
		})
	}
}
