//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
)

// TestMain lets the test binary be what a launcher starts.
func TestMain(m *testing.M) {
	if os.Getenv("WAVELANE_DIGITS_RANK") == "" {
		os.Exit(m.Run())
	}
	if err := run(context.Background(), os.Stdout, options{epochs: 2, seed: 7}, wavelane.WithDevice("cpu")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestRanks trains with two processes of both MPI libraries and with one: losses differ by what the order of sums makes of them.
func TestRanks(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, options{epochs: 2, seed: 7}, wavelane.WithDevice("cpu")))
	want := losses(t, out.String())
	require.Len(t, want, 2)
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, launcher := range [][]string{{"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"}, {"mpiexec.hydra"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, launcher[0], append(launcher[1:], "-np", "2", exe)...)
		cmd.Env = append(os.Environ(), "WAVELANE_DIGITS_RANK=1", "GOMAXPROCS=2")
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "scripts/setup test installs the launchers\n%s", text)
		require.Contains(t, string(text), "2 ranks take part")
		got := losses(t, string(text))
		require.Len(t, got, 2, string(text))
		for i := range want {
			require.InDelta(t, want[i], got[i], 2e-3, "epoch %d", i+1)
		}
		t.Logf("%s: losses %v, of one process %v", launcher[0], got, want)
	}
}

func losses(t *testing.T, text string) (all []float64) {
	for _, m := range regexp.MustCompile(`epoch +\d+: loss ([\d.]+)`).FindAllStringSubmatch(text, -1) {
		loss, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		all = append(all, loss)
	}
	return all
}
