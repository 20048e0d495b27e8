package kernels_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/kernels"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

// shapes are what every kernel is executed with, by the names of its sizes.
var shapes = map[string][][]int{
	"n":         {{1}, {2}, {3}, {4}, {5}, {31}, {32}, {33}, {255}, {256}, {257}, {1000}, {1023}, {1024}, {1025}, {4099}, {9000}},
	"rows cols": {{1, 1}, {1, 2}, {2, 31}, {3, 32}, {32, 3}, {31, 33}, {33, 65}, {1, 257}, {2, 1000}, {64, 64}, {70, 5}, {1, 5000}},
	"m n k": {{1, 1, 1}, {1, 5, 3}, {5, 1, 17}, {16, 16, 16}, {17, 15, 33}, {33, 65, 7}, {64, 64, 32}, {65, 66, 67}, {8, 72, 40},
		{130, 70, 9}, {3, 3, 0}},
}

// launch executes a kernel on the machine and returns what the software GPU or the comparison objects to.
func (m *machine) launch(k kernels.Kernel, module *ir.Module, sizes []int, j job) error {
	loaded, err := m.gpu.Load(module)
	if err != nil {
		return err
	}
	entry, err := loaded.Kernel(k.Name)
	if err != nil {
		return err
	}
	params, err := entry.Pack(j.args...)
	if err != nil {
		return err
	}
	grid := k.Grid(sizes...)
	l := sim.Launch{Grid: sim.Dim3{X: grid[0], Y: grid[1], Z: grid[2]}, Block: sim.Dim3{X: k.Block[0], Y: k.Block[1], Z: k.Block[2]},
		Shared: j.shared, Params: params}
	_, err = m.gpu.Run(m.t.Context(), entry, l)
	return err
}

// TestKernels executes every kernel over all shapes, with every check on, a schedule of its own each time and approximate instructions that
// err, and compares with float64.
func TestKernels(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, k := range kernels.All() {
		t.Run(k.Name, func(t *testing.T) {
			c := caseOf(k)
			require.NotNil(t, c, "a kernel without a case")
			require.NotEmpty(t, shapes[k.Sizes], "no shapes for %q", k.Sizes)
			built, err := k.Module()
			require.NoError(t, err)
			// What the driver gets is text.
			module, err := parse.Module(k.Name+".ptx", []byte(built.String()))
			require.NoError(t, err)
			require.True(t, ir.Equal(built, module), "parsing what was printed gives another module")
			for i, sizes := range shapes[k.Sizes] {
				config := sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64(), Perturb: i%2 == 1}
				m := &machine{t: t, gpu: sim.New(config), rng: rng}
				j := c(m, k, sizes)
				require.NoError(t, m.launch(k, module, sizes, j), "%v, seed %d", sizes, config.Seed)
				require.NoError(t, j.check(), "%v, seed %d", sizes, config.Seed)
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
				j := caseOf(k)(m, k, sizes[k.Sizes])
				require.NoError(t, m.launch(k, module, sizes[k.Sizes], j), "seed %d", config.Seed)
				require.NoError(t, j.check())
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
