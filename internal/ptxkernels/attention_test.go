package ptxkernels

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
)

// Each way of attention is right for whatever calls have it, also where it is not the default: half of those calls, other ones by
// each seed.
func TestAttentionVariants(t *testing.T) {
	for _, name := range []string{"tiles", "split", "mma", "wgmma"} {
		runVariant(t, name, 2, catalogue.Attention, catalogue.AttentionLSE)
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
