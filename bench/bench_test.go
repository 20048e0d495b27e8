package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/simd"
)

// TestMain lets the test binary be the process of another instruction set, as the command itself is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := serveProcess(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
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
	r, err := collect(io.Discard, chosen, plan{rounds: 2, sample: 20 * time.Microsecond}, 0, true)
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

// TestBLAS computes with every BLAS that is here, in this process one after the other: benchmarks of wrong results are worth
// nothing. OpenBLAS is there, since scripts/setup installs it.
func TestBLAS(t *testing.T) {
	found := 0
	for i := range blasKinds {
		k := &blasKinds[i]
		path := k.find()
		if path == "" || strings.Contains(path, "mkl") { // MKL wants its folder in the linker's path, as its process has
			continue
		}
		found++
		l, err := openLibrary(k, path)
		require.NoError(t, err)
		require.NotEmpty(t, l.version())
		l.setThreads(1)
		for _, p := range []product{
			{m: 5, k: 7, n: 3}, {m: 5, k: 7, n: 3, transA: true}, {m: 5, k: 7, n: 3, transB: true}, {m: 5, k: 7, n: 3, batch: 3},
		} {
			c, a, b := p.operands()
			want := make([]float32, len(c))
			if p.batch > 0 {
				simd.BatchedMatMul(want, a, b, p.batch, p.m, p.k, p.n)
			} else {
				simd.Gemm(want, a, b, simd.Product{M: p.m, K: p.k, N: p.n, TransA: p.transA, TransB: p.transB})
			}
			l.gemm(c, a, b, p)(2)
			require.InDeltaSlice(t, want, c, 1e-5, "%s: %s", k.subject, p.name())
		}
		a, x, y, want := random(10*100), random(100), make([]float32, 10), make([]float32, 10)
		simd.MatVec(want, a, x, 10, 100)
		l.gemv(y, a, x, 10, 100, false)(1)
		require.InDeltaSlice(t, want, y, 1e-4, k.subject)
		y, want = make([]float32, 10), make([]float32, 10)
		simd.VecMat(want, x, a, 100, 10)
		l.gemv(y, a, x, 100, 10, true)(1)
		require.InDeltaSlice(t, want, y, 1e-4, k.subject)
		l.dot(x, x)(1)
		require.InDelta(t, simd.Dot(x, x), sink, 1e-4, k.subject)
		sum := slices.Clone(x)
		l.axpy(sum, x, 2)(1)
		require.InDelta(t, float64(3*x[7]), float64(sum[7]), 1e-5, k.subject)
	}
	require.Positive(t, found)
}

// TestGoMatMul: the plain loops are right.
func TestGoMatMul(t *testing.T) {
	const k = 7
	square := random(k * k)
	byHand, ours := make([]float32, k*k), make([]float32, k*k)
	goMatMul(byHand, square, square, k)
	simd.MatMul(ours, square, square, k, k, k)
	require.InDeltaSlice(t, byHand, ours, 1e-5)
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
