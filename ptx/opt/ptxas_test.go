package opt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/opt"
)

// assembler is ptxas: from PTXAS, else on PATH.
func assembler(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PTXAS")
	if path == "" {
		var err error
		if path, err = exec.LookPath("ptxas"); err != nil {
			t.Skip("ptxas is not here: set PTXAS to it")
		}
	}
	return path
}

// TestAssembles gives ptxas what the passes make of random programs: literals, addresses and labels must be where PTX takes them.
func TestAssembles(t *testing.T) {
	ptxas := assembler(t)
	rng := seeded(t)
	n := 12
	if testing.Short() {
		n = 3
	}
	for range n {
		m := randomModule(rng)
		got, _, err := opt.Run(m, opt.Options{Passes: opt.Pass(rng.Uint64())&opt.All | opt.Fold, Contract: true, Unroll: rng.IntN(4)})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "k.ptx")
		// ptxas knows no requests to unroll: without the pass they are still there.
		text := strings.ReplaceAll(got.String(), `.pragma "unroll`, `// "`)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		out, err := exec.CommandContext(t.Context(), ptxas, "-arch=sm_80", "-O1", "-o", os.DevNull, file).CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, got)
	}
}
