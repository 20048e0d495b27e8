package ptxkernels

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/opt"
	"github.com/wavelane/wavelane/ptx/sim"
)

// optimised is how the passes are asked; what contracts sums changes their bits.
var optimised = []opt.Options{{Passes: opt.All}, {Passes: opt.All, Unroll: 4}}

// go test rewrites one kernel in so many.
const sampledRewrites = 24

// What the passes of package opt make of the kernels computes the same bits, in hardly more instructions of lanes anywhere:
// barriers, shared memory, atomics, matrices and copies in the background are at stake.
func TestOptimised(t *testing.T) {
	trials, err := trialsOf()
	assert.NoError(t, err)
	rng := ptxtest.Random(t)
	tried := 0
	for _, k := range all() {
		if !everything && rng.IntN(sampledRewrites) > 0 {
			continue
		}
		require.NotEmpty(t, trials[k], "no call of the suite launches %s", k.Name)
		module, err := k.Module()
		require.NoError(t, err)
		want, before := executed(t, trials[k], k, module)
		for _, o := range optimised {
			got, stats, err := opt.Run(module, o)
			require.NoError(t, err)
			require.NoError(t, ir.Validate(got), "%s", got)
			out, after := executed(t, trials[k], k, got)
			require.Equal(t, want, out, "%s, unroll %d: other bits", k.Name, o.Unroll)
			// Whether an iteration is left is asked once more for each unrolled loop.
			require.LessOrEqual(t, after, before+before/50, "%s, unroll %d", k.Name, o.Unroll)
			t.Logf("%s, unroll %d: %d instructions, then %d; executed by lanes %d, then %d", k.Name, o.Unroll, stats.Before, stats.After,
				before, after)
		}
		tried++
	}
	t.Logf("%d kernels", tried)
}

// executed are the results of small calls of a kernel with another module in its place, and how many instructions of lanes they
// took of it.
func executed(t *testing.T, list []trial, k *kit.Kernel, module *ir.Module) (results [][]byte, lanes uint64) {
	r := &recorder{Rig: newTrialRig(sim.Config{})}
	m, err := r.GPU.Load(module)
	require.NoError(t, err, k.Name)
	instead, err := m.Kernel(k.Name)
	require.NoError(t, err, k.Name)
	r.Instead = map[*kit.Kernel]*sim.Kernel{k: instead}
	r.Observe = func(of *kit.Kernel, stats *sim.Stats) {
		if of == k {
			lanes += stats.Lanes
		}
	}
	for _, c := range small(list) {
		c.setUp(r.Rig)
		require.NoError(t, c.Run(r), "%s, %v", k.Name, c)
		results = append(results, r.results)
	}
	require.Positive(t, lanes, k.Name)
	return results, lanes
}
