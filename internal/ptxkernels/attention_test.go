package ptxkernels

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Each way of attention is right for whatever calls have it, also where it is not the default: one in four of those calls, other ones
// by each seed.
func TestAttentionVariants(t *testing.T) {
	for _, name := range []string{"tiles", "split", "mma", "wgmma"} {
		runVariant(t, name, 4, catalogue.Attention, catalogue.AttentionLSE)
	}
}

// Attention by wgmma is right over several tiles of queries and of keys, of blocks that stay and of those that do not, with every check
// and on perturbed schedules: with masks that hide whole tiles, parts of them, and all keys of a query.
func TestAttentionWgmma(t *testing.T) {
	for _, x := range []struct {
		batch, queries, keys, heads, keyHeads, width int
		compute.AttentionOptions
		compute.DType
	}{
		{2, 150, 391, 3, 3, 128, compute.AttentionOptions{}, compute.BFloat16},
		{1, 270, 391, 2, 1, 128, compute.AttentionOptions{Causal: true}, compute.Float16},
		{1, 150, 100, 1, 1, 72, compute.AttentionOptions{Causal: true}, compute.Float16},
		{1, 140, 420, 2, 1, 104, compute.AttentionOptions{Causal: true, Window: 180}, compute.BFloat16},
		{2, 200, 270, 2, 2, 64, compute.AttentionOptions{}, compute.Float16},
		{1, 193, 391, 2, 1, 64, compute.AttentionOptions{Causal: true}, compute.BFloat16},
		{1, 193, 300, 1, 1, 40, compute.AttentionOptions{Window: 40}, compute.Float16},
	} {
		t.Run(fmt.Sprint(x), func(t *testing.T) {
			t.Parallel()
			r := NewRig(t, sim.Config{Checks: sim.AllChecks, Seed: ptxtest.Random(t).Uint64(), Perturb: true})
			r.Caps.Multiprocessors = 2
			chosen := 0
			r.Pick = func(_, _ string, names []string) int {
				i := slices.Index(names, "wgmma")
				chosen = max(chosen, i+1)
				return max(i, 0)
			}
			kv := program.Type{DType: x.DType, Shape: []int{x.batch, x.keys, x.keyHeads, x.width}}
			q := program.Type{DType: x.DType, Shape: []int{x.batch, x.queries, x.heads, x.width}}
			require.NoError(t, conformance.NewCase(catalogue.AttentionLSE, program.Attr{Options: x.AttentionOptions}, q, kv, kv).Run(r))
			require.NotZero(t, chosen)
		})
	}
}

// runVariant runs one in n of the entries' cases with a variant wherever it is a candidate. It fails if no case had it as one.
func runVariant(t *testing.T, name string, n int, entries ...*program.Entry) {
	t.Run(name, func(t *testing.T) {
		var chosen atomic.Int64
		t.Cleanup(func() { require.NotZero(t, chosen.Load()) })
		conformance.RunEach(t, "software GPU, "+name, n, func(t *testing.T) program.Executor {
			r := NewRig(t, kerneltest.EveryCheck(conformance.Seed()))
			r.Pick = func(_, _ string, names []string) int {
				i := slices.Index(names, name)
				if i >= 0 {
					chosen.Add(1)
				}
				return max(i, 0)
			}
			return r
		}, entries...)
	})
}
