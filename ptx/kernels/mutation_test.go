package kernels_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/kernels"
	"github.com/wavelane/wavelane/ptx/sim"
)

// caught says who noticed a mutant.
type caught uint8

const (
	byNobody   caught = iota
	byResult          // executing it on the software GPU gave a result that float64 contradicts
	bySim             // the software GPU objected
	byAnalyser        // the analyser did, without executing it
)

// mutationSizes have edges in all directions and more than one block, where that matters; the quick ones first. A check that fails to stop
// a thread at the end of a row shows only in the last row, so that this has to be, in turn, in each thread's first, second … row of a
// tile, and the inner dimension shorter than a tile and longer.
var mutationSizes = map[string][][]int{
	"n":         {{5}, {1027}},
	"rows cols": {{33, 35}, {41, 35}, {49, 35}, {57, 35}, {2, 300}},
	"m n k": {{5, 7, 9}, {8, 8, 8}, {21, 7, 5}, {37, 19, 3}, {53, 9, 13}, {69, 5, 7}, {101, 3, 2}, {5, 7, 19}, {37, 7, 21}, {21, 5, 25},
		{53, 3, 29}, {8, 8, 40}, {40, 16, 24}, {40, 8, 56}, {5, 7, 37}, {37, 9, 55}, {65, 67, 35}},
}

// mutationKinds are those that are tried here; in package ptx/lower it is all.
var mutationKinds = []string{"barrier", "wait", "bounds", "index"}

// TestMutants makes every mistake of mutants in every kernel. At least 95 % have to be noticed by the analyser or by execution on the
// software GPU.
func TestMutants(t *testing.T) {
	rng := ptxtest.Random(t)
	var lock sync.Mutex
	count := map[string]*[4]int{}
	total := &[4]int{}
	t.Run("kernels", func(t *testing.T) {
		for _, k := range kernels.All() {
			seed := rng.Uint64()
			t.Run(k.Name, func(t *testing.T) {
				t.Parallel()
				module, err := k.Module()
				require.NoError(t, err)
				before := bugs(t, module)
				for _, mu := range ptxtest.Mutations(module.Funcs[0]) {
					if !slices.Contains(mutationKinds, mu.Kind) {
						continue
					}
					by := judge(t, k, module, &mu, before, seed)
					if by == byNobody {
						t.Logf("nobody noticed %v", &mu)
					}
					lock.Lock()
					if count[mu.Kind] == nil {
						count[mu.Kind] = &[4]int{}
					}
					count[mu.Kind][by]++
					total[by]++
					lock.Unlock()
				}
			})
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		t.Log(summary(kind, count[kind]))
	}
	t.Log(summary("all", total))
	all := total[byNobody] + total[byResult] + total[bySim] + total[byAnalyser]
	require.Greater(t, all, 100)
	require.GreaterOrEqual(t, 1-float64(total[byNobody])/float64(all), 0.95)
}

func summary(kind string, c *[4]int) string {
	all := c[byNobody] + c[byResult] + c[bySim] + c[byAnalyser]
	return fmt.Sprintf("%-8s %4d mutants: the analyser notices %3d, the software GPU's checks %3d more, results %3d more, nobody %3d: %.1f %%",
		kind, all, c[byAnalyser], c[bySim], c[byResult], c[byNobody], 100*(1-float64(c[byNobody])/float64(all)))
}

// bugs counts the analyser's findings of bugs by class.
func bugs(t *testing.T, m *ir.Module) map[analyze.Class]int {
	r, err := analyze.Module(m, analyze.Options{BugsOnly: true})
	require.NoError(t, err)
	n := map[analyze.Class]int{}
	for _, f := range r.Findings {
		n[f.Class]++
	}
	return n
}

// judge says who notices what is wrong with a mutant. What goes wrong only sometimes, a missing barrier, has several schedules to show it.
func judge(t *testing.T, k kernels.Kernel, module *ir.Module, mu *ptxtest.Mutation, before map[analyze.Class]int, seed uint64) caught {
	mutant := mu.Apply(module)
	for class, n := range bugs(t, mutant) {
		if n > before[class] {
			return byAnalyser
		}
	}
	schedules := 1
	if mu.Kind == "barrier" || mu.Kind == "wait" {
		schedules = 3
	}
	wrong := false
	for _, sizes := range mutationSizes[k.Sizes] {
		for i := range schedules {
			m := &machine{t: t, rng: ptxtest.Replay(seed),
				gpu: sim.New(sim.Config{Checks: sim.AllChecks, Seed: seed + uint64(i), MaxSteps: 1 << 20})}
			j := m.job(k, sizes)
			if m.launch(k, mutant, sizes, j) != nil {
				return bySim
			}
			wrong = wrong || j.Check() != nil
		}
		if wrong {
			return byResult
		}
	}
	return byNobody
}
