package kernels_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/conformance/kernelcase"
	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/kernels"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

// TestKernels executes every kernel over all shapes, with every check on, a schedule of its own each time and approximate instructions that
// err, and compares with float64.
func TestKernels(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, k := range kernels.All() {
		t.Run(k.Name, func(t *testing.T) {
			require.NotEmpty(t, kernelcase.Shapes[k.Sizes], "no shapes for %q", k.Sizes)
			built, err := k.Module()
			require.NoError(t, err)
			// What the driver gets is text.
			module, err := parse.Module(k.Name+".ptx", []byte(built.String()))
			require.NoError(t, err)
			require.True(t, ir.Equal(built, module), "parsing what was printed gives another module")
			for i, sizes := range kernelcase.Shapes[k.Sizes] {
				config := sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: i%2 == 1}
				m := &machine{t: t, gpu: sim.New(config), rng: rng}
				j := m.job(k, sizes)
				require.NoError(t, m.launch(k, module, sizes, j), "%v, seed %d", sizes, config.Seed)
				require.NoError(t, j.Check(), "%v, seed %d", sizes, config.Seed)
			}
		})
	}
}

// TestSchedules executes with many schedules, and without checks on several workers: all results are the same bits.
func TestSchedules(t *testing.T) {
	rng := ptxtest.Random(t)
	sizes := map[string][]int{"n": {2500}, "rows cols": {35, 70}, "m n k": {70, 75, 40}}
	for _, k := range kernels.All() {
		t.Run(k.Name, func(t *testing.T) {
			module, err := k.Module()
			require.NoError(t, err)
			data := rng.Uint64()
			var first []byte
			for i := range 12 {
				config := sim.Config{Checks: sim.AllChecks, Seed: uint64(i)}
				if i >= 10 {
					config = sim.Config{Workers: 4}
				}
				m := &machine{t: t, gpu: sim.New(config), rng: ptxtest.Replay(data)}
				j := m.job(k, sizes[k.Sizes])
				require.NoError(t, m.launch(k, module, sizes[k.Sizes], j), "seed %d", config.Seed)
				require.NoError(t, j.Check())
				got := m.everything()
				if first == nil {
					first = got
				}
				require.Equal(t, first, got, "seed %d gives another result than seed 0", config.Seed)
			}
		})
	}
}

// TestSpecialisations are those that the code has no sense for.
func TestSpecialisations(t *testing.T) {
	for _, tile := range []kernels.Tile{{}, {M: 64, N: 64, K: 16, PerThreadM: 3, PerThreadN: 4}, {M: 66, N: 64, K: 16, PerThreadM: 4, PerThreadN: 4},
		{M: 256, N: 256, K: 8, PerThreadM: 4, PerThreadN: 4}, {M: 64, N: 64, K: 7, PerThreadM: 4, PerThreadN: 4},
		{M: 128, N: 128, K: 64, PerThreadM: 8, PerThreadN: 8}} {
		_, err := kernels.SGEMM(tile).Module()
		require.ErrorIs(t, err, compute.ErrArgument, fmt.Sprint(tile))
	}
}
