package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/simd"
)

// TestMain lets the test binary be the process of another instruction set, as the command itself is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		if err := serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestReport measures a little of everything and reads the three forms of the report.
func TestReport(t *testing.T) {
	var chosen []Case
	for _, c := range cases() {
		switch c.Name {
		case "sgemm/16", "sgemm/32", "dot/1024", "argmax/4096":
			chosen = append(chosen, c)
		}
	}
	require.Len(t, chosen, 4)
	r, err := collect(io.Discard, chosen, plan{rounds: 2, sample: 20 * time.Microsecond}, true)
	require.NoError(t, err)
	subjects := map[string]bool{}
	for _, x := range r.Results {
		require.Positive(t, x.NS, "%+v", x)
		subjects[x.Subject] = true
	}
	for _, s := range []string{ours, openblas, gonumS, vek, plainGo, "wavelane/scalar"} {
		require.True(t, subjects[s], s)
	}
	require.NotEmpty(t, r.Verdicts)

	var text, page, figures bytes.Buffer
	require.NoError(t, r.writeText(&text))
	require.Contains(t, text.String(), "BenchmarkSgemm/size=16/threads=1/subject=openblas 1 ")
	require.NoError(t, r.writeHTML(&page))
	require.GreaterOrEqual(t, strings.Count(page.String(), "<svg"), 2)
	require.NotContains(t, page.String(), "http-equiv")
	require.NotContains(t, page.String(), "src=", "the page needs nothing else")
	require.NoError(t, r.writeJSON(&figures))
	var back Report
	require.NoError(t, json.Unmarshal(figures.Bytes(), &back))
	require.Equal(t, r.Verdicts, back.Verdicts)
}

// TestSubjectsAgree computes a product with each subject: benchmarks of wrong results are worth nothing.
func TestSubjectsAgree(t *testing.T) {
	const m, k, n = 5, 7, 3
	a, b := random(m*k), random(k*n)
	want := make([]float32, m*n)
	simd.MatMul(want, a, b, m, k, n)
	got := make([]float32, m*n)
	openblasGemm(got, a, b, m, k, n)
	require.InDeltaSlice(t, want, got, 1e-5)
	square := random(k * k)
	clear(got[:0])
	byHand, ours := make([]float32, k*k), make([]float32, k*k)
	goMatMul(byHand, square, square, k)
	simd.MatMul(ours, square, square, k, k, k)
	require.InDeltaSlice(t, byHand, ours, 1e-5)

	x, y := random(1000), make([]float32, 1000)
	openblasGemv(y[:10], random(100 * 10)[:1000], x[:100], 10, 100)
	want = make([]float32, 10)
	simd.MatVec(want, random(1000), x[:100], 10, 100)
	require.InDeltaSlice(t, want, y[:10], 1e-4)
	require.InDelta(t, simd.Dot(x, x), openblasDot(x, x), 1e-2)
	copy(y, x)
	openblasAxpy(y, x, 2)
	require.InDelta(t, float64(3*x[7]), float64(y[7]), 1e-5)
}

// TestPeak: the peak is one, so no product is faster.
func TestPeak(t *testing.T) {
	const flops = 2e7
	start := time.Now()
	multiplyAdd(flops, 1)
	rate := flops / float64(time.Since(start).Nanoseconds())
	require.False(t, math.IsInf(rate, 0))
	require.Greater(t, rate, 1.0, "GFLOPS")
}

// TestCommand: what people type.
func TestCommand(t *testing.T) {
	binary := t.TempDir() + "/bench"
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, bad := range [][]string{{"-run", "("}, {"-run", "nothing"}, {"-rounds", "0"}, {"surplus"}, {"-no-such-flag"}} {
		out, err := exec.Command(binary, bad...).CombinedOutput()
		require.Error(t, err, "%v", bad)
		require.NotEmpty(t, out)
	}
	out, err = exec.Command(binary, "-list", "-run", "sgemm/10").Output()
	require.NoError(t, err)
	require.Equal(t, "sgemm/1024\n", string(out))
	folder := t.TempDir()
	out, err = exec.Command(binary, "-json", "-tiers=false", "-run", "sgemm/16", "-rounds", "1", "-sample", "10us", "-out", folder).Output()
	require.NoError(t, err)
	var r Report
	require.NoError(t, json.Unmarshal(out, &r))
	for _, name := range []string{"cpu.txt", "cpu.json", "cpu.html"} {
		require.FileExists(t, folder+"/"+name)
	}
}
