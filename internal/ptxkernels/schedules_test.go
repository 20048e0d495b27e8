package ptxkernels

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Each kernel is executed in so many orders of lanes, warps and blocks: in all of them when everything is asked for, else in a
// few, other ones each time.
const schedules, someSchedules = 20, 2

// Every kernel, on many schedules with every check of the software GPU on: no race, no unwritten value, no divergence where
// there may be none, and the same bits each time.
func TestSchedules(t *testing.T) {
	trials, err := trialsOf()
	assert.NoError(t, err)
	rng := ptxtest.Random(t)
	n := someSchedules
	if everything {
		n = schedules
	}
	for _, f := range kit.Families() {
		rigs := make([]*recorder, n)
		for i := range rigs {
			rigs[i] = &recorder{Rig: newTrialRig(sim.Config{Checks: sim.AllChecks, Seed: rng.Uint64()})}
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for _, k := range f.Kernels {
				list := trials[k]
				if len(list) == 0 {
					t.Errorf("no call of the suite launches %s", k.Name)
					continue
				}
				for _, c := range small(list) {
					var first []byte
					for i, r := range rigs {
						c.setUp(r.Rig)
						require.NoError(t, c.Run(r), "%s, schedule %d", k.Name, i)
						require.NotEmpty(t, r.results)
						if i == 0 {
							first = r.results
						}
						require.Equal(t, first, r.results, "%s: schedule %d gives other bits for %v", k.Name, i, c)
					}
				}
			}
		})
	}
}
