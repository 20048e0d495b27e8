//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// In a worker this variable is set.
const workerVariable = "WAVELANE_DECODE_WORKER"

// TestMain lets the test binary be the program that a launcher starts.
func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) == "" {
		os.Exit(m.Run())
	}
	main()
}

// launchers are the commands that start a number of processes, which follows.
var launchers = [][]string{{"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np"}, {"mpiexec.hydra", "-np"}}

// decodeOn runs the program on ranks and returns the text, and what else it printed.
func decodeOn(t *testing.T, launcher []string, ranks int, args ...string) (text, rest string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := append(append(append([]string(nil), launcher...), strconv.Itoa(ranks), exe), args...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), workerVariable+"=1", "WAVELANE_DEVICE=cpu", "GOMAXPROCS=2")
	cmd.WaitDelay = 10 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	require.NoError(t, cmd.Run(), "scripts/setup test installs the launchers\n%s%s", &out, &errOut)
	return out.String(), errOut.String()
}

// TestRanks decodes with two and four processes of both MPI libraries, which have a part of the weights each, and with one: the text is the
// same, also one that is drawn.
func TestRanks(t *testing.T) {
	random := filepath.Join(t.TempDir(), "random.gguf")
	require.NoError(t, writeRandom(random, 7))
	args := []string{"-n", "16", "-ctx", "128", "-seed", "3", "-model"}
	for _, c := range []struct {
		args  []string
		ranks []int
	}{
		{append(args, random, "-exact", "-cache", "f32"), []int{2, 4}},
		{append(args, random, "-exact", "-cache", "f32", "-temp", "0.8"), []int{2}},
	} {
		want, _ := decodeOn(t, launchers[0], 1, c.args...)
		require.True(t, strings.HasPrefix(want, "Once upon a time"))
		for _, launcher := range launchers {
			for _, ranks := range c.ranks {
				text, rest := decodeOn(t, launcher, ranks, c.args...)
				require.Equal(t, want, text)
				memory := regexp.MustCompile(`rank \d of `+strconv.Itoa(ranks)+`: ([\d.]+) MB of weights \(the file has ([\d.]+)\), [\d.]+ MB`).FindAllStringSubmatch(rest, -1)
				require.Len(t, memory, ranks, rest)
				for _, m := range memory {
					part, err := strconv.ParseFloat(m[1], 64)
					require.NoError(t, err)
					whole, err := strconv.ParseFloat(m[2], 64)
					require.NoError(t, err)
					require.Less(t, part, 0.8*whole)
				}
			}
		}
	}
}
