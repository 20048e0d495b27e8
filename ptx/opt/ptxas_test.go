package opt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"

	_ "github.com/wavelane/wavelane/internal/ptxkernels" // all families
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/opt"
)

// TestPtxasPrograms gives ptxas what the passes make of random programs: literals, addresses and labels must be where PTX takes
// them.
func TestPtxasPrograms(t *testing.T) {
	ptxas, rng := ptxtest.Ptxas(t), ptxtest.Random(t)
	n := 12
	if testing.Short() {
		n = 3
	}
	for range n {
		assemble(t, ptxas, randomModule(rng),
			opt.Options{Passes: opt.Pass(rng.Uint64())&opt.All | opt.Fold, Contract: true, Unroll: rng.IntN(4)})
	}
}

// TestPtxasKernels gives ptxas what the passes make of the catalogue's kernels.
func TestPtxasKernels(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	for _, f := range kit.Families() {
		m, err := f.Kernels[0].Module()
		require.NoError(t, err)
		for _, unroll := range []int{0, 4} {
			assemble(t, ptxas, m, opt.Options{Passes: opt.All, Unroll: unroll})
		}
	}
}

func assemble(t *testing.T, ptxas string, m *ir.Module, o opt.Options) {
	t.Helper()
	got, _, err := opt.Run(m, o)
	require.NoError(t, err)
	// ptxas knows no requests to unroll: without the pass they are still there.
	text := strings.ReplaceAll(got.String(), `.pragma "unroll`, `// "`)
	_, err = ptxtest.Assemble(t, ptxas, ptxtest.TargetOf(got), text, "-O1")
	require.NoError(t, err, "%s", got)
}
