package lower

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/op"
)

// Either way of attention is right for whatever calls it is not the default of.
func TestAttentionVariants(t *testing.T) {
	for _, name := range []string{"tiles", "split"} {
		t.Run(name, func(t *testing.T) {
			chosen := 0
			t.Cleanup(func() { require.NotZero(t, chosen) })
			conformance.RunEach(t, "software GPU, "+name, func(t *testing.T) op.Executor {
				r := newRig(t, everyCheck(conformance.Seed()))
				r.pick = func(_, _ string, names []string) int {
					chosen++
					return slices.Index(names, name)
				}
				return r
			}, op.Attention)
		})
	}
}
