//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
)

// In a worker these variables are set; the second names a file at whose appearance rank 1 is killed.
const (
	workerVariable = "WAVELANE_DIGITS_WORKER"
	deathVariable  = "WAVELANE_DIGITS_DEATH"
)

// TestMain lets the test binary be the program that a launcher starts.
func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) == "" {
		os.Exit(m.Run())
	}
	if name := os.Getenv(deathVariable); name != "" && cmp.Or(os.Getenv("OMPI_COMM_WORLD_RANK"), os.Getenv("PMI_RANK")) == "1" {
		go func() {
			for {
				if _, err := os.Stat(name); err == nil {
					syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	main()
}

// launchers are the commands that start a number of processes, which follows; one process needs none.
var launchers = [][]string{{"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np"}, {"mpiexec.hydra", "-np"}}

// launch runs the program with arguments and returns what it printed, and its error.
func launch(t *testing.T, launcher []string, ranks int, env []string, args ...string) (string, error) {
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := append([]string{exe}, args...)
	if ranks > 1 {
		command = slices.Concat(launcher, []string{strconv.Itoa(ranks)}, command)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), append(env, workerVariable+"=1", "WAVELANE_DEVICE=cpu", "GOMAXPROCS=2")...)
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "%s", text)
	return string(text), err
}

// TestRanks trains with two processes of both MPI libraries and with one: losses differ by what the order of sums makes of them.
func TestRanks(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, options{epochs: 2, seed: 7, every: 1}, wavelane.WithDevice("cpu")))
	want := losses(t, out.String())
	require.Len(t, want, 2)
	for _, launcher := range launchers {
		text, err := launch(t, launcher, 2, nil, "-epochs", "2", "-seed", "7")
		require.NoError(t, err, "scripts/setup test installs the launchers\n%s", text)
		require.Contains(t, text, "2 ranks take part")
		got := losses(t, text)
		require.Len(t, got, 2, text)
		for i := range want {
			require.InDelta(t, want[i], got[i], 2e-3, "epoch %d", i+1)
		}
		t.Logf("%s: losses %v, of one process %v", launcher[0], got, want)
	}
}

// TestRestart goes on with another number of ranks, after one of two was killed within an epoch, and then with two: what they have learned
// in the end, and all that goes with it, has the bits of a run of one process that nothing has happened to.
func TestRestart(t *testing.T) {
	const first, second, last = "digits-000000044.safetensors", "digits-000000088.safetensors", "digits-000000132.safetensors"
	args := []string{"-epochs", "3", "-seed", "7", "-shards", "4", "-every", "1", "-checkpoint"}
	undisturbed := t.TempDir()
	text, err := launch(t, nil, 1, nil, append(args, undisturbed)...)
	require.NoError(t, err, text)
	read := func(folder, name string) []byte {
		b, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		return b
	}
	want := read(undisturbed, last)
	for _, launcher := range launchers {
		folder := t.TempDir()
		text, err := launch(t, launcher, 2, []string{deathVariable + "=" + filepath.Join(folder, first)}, append(args, folder)...)
		require.Error(t, err, text)
		require.NotContains(t, text, "trained in")
		names, err := checkpoints(folder)
		require.NoError(t, err)
		text, err = launch(t, nil, 1, nil, append(args, folder)...)
		require.NoError(t, err, text)
		require.Contains(t, text, "goes on from "+names[0])
		require.True(t, bytes.Equal(want, read(folder, last)), "another result than without a death")

		names, err = checkpoints(folder)
		require.NoError(t, err)
		require.Len(t, names, keep)
		require.NoError(t, os.Truncate(filepath.Join(folder, last), 1000)) // so that the one before counts
		text, err = launch(t, launcher, 2, nil, append(args, folder, "-zero")...)
		require.NoError(t, err, text)
		require.Contains(t, text, last+" is damaged")
		require.Contains(t, text, "goes on from "+filepath.Join(folder, second))
		require.Contains(t, text, "2 ranks take part")
		require.True(t, bytes.Equal(want, read(folder, last)), "another result than of one process")
	}
	text, err = launch(t, nil, 1, nil, "-epochs", "4", "-seed", "7", "-shards", "4", "-checkpoint", undisturbed)
	require.Error(t, err)
	require.Contains(t, text, "-epochs 3 -shards 4 -seed 7")
}

func losses(t *testing.T, text string) (all []float64) {
	for _, m := range regexp.MustCompile(`epoch +\d+: loss ([\d.]+)`).FindAllStringSubmatch(text, -1) {
		loss, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		all = append(all, loss)
	}
	return all
}
