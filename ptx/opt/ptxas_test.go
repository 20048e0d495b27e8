package opt_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/opt"
)

// TestAssembles gives ptxas what the passes make of random programs: literals, addresses and labels must be where PTX takes
// them.
func TestAssembles(t *testing.T) {
	if _, err := exec.LookPath("ptxas"); err != nil && os.Getenv("PTXAS") == "" {
		t.Skip("ptxas is not here: set PTXAS to it")
	}
	rng := seeded(t)
	n := 12
	if testing.Short() {
		n = 3
	}
	for range n {
		m := randomModule(rng)
		got, _, err := opt.Run(m, opt.Options{Passes: opt.Pass(rng.Uint64())&opt.All | opt.Fold, Contract: true, Unroll: rng.IntN(4)})
		require.NoError(t, err)
		assemble(t, got)
	}
}
